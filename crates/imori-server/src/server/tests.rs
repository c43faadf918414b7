//! A whole broker in this process, with faults injected where no client could reach.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use imori_core::authorize::Identity;
use imori_core::delivery::Delivery;
use imori_core::id::ConnectionId;
use imori_core::limits::TURN_COMMANDS_MAX;
use imori_core::login::{Credentials, Login, Verdict};
use imori_core::name::Name;
use imori_core::outbound::{AfterCancel, CutReason, Encoder, EncoderKinds, Recipient, SharedHeaders};
use tempfile::TempDir;

use super::*;
use crate::config::Seconds;
use crate::login::BuiltInUser;
use crate::shared::TcpLink;
use crate::slots::SlotKey;

/// A broker that stops on drop.
struct Running {
    server: Option<Server>,
    _data: TempDir,
}

impl Running {
    fn start(cells: u16) -> Running {
        Running::start_with(cells, Arc::new(BuiltInUser))
    }

    fn start_with(cells: u16, authenticator: Arc<dyn Authenticator>) -> Running {
        Running::start_configured(cells, authenticator, |_| {})
    }

    fn start_configured(
        cells: u16,
        authenticator: Arc<dyn Authenticator>,
        configure: impl FnOnce(&mut Config),
    ) -> Running {
        let data = tempfile::tempdir().unwrap();
        let mut config = Config::default();
        config.broker.data_dir = data.path().to_owned();
        config.listeners.stomp = vec!["127.0.0.1:0".parse().expect("an address")];
        config.listeners.nats = Vec::new();
        config.listeners.amqp = Vec::new();
        config.listeners.ws = Vec::new();
        config.listeners.nats_monitor = vec!["127.0.0.1:0".parse().expect("an address")];
        config.listeners.automation = Vec::new();
        config.listeners.admin = Vec::new();
        config.cells.count = cells;
        // Spreads the connections over all cells.
        config.cells.busy_percent = 1;
        configure(&mut config);
        Running {
            server: Some(Server::start_with_authenticator(&config, authenticator).unwrap()),
            _data: data,
        }
    }

    fn server(&self) -> &Server {
        self.server.as_ref().expect("it runs until it is dropped")
    }

    fn shared(&self) -> &Shared {
        &self.server().shared
    }

    fn login(&self) -> Client {
        let mut client = self.connect();
        client.write("CONNECT\naccept-version:1.2\nhost:/\n\n\0");
        assert!(client.read().unwrap().starts_with("CONNECTED"));
        client
    }

    fn connect(&self) -> Client {
        let stream = TcpStream::connect(self.server().listeners()[0].address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        Client(BufReader::new(stream))
    }

    /// Connections with sockets.
    fn connections(&self) -> Vec<ConnectionId> {
        let cells = self.shared().cells.get().into_iter().flatten();
        let of_cell = |(cell, handle): (u16, &CellHandle)| {
            let is_of_socket = |key: &SlotKey| {
                let has_protocol = |link: &mut TcpLink| link.wire.client.protocol.is_some();
                handle.connections.with(*key, has_protocol) == Some(true)
            };
            let keys: Vec<SlotKey> = handle.connections.keys().into_iter().filter(is_of_socket).collect();
            keys.into_iter().map(move |key| ConnectionId { cell, slot: key.slot, generation: key.generation })
        };
        (0..).zip(cells).flat_map(of_cell).collect()
    }

    /// Fills the memory, and waits until the cell notices.
    fn raise_alarm(&self, client: &mut Client) {
        let memory = &self.shared().memory;
        memory.gauge().add(2 * memory.mark_bytes());
        client.subscribe("/topic/any");
        assert!(memory.is_alarmed());
    }

    /// Frees the memory; a turn has to end before that is noticed.
    fn end_alarm(&self) {
        let memory = &self.shared().memory;
        memory.gauge().sub(2 * memory.mark_bytes());
        let _somebody = self.login();
        assert!(!memory.is_alarmed());
    }

    fn counted(&self, counter: Counter) -> u64 {
        self.shared().cells.get().into_iter().flatten().map(|cell| cell.counters.get(counter)).sum()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(server) = self.server.take() {
            let stop = server.stop_handle();
            stop.stop();
            stop.stop();
            // The test that expects an error checks it.
            let _ = server.join();
        }
    }
}

struct Client(BufReader<TcpStream>);

impl Client {
    fn write(&mut self, text: &str) {
        self.0.get_mut().write_all(text.as_bytes()).unwrap();
    }

