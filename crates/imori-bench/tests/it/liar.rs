//! A small STOMP broker that loses, repeats or changes one delivery in so many, and may do worse.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::io::{BufReader, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::{sleep, spawn};
use std::time::{Duration, Instant};

use crate::frame::Frame;

/// The lie that the broker tells about a delivery.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lie {
    #[default]
    None,
    /// The delivery never arrives.
    Lose,
    /// The delivery arrives twice.
    Repeat,
    /// The last byte of its body is another one.
    Alter,
    /// The delivery says that it is somebody else's.
    Disguise,
}

/// How it confirms what is sent.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Confirming {
    /// At once.
    #[default]
    AtOnce,
    /// In pairs, the second of them first.
    Swapped,
    /// Never.
    Never,
    /// With this level, which the broker says.
    At(&'static str),
    /// The first level, but one message in so many has the second.
    Mostly(&'static str, u64, &'static str),
}

impl Confirming {
    /// The level that it says of the message that came as this number.
    fn level(self, sends: u64) -> Option<&'static str> {
        match self {
            Confirming::At(level) => Some(level),
            Confirming::Mostly(_, one_in, other) if sends.is_multiple_of(one_in) => Some(other),
            Confirming::Mostly(level, ..) => Some(level),
            _ => None,
        }
    }
}

/// When its connections break.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Breaking {
    #[default]
    Never,
    /// All of them at the message of this number, for good.
    All(u64),
    /// The connection of the sender, at each multiple of this number; it may come back.
    Sender(u64),
}

/// How a broker behaves.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Habits {
    pub(crate) lie: Lie,
    /// Which destinations that concerns, and what breaks: those with this prefix.
    pub(crate) about: &'static str,
    /// One delivery in so many is lied about.
    pub(crate) one_in: u64,
    pub(crate) confirming: Confirming,
    pub(crate) breaking: Breaking,
    /// The time that each delivery takes, one after another.
    pub(crate) service: Option<Duration>,
}

/// The counts of the broker's actions.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Deeds {
    pub(crate) lies: u64,
    /// Connections that it broke.
    pub(crate) breaks: u64,
}

/// The broker.
pub(crate) struct Liar {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    habits: Habits,
    /// Header lines of SEND and SUBSCRIBE that tests look at, each once.
    seen: BTreeSet<String>,
    subscribers: HashMap<String, VecDeque<Subscriber>>,
    stored: HashMap<String, Vec<Frame>>,
    /// All connections; none are added once it is dead.
    sockets: Vec<TcpStream>,
    is_dead: bool,
    sends: u64,
    deliveries: u64,
    deeds: Deeds,
    server: Option<Sender<(Instant, Vec<u8>, TcpStream)>>,
}

struct Subscriber {
    id: String,
    socket: TcpStream,
}

impl Liar {
    /// Starts to lie about one delivery in so many, of destinations with this prefix.
    pub(crate) fn start(lie: Lie, about: &'static str, one_in: u64) -> Liar {
        Liar::with(Habits { lie, about, one_in, ..Habits::default() })
    }

    /// Starts one with habits.
    pub(crate) fn with(habits: Habits) -> Liar {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = habits.service.map(serve_one_by_one);
        let state = Arc::new(Mutex::new(State { habits, server, ..State::default() }));
        let shared = Arc::clone(&state);
        spawn(move || {
            for socket in listener.incoming().map_while(Result::ok) {
                let shared = Arc::clone(&shared);
                spawn(move || serve(&socket, &shared));
            }
        });
        Liar { address, state }
    }

    pub(crate) fn url(&self) -> String {
        format!("stomp://{}", self.address)
    }

    pub(crate) fn lies(&self) -> u64 {
        self.deeds().lies
    }

    /// Header lines that were sent to it, with their command: `SEND persistent:true`.
    pub(crate) fn saw(&self, line: &str) -> bool {
        self.state.lock().unwrap().seen.contains(line)
    }

    pub(crate) fn deeds(&self) -> Deeds {
        self.state.lock().unwrap().deeds
    }
}

/// Writes one delivery after another, each as long after the one before it as it takes to serve.
fn serve_one_by_one(takes: Duration) -> Sender<(Instant, Vec<u8>, TcpStream)> {
    let (sender, receiver) = channel::<(Instant, Vec<u8>, TcpStream)>();
    spawn(move || {
        let mut free = Instant::now();
        for (arrived, bytes, socket) in receiver {
            // Counted from arrival, so that a sleep that takes too long does not add up.
            free = free.max(arrived) + takes;
            sleep(free.saturating_duration_since(Instant::now()));
            write(&socket, &bytes);
        }
    });
    sender
}

