//! Compares what a client inside the broker costs the broker with what a client on a socket costs it.
//!
//! One process holds the broker and its clients. The CPU time of all threads counts, except those of clients, whose
//! names begin with `client`. Each pair alternates, and the median of its rounds is shown.
//!
//! ```sh
//! cargo run --profile dist -p imori-server --example inside
//! ```

#![expect(clippy::print_stdout, reason = "the output is what it is for")]

use std::error::Error;
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use imori_amqp091::codec::frame::push_method;
use imori_amqp091::codec::methods::{Method, basic, channel, confirm};
use imori_amqp091::codec::table::Table;
use imori_client::amqp091::{Item, Login, PERSISTENT, Reader, push_login, push_publish, push_queue};
use imori_core::authorize::Identity;
use imori_core::internal::OutgoingMessage;
use imori_core::message::{Address, TOPIC_EXCHANGE};
use imori_core::queue::QueueSettings;
use imori_core::route::{BindingKey, Syntax};
use imori_server::config::{Config, ProtocolName, Service};
use imori_server::{InternalClient, InternalClients, Server, SubscribeOptions};

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// Operations of a round.
const OPERATIONS: usize = 40_000;

/// Numbers of operations that are under way at a time.
const IN_FLIGHT: [usize; 2] = [1, 32];

const ROUNDS: usize = 5;

/// A body of 128 bytes.
const BODY: [u8; 128] = [b'x'; 128];

/// Jiffies of a second.
const TICKS: f64 = 100.0;

fn main() -> Outcome<()> {
    let data = tempfile::tempdir()?;
    let mut config = Config::default();
    config.broker.data_dir = data.path().to_owned();
    config.cells.count = 1;
    let any = || vec!["127.0.0.1:0".parse().expect("an address")];
    (config.listeners.nats, config.listeners.amqp) = (any(), any());
    (config.listeners.stomp, config.listeners.ws) = (Vec::new(), Vec::new());
    (config.listeners.nats_monitor, config.listeners.admin) = (Vec::new(), Vec::new());
    config.listeners.automation = Vec::new();
    let server = Server::start(&config)?;
    let address = |protocol| {
        let of = |listener: &&imori_server::Listener| listener.name.service == Service::Messages(protocol);
        server.listeners().iter().find(of).map(|listener| listener.address).ok_or("no listener")
    };
    let (nats, amqp) = (address(ProtocolName::Nats)?, address(ProtocolName::Amqp)?);
    let clients = server.internal_clients();

    for at_once in IN_FLIGHT {
        let inside = || calls_inside(clients.clone(), at_once);
        compare(&format!("{at_once} calls at a time"), "NATS", inside, || calls_over_nats(nats, at_once))?;
        let inside = || publishes_inside(clients.clone(), at_once);
        let outside = || publishes_over_amqp(amqp, at_once);
        compare(&format!("{at_once} durable publishes at a time"), "AMQP", inside, outside)?;
    }

    server.stop_handle().stop();
    server.join()?;
    Ok(())
}

/// Runs both by turns, and prints the CPU time of the broker for an operation of each.
fn compare(
    name: &str,
    protocol: &str,
    inside: impl Fn() -> Outcome<()>,
    outside: impl Fn() -> Outcome<()>,
) -> Outcome<()> {
    let (mut of_inside, mut of_outside) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        of_inside.push(cpu_of(&inside)?);
        of_outside.push(cpu_of(&outside)?);
    }
    let (inside, outside) = (median(of_inside), median(of_outside));
    println!(
        "{name}: {inside:.2} us of the broker's CPU inside, {outside:.2} us over {protocol}: {:.2}",
        inside / outside
    );
    Ok(())
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Microseconds of the broker's CPU time for an operation.
fn cpu_of(run: impl Fn() -> Outcome<()>) -> Outcome<f64> {
    let before = broker_ticks()?;
    run()?;
    Ok((broker_ticks()? - before) / TICKS * 1e6 / OPERATIONS as f64)
}

/// CPU time of the broker's threads so far. A client's threads are over when it is asked.
fn broker_ticks() -> Outcome<f64> {
    let mut ticks = 0.0;
    for task in fs::read_dir("/proc/self/task")? {
        let Ok(stat) = fs::read_to_string(task?.path().join("stat")) else { continue };
        let (name, rest) = stat.split_once(") ").ok_or("no name")?;
        if name.contains("(client") || name.contains("(inside") {
            continue;
        }
        let times = rest.split(' ').skip(11).take(2);
        ticks += times.filter_map(|field| field.parse::<f64>().ok()).sum::<f64>();
    }
    Ok(ticks)
}