    /// The next frame; `None` at the end of the connection.
    fn read(&mut self) -> Option<String> {
        let mut frame = Vec::new();
        match self.0.read_until(b'\0', &mut frame) {
            Ok(1..) => Some(String::from_utf8(frame).unwrap().trim_start().to_string()),
            _ => None,
        }
    }

    fn subscribe(&mut self, destination: &str) {
        self.write(&format!("SUBSCRIBE\nid:s\ndestination:{destination}\nreceipt:r\n\n\0"));
        assert!(self.read().unwrap().starts_with("RECEIPT"));
    }

    fn send(&mut self, destination: &str, body: &str) {
        self.write(&format!("SEND\ndestination:{destination}\nreceipt:r\n\n{body}\0"));
        assert!(self.read().unwrap().starts_with("RECEIPT"));
    }
}

/// An encoder that panics when it delivers.
struct Faulty;

impl Encoder for Faulty {
    fn deliver(
        &mut self,
        out: &mut Vec<u8>,
        _: &Recipient<'_>,
        _: &Delivery<'_>,
        shared: &mut SharedHeaders,
    ) {
        let kind = EncoderKinds::of_protocol(u8::MAX).kind(0);
        shared.append(kind, out, |out| {
            out.extend_from_slice(b"half a");
            panic!("planted");
        });
    }

    fn cancelled(&mut self, _: &mut Vec<u8>, _: &[u8], _: &Name) -> AfterCancel {
        panic!("planted");
    }

    fn cut(&mut self, _: &mut Vec<u8>, _: &CutReason) {
        panic!("planted");
    }
}

fn plant(running: &Running, id: ConnectionId) {
    running.shared().with_link(id, |link| link.outbound.set_encoder(Box::new(Faulty)));
}

/// SECURITY OPS-09.
#[test]
fn a_fault_while_a_delivery_is_written_ends_its_receiver_alone() {
    for (destination, cells) in [("/topic/t", 1), ("/queue/q", 1), ("/topic/t", 2), ("/queue/q", 2)] {
        let running = Running::start(cells);
        let mut faulty = running.login();
        let ids = running.connections();
        faulty.subscribe(destination);
        plant(&running, ids[0]);
        let mut healthy = running.login();
        healthy.subscribe(destination);
        let mut publisher = running.login();
        for body in ["one", "two", "three"] {
            publisher.send(destination, body);
        }
        assert_eq!(faulty.read(), None, "it is closed, and gets no half frame");
        let received: Vec<String> = (0..3).map_while(|_| healthy.read()).collect();
        assert_eq!(received.len(), 3, "no message is lost: {received:?}");
        assert_eq!(running.counted(Counter::Fault), 1);
    }
}

/// SECURITY OPS-09.
#[test]
fn a_fault_in_the_core_ends_the_broker() {
    let mut running = Running::start(1);
    let mut client = running.login();
    client.send("/queue/q", "waits");
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let _fatal = crate::cell::FatalIfPanicking(running.shared());
        panic!("planted");
    }));
    assert!(panicked.is_err());
    let server = running.server.take().expect("it runs");
    let error = server.join().unwrap_err().to_string();
    assert!(error.contains("a fault in the broker's core"), "{error}");
    let mut rest = Vec::new();
    assert!(matches!(client.0.read_to_end(&mut rest), Ok(_) | Err(_)), "the connection has ended");
}

/// Waits for an effect of other threads.
fn until(what: &str, is_so: impl Fn() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_secs(30), "{what}");
        std::thread::yield_now();
    }
}

/// A broker whose one listener is for AMQP, and a client that has sent half of a protocol header.
fn with_half_a_header(login_timeout: Seconds) -> (Running, Client) {
    let running = Running::start_configured(1, Arc::new(BuiltInUser), |config| {
        config.listeners.stomp = Vec::new();
        config.listeners.amqp = vec!["127.0.0.1:0".parse().expect("an address")];
        config.limits.login_timeout_s = login_timeout;
    });
    let mut client = running.connect();
    client.write("AMQP");
    (running, client)
}

/// SECURITY LIM-02.
#[test]
fn half_a_protocol_header_of_amqp_is_cut_by_the_login_time_out() {
    let start = Instant::now();
    let (_running, mut client) = with_half_a_header(Seconds(1));
    assert_eq!(client.read(), None);
    assert!(start.elapsed() >= Duration::from_secs(1), "the header may take this long");
}

