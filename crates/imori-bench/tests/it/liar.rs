//! A small STOMP broker that loses, repeats or alters one in every `one_in` deliveries, and can
//! break connections.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::io::{BufReader, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::{sleep, spawn};
use std::time::{Duration, Instant};

use crate::frame::Frame;

/// The lie about a delivery.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lie {
    #[default]
    None,
    /// The delivery never arrives.
    Lose,
    /// The delivery arrives twice.
    Repeat,
    /// The last byte of the body is altered.
    Alter,
    /// The delivery claims to belong to another run.
    Disguise,
}

/// The way in which messages are confirmed.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Confirming {
    /// At once.
    #[default]
    AtOnce,
    /// In pairs, in reverse order.
    Swapped,
    /// Never.
    Never,
    /// With this level in the receipt.
    At(&'static str),
    /// With the first level, except that every n-th message has the second.
    Mostly(&'static str, u64, &'static str),
}

impl Confirming {
    /// The level to report for message number `sends`.
    fn level(self, sends: u64) -> Option<&'static str> {
        match self {
            Confirming::At(level) => Some(level),
            Confirming::Mostly(_, one_in, other) if sends.is_multiple_of(one_in) => Some(other),
            Confirming::Mostly(level, ..) => Some(level),
            _ => None,
        }
    }
}

/// The moment at which connections break.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Breaking {
    #[default]
    Never,
    /// All of them at the message with this number, for good.
    All(u64),
    /// The sender's connection at each multiple of this number; it may be re-opened.
    Sender(u64),
}

/// Behaviour of the broker.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Habits {
    pub(crate) lie: Lie,
    /// Prefix of the destinations to which lies and breaks apply.
    pub(crate) about: &'static str,
    /// Every how many deliveries a lie is told.
    pub(crate) one_in: u64,
    pub(crate) confirming: Confirming,
    pub(crate) breaking: Breaking,
    /// Time per delivery, served one after another.
    pub(crate) service: Option<Duration>,
}

/// Counts of the broker's misdeeds.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FaultCounts {
    pub(crate) lies: u64,
    /// Number of broken connections.
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
    /// Header lines of SEND and SUBSCRIBE frames, for tests to check.
    seen: BTreeSet<String>,
    subscribers: HashMap<String, VecDeque<Subscriber>>,
    stored: HashMap<String, Vec<Frame>>,
    /// All connections; none is added once the broker is dead.
    sockets: Vec<TcpStream>,
    is_dead: bool,
    sends: u64,
    deliveries: u64,
    deeds: FaultCounts,
    server: Option<Sender<(Instant, Vec<u8>, TcpStream)>>,
}

struct Subscriber {
    id: String,
    socket: TcpStream,
}

impl Liar {
    /// Starts a broker that lies about one in every `one_in` deliveries to destinations with prefix `about`.
    pub(crate) fn start(lie: Lie, about: &'static str, one_in: u64) -> Liar {
        Liar::with(Habits { lie, about, one_in, ..Habits::default() })
    }

    /// Starts a broker with this behaviour.
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

    /// Whether a frame with this command and header line was received, such as `SEND
    /// persistent:true`.
    pub(crate) fn saw(&self, line: &str) -> bool {
        self.state.lock().unwrap().seen.contains(line)
    }

    pub(crate) fn deeds(&self) -> FaultCounts {
        self.state.lock().unwrap().deeds
    }
}

/// Starts a thread that writes deliveries one after another, each `takes` after the previous one.
fn serve_one_by_one(takes: Duration) -> Sender<(Instant, Vec<u8>, TcpStream)> {
    let (sender, receiver) = channel::<(Instant, Vec<u8>, TcpStream)>();
    spawn(move || {
        let mut free = Instant::now();
        for (arrived, bytes, socket) in receiver {
            // Based on the arrival time, so that sleeping too long does not add up.
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
        // Values that differ from frame to frame are not recorded.
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
                    // Frames that were already sent are read and discarded.
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

    /// Whether a SEND to `destination` breaks the sender's connection; also breaks it.
    fn breaks_at(&mut self, destination: &str, sender: &TcpStream) -> bool {
        self.sends += u64::from(destination.starts_with(self.habits.about));
        // A shutdown lets the client read everything sent before it, which a reset might not.
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
            // In the middle of each group, so that the run does not have to wait for its last message.
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

/// Ignores errors, because the broker does not care about a client that has left.
fn write(mut socket: &TcpStream, bytes: &[u8]) {
    let _ = socket.write_all(bytes);
}