/// Runs a client on a thread of its own.
fn on_thread(run: impl FnOnce() -> Outcome<()> + Send) -> Outcome<()> {
    thread::scope(|scope| {
        let client = thread::Builder::new().name(String::from("client")).spawn_scoped(scope, run)?;
        client.join().map_err(|_| "a client panicked")?
    })
}

fn on_runtime(run: impl AsyncFnOnce() -> Outcome<()> + Send) -> Outcome<()> {
    on_thread(|| tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(run()))
}

fn calls_inside(clients: InternalClients, at_once: usize) -> Outcome<()> {
    on_runtime(async move || {
        let client = clients.connect(Identity::broker(), b"/").await?;
        let key = BindingKey::new(Syntax::Nats, b"service");
        let mut requests = client.subscribe(SubscribeOptions::new(TOPIC_EXCHANGE, key)).await?;
        let service = client.clone();
        let serving = tokio::spawn(async move {
            // Replies are not awaited one by one, as over a socket.
            while let Ok(request) = requests.recv().await {
                let service = service.clone();
                tokio::spawn(async move {
                    let _ = service.reply(&request, OutgoingMessage::new(&BODY[..])).await;
                });
            }
        });
        let left = Arc::new(AtomicUsize::new(OPERATIONS));
        let callers =
            (0..at_once).map(|_| tokio::spawn(call_until_none_is_left(client.clone(), Arc::clone(&left))));
        for caller in callers.collect::<Vec<_>>() {
            caller.await??;
        }
        serving.abort();
        Ok(())
    })
}

async fn call_until_none_is_left(client: InternalClient, left: Arc<AtomicUsize>) -> Outcome<()> {
    let to = Address::new(TOPIC_EXCHANGE, b"service");
    while left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok() {
        client.call(to.clone(), OutgoingMessage::new(&BODY[..]), Duration::from_secs(10)).await?;
    }
    Ok(())
}

fn publishes_inside(clients: InternalClients, at_once: usize) -> Outcome<()> {
    on_runtime(async move || {
        let client = clients.connect(Identity::broker(), b"/").await?;
        let settings = QueueSettings { is_durable: true, ..QueueSettings::default() };
        client.declare_queue(b"inside", settings, false).await?;
        let left = Arc::new(AtomicUsize::new(OPERATIONS));
        let publishers =
            (0..at_once).map(|_| tokio::spawn(publish_until_none_is_left(client.clone(), Arc::clone(&left))));
        for publisher in publishers.collect::<Vec<_>>() {
            publisher.await??;
        }
        client.purge(b"inside").await?;
        Ok(())
    })
}

async fn publish_until_none_is_left(client: InternalClient, left: Arc<AtomicUsize>) -> Outcome<()> {
    let to = Address::new(b"", b"inside");
    while left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok() {
        client.publish(to.clone(), OutgoingMessage::new(&BODY[..]).persistent(true)).await?;
    }
    Ok(())
}

/// A socket and what was read from it.
struct Socket {
    stream: TcpStream,
    unread: Vec<u8>,
}

impl Socket {
    fn connect(address: SocketAddr) -> Outcome<Socket> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        Ok(Socket { stream, unread: Vec::new() })
    }

    fn read_more(&mut self) -> Outcome<()> {
        let mut room = vec![0; 64 * 1024];
        let len = self.stream.read(&mut room)?;
        if len == 0 {
            return Err("the broker has closed the connection".into());
        }
        self.unread.extend_from_slice(room.get(..len).unwrap_or_default());
        Ok(())
    }

    /// The next message's reply subject; other lines are passed over. `None` if none has arrived.
    fn next_message(&mut self, at: &mut usize) -> Option<String> {
        loop {
            let rest = self.unread.get(*at..)?;
            let len = rest.windows(2).position(|two| two == b"\r\n")?;
            let line = String::from_utf8_lossy(rest.get(..len)?).into_owned();
            let Some(fields) = line.strip_prefix("MSG ") else {
                *at += len + 2;
                continue;
            };
            let end = len + 2 + BODY.len() + 2;
            rest.get(..end)?;
            *at += end;
            let fields: Vec<&str> = fields.split(' ').collect();
            return Some(if let [_, _, reply, _] = *fields { reply.to_owned() } else { String::new() });
        }
    }

    /// The reply subjects of the messages that have arrived.
    fn messages(&mut self) -> Vec<String> {
        let mut at = 0;
        let messages = std::iter::from_fn(|| self.next_message(&mut at)).collect();
        self.unread.drain(..at);
        messages
    }
}