#[test]
fn a_changed_user_ends_no_connection_that_has_not_chosen_its_version() {
    let (running, mut client) = with_half_a_header(Seconds(60));
    let is_of_socket = |link: &mut TcpLink| link.wire.client.number > 0;
    let cell = &running.shared().cells.get().unwrap()[0];
    until("the connection is served", || {
        cell.connections.keys().into_iter().any(|key| cell.connections.with(key, is_of_socket) == Some(true))
    });
    running.shared().renew_identity(&Name::from("guest"), None);
    client.write("\0\0\t\x01");
    let mut start = [0; 3];
    client.0.read_exact(&mut start).unwrap();
    assert_eq!(start, [1, 0, 0], "a method on channel 0");
}

#[test]
fn publishes_that_were_parked_are_replayed_although_nothing_more_is_read() {
    /// More than a turn may process.
    const MESSAGES: usize = 4 * TURN_COMMANDS_MAX;
    let running = Running::start(1);
    let mut client = running.login();
    running.raise_alarm(&mut client);
    let bytes = running.shared().memory.gauge().bytes();
    let frames: String =
        (0..MESSAGES).map(|number| format!("SEND\ndestination:/topic/t\nreceipt:{number}\n\n\0")).collect();
    client.write(&frames);
    let parked = bytes + frames.len();
    until("all frames are parked", || running.shared().memory.gauge().bytes() >= parked);
    running.end_alarm();
    for number in 0..MESSAGES {
        let receipt = client.read().expect("a receipt");
        assert_eq!(receipt, format!("RECEIPT\nreceipt-id:{number}\nimori-level:memory\n\n\0"));
    }
}

/// The memory held by a gone client may be what keeps the alarm up.
#[test]
fn a_client_that_is_gone_is_noticed_although_it_is_not_read() {
    let running = Running::start(1);
    let mut gone = running.login();
    let mut other = running.login();
    running.raise_alarm(&mut other);
    gone.write("SEND\ndestination:/queue/q\n\nwaits\0");
    // After this receipt the cell has handled what came before.
    other.write("SUBSCRIBE\nid:o\ndestination:/topic/o\nreceipt:r\n\n\0");
    assert!(other.read().unwrap().starts_with("RECEIPT"));
    assert_eq!(running.connections().len(), 2);
    // A reset: no data, no orderly end.
    socket2::SockRef::from(gone.0.get_ref()).set_linger(Some(Duration::ZERO)).unwrap();
    drop(gone);
    until("the connection has ended", || running.connections().len() == 1);
    assert!(running.shared().memory.is_alarmed());
}

/// ARCHITECTURE, invariant 10: order is kept from one publisher to one receiver, across cells and writers.
#[test]
fn many_writers_of_one_connection_keep_bytes_in_order() {
    const MESSAGES: usize = 2000;
    const PUBLISHERS: usize = 4;
    let running = Running::start(2);
    let mut receiver = running.login();
    receiver.subscribe("/topic/t");
    let publishers: Vec<_> = (0..PUBLISHERS)
        .map(|publisher| {
            let mut client = running.login();
            std::thread::spawn(move || {
                let frames: String = (0..MESSAGES)
                    .map(|number| format!("SEND\ndestination:/topic/t\n\n{publisher} {number}\0"))
                    .collect();
                client.write(&frames);
                client.send("/topic/end", "");
            })
        })
        .collect();
    let mut next = [0; PUBLISHERS];
    for _ in 0..PUBLISHERS * MESSAGES {
        let frame = receiver.read().expect("a message");
        assert!(frame.starts_with("MESSAGE\nsubscription:s\n"), "{frame:?}");
        let (_, body) = frame.split_once("\n\n").expect("a body");
        let (publisher, number) = body.trim_end_matches('\0').split_once(' ').expect("two numbers");
        let place = &mut next[publisher.parse::<usize>().unwrap()];
        assert_eq!(number.parse::<usize>().unwrap(), *place, "of publisher {publisher}");
        *place += 1;
    }
    for publisher in publishers {
        publisher.join().unwrap();
    }
}

/// Accepts users whose password is their name, once a test allows it; the built-in user at once.
struct Slow(Arc<Mutex<()>>);

impl Authenticator for Slow {
    fn verify_now(&self, login: &Login) -> Option<Verdict> {
        BuiltInUser.verify_now(login).filter(|verdict| *verdict != Verdict::Refused)
    }

