//! A small STOMP broker that loses, repeats or changes one delivery in so many.

use std::collections::{HashMap, VecDeque};
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread::spawn;

/// What the broker does to a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lie {
    None,
    /// It never arrives.
    Lose,
    /// It arrives twice.
    Repeat,
    /// The last byte of its body is another one.
    Alter,
    /// It says that it is somebody else's.
    Disguise,
}

/// The broker.
pub(crate) struct Liar {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    subscribers: HashMap<String, VecDeque<Subscriber>>,
    stored: HashMap<String, Vec<Frame>>,
    connections: usize,
    deliveries: u64,
    lies: u64,
}

struct Subscriber {
    id: String,
    socket: TcpStream,
}

#[derive(Clone)]
struct Frame {
    command: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

/// Which deliveries are lied about.
#[derive(Clone, Copy)]
struct Plan {
    lie: Lie,
    about: &'static str,
    one_in: u64,
}

impl Liar {
    /// Starts to lie about one delivery in so many, of destinations with this prefix.
    pub(crate) fn start(lie: Lie, about: &'static str, one_in: u64) -> Liar {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(Mutex::new(State::default()));
        let shared = Arc::clone(&state);
        spawn(move || {
            for socket in listener.incoming().map_while(Result::ok) {
                let shared = Arc::clone(&shared);
                spawn(move || serve(&socket, &shared, Plan { lie, about, one_in }));
            }
        });
        Liar { address, state }
    }

    pub(crate) fn url(&self) -> String {
        format!("stomp://{}", self.address)
    }

    pub(crate) fn lies(&self) -> u64 {
        self.state.lock().unwrap().lies
    }
}

fn serve(socket: &TcpStream, state: &Mutex<State>, plan: Plan) {
    socket.set_nodelay(true).unwrap();
    let mut input = BufReader::new(socket.try_clone().unwrap());
    let replies = {
        let mut state = state.lock().unwrap();
        state.connections += 1;
        format!("/reply-queue/{}", state.connections)
    };
    while let Some(mut frame) = read(&mut input) {
        let mut state = state.lock().unwrap();
        let destination = frame.header("destination").to_owned();
        match frame.command.as_str() {
            "CONNECT" => {
                state.subscribe(&replies, "/temp-queue/", socket);
                write(socket, b"CONNECTED\nversion:1.2\nserver:liar/1\n\n\0");
            }
            "SUBSCRIBE" => {
                let id = frame.header("id").to_owned();
                state.subscribe(&destination, &id, socket);
                for stored in state.stored.remove(&destination).unwrap_or_default() {
                    state.deliver(&destination, &stored, plan);
                }
            }
            "SEND" => {
                for (name, value) in &mut frame.headers {
                    if name == "reply-to" && value.starts_with("/temp-queue/") {
                        value.clone_from(&replies);
                    }
                }
                state.deliver(&destination, &frame, plan);
            }
            _ => {}
        }
        let receipt = frame.header("receipt");
        if !receipt.is_empty() {
            write(socket, format!("RECEIPT\nreceipt-id:{receipt}\n\n\0").as_bytes());
        }
    }
}

impl State {
    fn subscribe(&mut self, destination: &str, id: &str, socket: &TcpStream) {
        let subscriber = Subscriber { id: id.to_owned(), socket: socket.try_clone().unwrap() };
        self.subscribers.entry(destination.to_owned()).or_default().push_back(subscriber);
    }

    fn deliver(&mut self, destination: &str, frame: &Frame, plan: Plan) {
        let Some(subscribers) = self.subscribers.get_mut(destination) else {
            self.stored.entry(destination.to_owned()).or_default().push(frame.clone());
            return;
        };
        let receivers = if destination.starts_with("/topic/") { subscribers.len() } else { 1 };
        for _ in 0..receivers {
            let is_known = plan.lie != Lie::None && destination.starts_with(plan.about);
            self.deliveries += u64::from(is_known);
            // Never the last of a round number, so that the run need not wait for it.
            let is_lie = is_known && self.deliveries % plan.one_in == plan.one_in / 2;
            self.lies += u64::from(is_lie);
            let lie = if is_lie { plan.lie } else { Lie::None };
            if let Some(receiver) = subscribers.pop_front() {
                let bytes = frame.message(&receiver.id, lie);
                match lie {
                    Lie::Lose => {}
                    Lie::Repeat => write(&receiver.socket, &bytes.repeat(2)),
                    _ => write(&receiver.socket, &bytes),
                }
                subscribers.push_back(receiver);
            }
        }
    }
}

impl Frame {
    fn header(&self, name: &str) -> &str {
        self.headers.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value)
    }

    fn message(&self, subscription: &str, lie: Lie) -> Vec<u8> {
        let mut frame = self.clone();
        match lie {
            Lie::Alter => {
                if let Some(last) = frame.body.last_mut() {
                    *last ^= 1;
                }
            }
            Lie::Disguise => {
                // The first byte of either names the run.
                if let Some(first) = frame.body.first_mut() {
                    *first ^= 1;
                }
                for (_, value) in frame.headers.iter_mut().filter(|(name, _)| name == "correlation-id") {
                    *value = value.replace(|digit: char| digit.is_ascii_hexdigit(), "0");
                }
            }
            Lie::None | Lie::Lose | Lie::Repeat => {}
        }
        let mut bytes = format!("MESSAGE\nsubscription:{subscription}\nack:{subscription}-1\n").into_bytes();
        for (name, value) in frame.headers.iter().filter(|(name, _)| name != "receipt") {
            bytes.extend_from_slice(format!("{name}:{value}\n").as_bytes());
        }
        bytes.push(b'\n');
        bytes.extend_from_slice(&frame.body);
        bytes.push(0);
        bytes
    }
}

fn read(input: &mut impl BufRead) -> Option<Frame> {
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if input.read_line(&mut line).ok()? == 0 {
            return None;
        }
        match line.trim_end_matches('\n').trim_start_matches('\0') {
            "" if lines.is_empty() => {}
            "" => break,
            line => lines.push(line.to_owned()),
        }
    }
    let mut lines = lines.into_iter();
    let command = lines.next()?;
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(':').map(|(name, value)| (name.to_owned(), value.to_owned())))
        .collect();
    let length =
        headers.iter().find(|(name, _)| name == "content-length").and_then(|(_, value)| value.parse().ok());
    let mut body = Vec::new();
    match length {
        Some(length) => {
            body.resize(length, 0);
            input.read_exact(&mut body).ok()?;
            input.read_exact(&mut [0]).ok()?;
        }
        None => {
            input.read_until(0, &mut body).ok()?;
            body.pop();
        }
    }
    Some(Frame { command, headers, body })
}

/// A client that is gone is no concern of the broker.
fn write(mut socket: &TcpStream, bytes: &[u8]) {
    let _ = socket.write_all(bytes);
}
