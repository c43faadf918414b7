//! A small NATS server that loses, repeats or alters one in every `one_in` deliveries.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread::spawn;

use crate::liar::Lie;

const INFO: &[u8] = b"INFO {\"server_id\":\"liar\",\"server_name\":\"liar\",\"version\":\"1\"} \r\n";

/// The server.
pub(crate) struct NatsLiar {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
}

struct State {
    lie: Lie,
    /// Prefix of the subjects to lie about.
    about: &'static str,
    one_in: u64,
    subscriptions: Vec<Subscription>,
    deliveries: u64,
    lies: u64,
}

struct Subscription {
    pattern: String,
    group: Option<String>,
    sid: String,
    socket: TcpStream,
}

impl NatsLiar {
    /// Starts a server that lies about one in every `one_in` deliveries of subjects with prefix `about`.
    pub(crate) fn start(lie: Lie, about: &'static str, one_in: u64) -> NatsLiar {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let state = State { lie, about, one_in, subscriptions: Vec::new(), deliveries: 0, lies: 0 };
        let state = Arc::new(Mutex::new(state));
        let shared = Arc::clone(&state);
        spawn(move || {
            for socket in listener.incoming().map_while(Result::ok) {
                let shared = Arc::clone(&shared);
                spawn(move || serve(&socket, &shared));
            }
        });
        NatsLiar { address, state }
    }

    pub(crate) fn url(&self) -> String {
        format!("nats://{}", self.address)
    }

    pub(crate) fn lies(&self) -> u64 {
        self.state.lock().unwrap().lies
    }
}

/// Serves a client until it closes the connection or sends an unknown command.
fn serve(socket: &TcpStream, state: &Mutex<State>) -> Option<()> {
    socket.set_nodelay(true).unwrap();
    write(socket, INFO);
    let mut input = BufReader::new(socket.try_clone().unwrap());
    loop {
        let mut line = String::new();
        if input.read_line(&mut line).ok()? == 0 {
            return None;
        }
        let mut words = line.split_whitespace();
        match (words.next()?, words.collect::<Vec<_>>().as_slice()) {
            ("CONNECT", _) => {}
            ("PING", _) => write(socket, b"PONG\r\n"),
            ("SUB", [pattern, group @ .., sid]) => {
                let subscription = Subscription {
                    pattern: (*pattern).to_owned(),
                    group: group.first().map(|group| (*group).to_owned()),
                    sid: (*sid).to_owned(),
                    socket: socket.try_clone().unwrap(),
                };
                state.lock().unwrap().subscriptions.push(subscription);
            }
            ("PUB", [subject, reply @ .., size]) => {
                let mut body = vec![0; size.parse().ok()?];
                input.read_exact(&mut body).ok()?;
                input.read_exact(&mut [0; 2]).ok()?;
                state.lock().unwrap().publish(subject, reply.first().copied(), &body);
            }
            _ => return None,
        }
    }
}

impl State {
    fn publish(&mut self, subject: &str, reply: Option<&str>, body: &[u8]) {
        let mut groups: Vec<&str> = Vec::new();
        for subscription in self.subscriptions.iter().filter(|subscription| subscription.hears(subject)) {
            if let Some(group) = &subscription.group {
                if groups.contains(&group.as_str()) {
                    continue;
                }
                groups.push(group);
            }
            let is_known = self.lie != Lie::None && subject.starts_with(self.about);
            self.deliveries += u64::from(is_known);
            // In the middle of each group, so that the run does not have to wait for its last message.
            let is_lie = is_known && self.deliveries % self.one_in == self.one_in / 2;
            self.lies += u64::from(is_lie);
            let lie = if is_lie { self.lie } else { Lie::None };
            let bytes = message(subject, &subscription.sid, reply, body, lie);
            match lie {
                Lie::Lose => {}
                Lie::Repeat => write(&subscription.socket, &bytes.repeat(2)),
                _ => write(&subscription.socket, &bytes),
            }
        }
    }
}

impl Subscription {
    fn hears(&self, subject: &str) -> bool {
        match self.pattern.strip_suffix('*') {
            Some(prefix) => subject.starts_with(prefix),
            None => subject == self.pattern,
        }
    }
}

fn message(subject: &str, sid: &str, reply: Option<&str>, body: &[u8], lie: Lie) -> Vec<u8> {
    let mut subject = subject.to_owned();
    let mut body = body.to_vec();
    match lie {
        Lie::Alter => {
            if let Some(last) = body.last_mut() {
                *last ^= 1;
            }
        }
        Lie::Disguise => {
            // The first byte of the body identifies the run, and so does the inbox.
            if let Some(first) = body.first_mut() {
                *first ^= 1;
            }
            subject = subject.replace(|digit: char| digit.is_ascii_hexdigit(), "0");
        }
        Lie::None | Lie::Lose | Lie::Repeat => {}
    }
    let reply = reply.map(|reply| format!("{reply} ")).unwrap_or_default();
    let mut bytes = format!("MSG {subject} {sid} {reply}{}\r\n", body.len()).into_bytes();
    bytes.extend_from_slice(&body);
    bytes.extend_from_slice(b"\r\n");
    bytes
}

/// Ignores errors, because the server does not care about a client that has left.
fn write(mut socket: &TcpStream, bytes: &[u8]) {
    let _ = socket.write_all(bytes);
}