    fn verify(&self, login: &Login) -> Verdict {
        drop(self.0.lock().unwrap());
        match &login.credentials {
            Credentials::Password { user: Some(user), password } if Some(user) == password.as_ref() => {
                let user = Name::new(user);
                Verdict::Granted(Identity { user, ..Identity::guest() })
            }
            Credentials::Password { user: Some(user), .. } if **user == *b"fault" => panic!("planted"),
            _ => Verdict::Refused,
        }
    }
}

fn connect(user: &str, password: &str) -> String {
    format!("CONNECT\naccept-version:1.2\nhost:/\nlogin:{user}\npasscode:{password}\n\n\0")
}

#[test]
fn a_login_that_takes_long_holds_up_nobody_else() {
    let gate = Arc::new(Mutex::new(()));
    let running = Running::start_with(1, Arc::new(Slow(Arc::clone(&gate))));
    let mut other = running.login();
    other.subscribe("/queue/q");
    let closed = gate.lock().unwrap();
    let mut slow: Vec<Client> = (0..4).map(|_| running.connect()).collect();
    for (number, client) in slow.iter_mut().enumerate() {
        client.write(&connect(&format!("user{number}"), &format!("user{}", number / 2 * 2)));
        client.write("SUBSCRIBE\nid:s\ndestination:/topic/any\nreceipt:r\n\n\0");
    }
    // Meanwhile the only cell serves others, and lets them log in.
    for _ in 0..10 {
        other.write("SEND\ndestination:/queue/q\n\nx\0");
        assert!(other.read().unwrap().starts_with("MESSAGE"));
    }
    drop(running.login());
    drop(closed);
    for (number, client) in slow.iter_mut().enumerate() {
        let answer = client.read().unwrap();
        let is_right = number % 2 == 0;
        assert_eq!(answer.starts_with("CONNECTED"), is_right, "{number}: {answer}");
        assert_eq!(answer.contains(&format!("user `user{number}`")), !is_right, "{number}: {answer}");
        assert_eq!(client.read().is_some_and(|receipt| receipt.starts_with("RECEIPT")), is_right);
    }
}

#[test]
fn who_goes_while_its_login_is_checked_leaves_its_verdict_to_nobody() {
    let gate = Arc::new(Mutex::new(()));
    let running = Running::start_with(1, Arc::new(Slow(Arc::clone(&gate))));
    let closed = gate.lock().unwrap();
    for _ in 0..4 {
        let mut gone = running.connect();
        gone.write(&connect("gone", "gone"));
        // A reset, which is noticed without reading.
        let socket = socket2::SockRef::from(gone.0.get_ref());
        socket.set_linger(Some(Duration::ZERO)).unwrap();
    }
    let mut other = running.login();
    while running.connections().len() > 1 {
        other.subscribe("/topic/any");
        other.write("UNSUBSCRIBE\nid:s\n\n\0");
    }
    // It takes the place of a login that went away.
    let mut late = running.connect();
    late.write(&connect("late", "wrong"));
    let mut faulty = running.connect();
    faulty.write(&connect("fault", "x"));
    drop(closed);
    assert!(late.read().unwrap().contains("user `late`"), "no verdict of another came to it");
    assert!(faulty.read().unwrap().contains("user `fault`"), "a fault in the check refuses");
    let mut right = running.connect();
    right.write(&connect("right", "right"));
    assert!(right.read().unwrap().starts_with("CONNECTED"), "the threads go on");
}

/// A broker with a TLS listener, and a client that trusts its certificate.
struct RunningTls {
    running: Running,
    config: Arc<rustls::ClientConfig>,
    certificate: rcgen::Certificate,
    key: rcgen::KeyPair,
    _files: TempDir,
}