fn push_pub(out: &mut Vec<u8>, subject: &str, reply: &str) {
    out.extend_from_slice(
        format!("PUB {subject} {reply}{}{}\r\n", if reply.is_empty() { "" } else { " " }, BODY.len())
            .as_bytes(),
    );
    out.extend_from_slice(&BODY);
    out.extend_from_slice(b"\r\n");
}

fn calls_over_nats(address: SocketAddr, at_once: usize) -> Outcome<()> {
    let mut service = Socket::connect(address)?;
    service.stream.write_all(b"CONNECT {\"verbose\":false}\r\nSUB service 1\r\nPING\r\n")?;
    while !service.unread.ends_with(b"PONG\r\n") {
        service.read_more()?;
    }
    service.unread.clear();
    let mut to_close = service.stream.try_clone()?;
    let serving =
        thread::Builder::new().name(String::from("client-service")).spawn(move || -> Outcome<()> {
            loop {
                service.read_more()?;
                let mut out = Vec::new();
                service.messages().iter().for_each(|reply| push_pub(&mut out, reply, ""));
                service.stream.write_all(&out)?;
            }
        })?;
    on_thread(|| {
        let mut requester = Socket::connect(address)?;
        requester.stream.write_all(b"CONNECT {\"verbose\":false}\r\nSUB _INBOX.me.* 1\r\n")?;
        let (mut sent, mut replied) = (0, 0);
        while replied < OPERATIONS {
            let mut out = Vec::new();
            while sent < OPERATIONS && sent - replied < at_once {
                push_pub(&mut out, "service", &format!("_INBOX.me.{sent}"));
                sent += 1;
            }
            requester.stream.write_all(&out)?;
            requester.read_more()?;
            replied += requester.messages().len();
        }
        Ok(())
    })?;
    to_close.flush()?;
    to_close.shutdown(std::net::Shutdown::Both)?;
    let _ = serving.join();
    Ok(())
}

fn publishes_over_amqp(address: SocketAddr, at_once: usize) -> Outcome<()> {
    const FRAME_MAX: u32 = 131_072;
    on_thread(|| {
        let mut socket = Socket::connect(address)?;
        let login = Login {
            product: "inside",
            capabilities: &[],
            user: None,
            vhost: "/",
            channel_max: 1,
            frame_max: FRAME_MAX,
        };
        let mut out = Vec::new();
        push_login(&mut out, &login);
        push_method(&mut out, 1, &channel::Open {});
        push_queue(&mut out, 1, "outside", Table::EMPTY);
        push_method(&mut out, 1, &confirm::Select { no_wait: false });
        let reader = Reader { payload_bytes_max: FRAME_MAX as usize, body_bytes_max: 0 };
        // The flag of `delivery-mode`, and its value.
        let properties = [0x10, 0x00, PERSISTENT];
        let publish = basic::Publish { routing_key: "outside", ..basic::Publish::default() };
        let (mut sent, mut confirmed) = (0, 0);
        while confirmed < OPERATIONS {
            while sent < OPERATIONS && sent - confirmed < at_once {
                push_publish(&mut out, 1, &publish, &properties, &BODY, FRAME_MAX);
                sent += 1;
            }
            socket.stream.write_all(&out)?;
            out.clear();
            socket.read_more()?;
            let mut at = 0;
            while let Some((item, len)) = reader.take(socket.unread.get(at..).unwrap_or_default())? {
                at += len;
                if let Item::Method(_, Method::BasicAck(ack)) = item {
                    confirmed = usize::try_from(ack.delivery_tag)?;
                }
            }
            socket.unread.drain(..at);
        }
        push_method(
            &mut out,
            1,
            &imori_amqp091::codec::methods::queue::Purge { queue: "outside", no_wait: false },
        );
        socket.stream.write_all(&out)?;
        socket.read_more()
    })
}