fn serve(socket: &TcpStream, state: &Mutex<State>) {
    socket.set_nodelay(true).unwrap();
    let mut input = BufReader::new(socket.try_clone().unwrap());
    let replies = {
        let mut state = state.lock().unwrap();
        if state.is_dead {
            return;
        }
        state.sockets.push(socket.try_clone().unwrap());
        format!("/reply-queue/{}", state.sockets.len())
    };
    let mut kept_back = None;
    while let Some(mut frame) = Frame::read(&mut input) {
        let mut state = state.lock().unwrap();
        let destination = frame.header("destination").to_owned();
        // What differs from frame to frame is of no interest.
        let lines = frame.headers.iter().filter(|(name, _)| name != "receipt" && name != "id");
        let lines: Vec<String> =
            lines.map(|(name, value)| format!("{} {name}:{value}", frame.command)).collect();
        if matches!(frame.command.as_str(), "SEND" | "SUBSCRIBE") {
            state.seen.extend(lines);
        }
        match frame.command.as_str() {
            "CONNECT" => {
                state.subscribe(&replies, "/temp-queue/", socket);
                write(socket, b"CONNECTED\nversion:1.2\nserver:liar/1\n\n\0");
            }
            "SUBSCRIBE" => {
                let id = frame.header("id").to_owned();
                state.subscribe(&destination, &id, socket);
                for stored in state.stored.remove(&destination).unwrap_or_default() {
                    state.deliver(&destination, &stored);
                }
            }
            "SEND" => {
                if state.breaks_at(&destination, socket) {
                    drop(state);
                    // What it had sent before that is read and forgotten.
                    while Frame::read(&mut input).is_some() {}
                    return;
                }
                for (name, value) in &mut frame.headers {
                    if name == "reply-to" && value.starts_with("/temp-queue/") {
                        value.clone_from(&replies);
                    }
                }
                state.deliver(&destination, &frame);
            }
            _ => {}
        }
        let receipt = frame.header("receipt");
        if !receipt.is_empty() {
            let level = state.habits.confirming.level(state.sends).filter(|_| frame.command == "SEND");
            let level = level.map_or_else(String::new, |level| format!("imori-level:{level}\n"));
            let receipt = format!("RECEIPT\nreceipt-id:{receipt}\n{level}\n\0");
            match (state.habits.confirming, frame.command == "SEND") {
                (Confirming::AtOnce | Confirming::At(_) | Confirming::Mostly(..), _) | (_, false) => {
                    write(socket, receipt.as_bytes());
                }
                (Confirming::Never, true) => {}
                (Confirming::Swapped, true) => match kept_back.take() {
                    Some(first) => write(socket, format!("{receipt}{first}").as_bytes()),
                    None => kept_back = Some(receipt),
                },
            }
        }
    }
}

impl State {
    fn subscribe(&mut self, destination: &str, id: &str, socket: &TcpStream) {
        let subscriber = Subscriber { id: id.to_owned(), socket: socket.try_clone().unwrap() };
        self.subscribers.entry(destination.to_owned()).or_default().push_back(subscriber);
    }

    /// Whether the sender's connection breaks now, and those of others with it.
    fn breaks_at(&mut self, destination: &str, sender: &TcpStream) -> bool {
        self.sends += u64::from(destination.starts_with(self.habits.about));
        // A client reads all that came before the end of a stream, which it may not after a reset.
        match self.habits.breaking {
            Breaking::All(number) if self.sends >= number => {
                self.is_dead = true;
                for socket in self.sockets.drain(..) {
                    self.deeds.breaks += u64::from(socket.shutdown(Shutdown::Write).is_ok());
                }
                true
            }
            Breaking::Sender(number)
                if self.sends.is_multiple_of(number) && destination.starts_with(self.habits.about) =>
            {
                self.deeds.breaks += u64::from(sender.shutdown(Shutdown::Write).is_ok());
                true
            }
            _ => false,
        }
    }

    fn deliver(&mut self, destination: &str, frame: &Frame) {
        let Some(subscribers) = self.subscribers.get_mut(destination) else {
            self.stored.entry(destination.to_owned()).or_default().push(frame.clone());
            return;
        };
        let Habits { lie, about, one_in, .. } = self.habits;
        let receivers = if destination.starts_with("/topic/") { subscribers.len() } else { 1 };
        for _ in 0..receivers {
            let is_known = lie != Lie::None && destination.starts_with(about);
            self.deliveries += u64::from(is_known);
            // Never the last of a round number, so that the run need not wait for it.
            let is_lie = is_known && self.deliveries % one_in == one_in / 2;
            self.deeds.lies += u64::from(is_lie);
            let lie = if is_lie { lie } else { Lie::None };
            if let Some(receiver) = subscribers.pop_front() {
                let bytes = frame.message(&receiver.id, lie);
                match &self.server {
                    _ if lie == Lie::Lose => {}
                    Some(server) => {
                        let socket = receiver.socket.try_clone().unwrap();
                        server.send((Instant::now(), bytes, socket)).unwrap();
                    }
                    None => write(&receiver.socket, &bytes),
                }
                subscribers.push_back(receiver);
            }
        }
    }
}

/// A client that is gone is no concern of the broker.
fn write(mut socket: &TcpStream, bytes: &[u8]) {
    let _ = socket.write_all(bytes);
}