impl RunningTls {
    fn start(cells: u16) -> RunningTls {
        let files = tempfile::tempdir().unwrap();
        let key = rcgen::KeyPair::generate().unwrap();
        let certificate = rcgen::CertificateParams::new(vec![String::from("localhost")]).unwrap();
        let certificate = certificate.self_signed(&key).unwrap();
        let (certificate_path, key_path) = (files.path().join("cert.pem"), files.path().join("key.pem"));
        fs::write(&certificate_path, certificate.pem()).unwrap();
        fs::write(&key_path, key.serialize_pem()).unwrap();
        fs::set_permissions(&key_path, fs::Permissions::from_mode(0o600)).unwrap();
        let running = Running::start_configured(cells, Arc::new(BuiltInUser), |config| {
            config.listeners.stomp_tls = vec!["127.0.0.1:0".parse().expect("an address")];
            (config.tls.certificate, config.tls.key) = ((&*certificate_path).into(), (&*key_path).into());
        });
        let mut roots = rustls::RootCertStore::empty();
        roots.add(certificate.der().clone()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config =
            rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let config = Arc::new(config.unwrap().with_root_certificates(roots).with_no_client_auth());
        RunningTls { running, config, certificate, key, _files: files }
    }

    fn log_in(&self) -> rustls::StreamOwned<rustls::ClientConnection, TcpStream> {
        let name = "localhost".try_into().unwrap();
        let tls = rustls::ClientConnection::new(Arc::clone(&self.config), name).unwrap();
        let listeners = self.running.server().listeners();
        let listener = listeners.iter().find(|listener| listener.name.is_tls).unwrap();
        let socket = TcpStream::connect(listener.address).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        let mut session = rustls::StreamOwned::new(tls, socket);
        session.write_all(b"CONNECT\naccept-version:1.2\nhost:/\n\n\0").unwrap();
        let mut answer = [0; 9];
        session.read_exact(&mut answer).unwrap();
        assert_eq!(&answer, b"CONNECTED");
        session
    }
}

/// A private key that records which threads sign with it.
#[derive(Debug, Clone)]
struct NotingKey {
    key: Arc<dyn rustls::sign::SigningKey>,
    threads: Arc<Mutex<Vec<String>>>,
}

#[derive(Debug)]
struct NotingSigner(Box<dyn rustls::sign::Signer>, Arc<Mutex<Vec<String>>>);

impl rustls::sign::SigningKey for NotingKey {
    fn choose_scheme(&self, offered: &[rustls::SignatureScheme]) -> Option<Box<dyn rustls::sign::Signer>> {
        Some(Box::new(NotingSigner(self.key.choose_scheme(offered)?, Arc::clone(&self.threads))))
    }

    fn algorithm(&self) -> rustls::SignatureAlgorithm {
        self.key.algorithm()
    }
}

impl rustls::sign::Signer for NotingSigner {
    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, rustls::Error> {
        let name = std::thread::current().name().unwrap_or_default().to_owned();
        self.1.lock().unwrap().push(name);
        self.0.sign(message)
    }

    fn scheme(&self) -> rustls::SignatureScheme {
        self.0.scheme()
    }
}

#[test]
fn a_handshake_is_computed_beside_the_cells() {
    let tls = RunningTls::start(1);
    let der = rustls::pki_types::PrivateKeyDer::try_from(tls.key.serialize_der()).unwrap();
    let key = rustls::crypto::ring::sign::any_supported_type(&der).unwrap();
    let noting = NotingKey { key, threads: Arc::default() };
    let threads = Arc::clone(&noting.threads);
    let certified = rustls::sign::CertifiedKey::new(vec![tls.certificate.der().clone()], Arc::new(noting));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let resolver = Arc::new(rustls::sign::SingleCertAndKey::from(certified));
    let config = config.unwrap().with_no_client_auth().with_cert_resolver(resolver);
    tls.running.shared().settings.load().tls.as_ref().unwrap().begin_with(config);
    let _session = tls.log_in();
    assert_eq!(*threads.lock().unwrap(), ["handshaker"]);
}

/// SECURITY LIM-04.
#[test]
fn a_flood_of_key_updates_ends_its_session_alone() {
    let tls = RunningTls::start(1);
    let (mut good, mut bad) = (tls.log_in(), tls.log_in());
    for _ in 0..1_000 {
        // With data in between, which would reset a limit on consecutive updates.
        let sent = bad.conn.refresh_traffic_keys().is_ok() && bad.write_all(b"\n").is_ok();
        if !sent || bad.flush().is_err() {
            break;
        }
    }
    let mut rest = Vec::new();
    let ended = bad.read_to_end(&mut rest).err().map(|error| error.kind());
    assert_ne!(ended, Some(io::ErrorKind::WouldBlock), "it is still open");
    good.conn.refresh_traffic_keys().unwrap();
    good.write_all(b"SUBSCRIBE\nid:1\ndestination:/topic/t\nreceipt:r\n\n\0").unwrap();
    let mut answer = String::new();
    while !answer.contains("receipt-id:r") {
        let mut bytes = [0; 256];
        let len = good.read(&mut bytes).unwrap();
        answer.push_str(&String::from_utf8_lossy(&bytes[..len]));
    }
}
