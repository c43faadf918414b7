//! Conversations in files: what each client sends and receives, step by step.
//!
//! `C1>` is a line that client 1 sends, `C1<` one that it receives; a [`Dialogue`] defines how
//! bytes are written. Other lines are events, or comments if they start with `#` or `= `. Running a
//! conversation regenerates its output lines; `TALK=write cargo test -p imori-conversations talk`
//! saves them.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use std::{env, fs};

use imori_core::inbound::{Accept, Inbound as _};
use imori_core::message::{HeaderReader, OriginId};
use imori_core::room::Unavailable;
use imori_core::turn::Next;
use imori_core::world::World;
use imori_testkit::{Client, TestWorld};

/// A protocol whose conversations can be written in files.
pub trait Dialogue: Sized {
    /// The folder of its conversations, below `tests/talk`.
    const FOLDER: &'static str;

    /// The inbound half of a connection.
    type Connection: Accept<Settings: Clone>;

    /// The header reader for messages of this origin.
    fn header_reader(origin: OriginId) -> &'static dyn HeaderReader;

    /// The settings of the first client.
    fn settings() -> Settings<Self>;

    /// Converts a sent line to bytes.
    fn input(line: &str) -> Vec<u8>;

    /// Converts received bytes to lines.
    fn output(bytes: &[u8]) -> Vec<String>;

    /// Reads the greeting of a new client, if the protocol has one.
    fn greeted(_client: &mut Client<Self::Connection>, _world: &TestWorld) {}

    /// Performs an event that only this protocol knows; returns `false` for any other line.
    fn happen(talk: &mut Talk<Self>, words: &[&str]) -> bool;
}

/// The settings shared by all connections of a protocol.
pub type Settings<D> = <<D as Dialogue>::Connection as Accept>::Settings;

/// Runs every conversation of a protocol and compares it with its file.
///
/// # Panics
/// Panics if a conversation takes a different course.
#[allow(clippy::disallowed_methods, reason = "the conversations are files")]
pub(crate) fn check_conversations<D: Dialogue>() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/talk").join(D::FOLDER);
    let mut files: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty());
    for file in files {
        let written = fs::read_to_string(&file).unwrap();
        let happened = Talk::<D>::run(&written);
        if env::var("TALK").is_ok_and(|mode| mode == "write") {
            fs::write(&file, &happened).unwrap();
        } else {
            assert_eq!(happened, written, "in {}, which went on like this:\n{happened}", file.display());
        }
    }
}

/// A running conversation.
pub struct Talk<D: Dialogue> {
    /// The world of its clients.
    pub world: TestWorld,
    /// The settings of clients that connect from now on.
    pub settings: Settings<D>,
    /// Its clients by name.
    pub clients: BTreeMap<String, Client<D::Connection>>,
    /// The last logged state of each client.
    told: BTreeMap<String, &'static str>,
    log: String,
}

impl<D: Dialogue> Talk<D> {
    fn run(text: &str) -> String {
        let mut talk = Talk::<D> {
            world: TestWorld::reading(D::header_reader),
            settings: D::settings(),
            clients: BTreeMap::new(),
            told: BTreeMap::new(),
            log: String::new(),
        };
        let steps: Vec<&str> = text.lines().filter(|line| !is_output(line)).collect();
        for block in steps.chunk_by(|a, b| sender(a).is_some() && sender(a) == sender(b)) {
            talk.step(block);
        }
        for client in talk.clients.values_mut() {
            client.leave(&talk.world);
        }
        talk.log
    }

    /// Connects a client, unless it is connected already.
    pub fn open(&mut self, name: &str, is_loopback: bool) {
        if !self.clients.contains_key(name) {
            self.open_greeted(name, is_loopback);
            D::greeted(self.clients.get_mut(name).expect("it was opened"), &self.world);
        }
    }

    /// Connects a client and leaves its greeting unread.
    pub fn open_greeted(&mut self, name: &str, is_loopback: bool) {
        let settings = Arc::new(self.settings.clone());
        self.clients.insert(name.to_string(), Client::new(&self.world, &settings, is_loopback));
    }

    /// Logs a line of output from the world itself.
    pub fn note(&mut self, text: &str) {
        writeln!(self.log, "C0< {text}").unwrap();
    }

    /// `nothing` or `bytes`: whether memory is charged for waiting messages.
    pub fn charged(&self) -> &'static str {
        if self.world.charged() == 0 { "nothing" } else { "bytes" }
    }

    fn step(&mut self, lines: &[&str]) {
        let mut bytes = Vec::new();
        for line in lines {
            writeln!(self.log, "{line}").unwrap();
            if let Some((_, sent)) = line.split_once('>').filter(|_| sender(line).is_some()) {
                bytes.extend_from_slice(&D::input(sent.strip_prefix(' ').unwrap_or(sent)));
            }
        }
        match sender(lines[0]) {
            Some(name) => {
                self.open(name, true);
                let client = self.clients.get_mut(name).expect("it was opened");
                client.send(&self.world, &bytes);
            }
            None if lines[0].is_empty() || lines[0].starts_with('#') || lines[0].starts_with("= ") => return,
            None => self.happen(lines[0]),
        }
        self.log_output();
    }

    fn happen(&mut self, line: &str) {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            _ if D::happen(self, &words) => {}
            ["alarm"] => self.world.set_alarmed(true),
            ["alarm", "over"] => {
                self.world.set_alarmed(false);
                for client in self.clients.values_mut() {
                    client.alarm_ended(&self.world);
                }
            }
            ["the", "disk", "is", "late"] => self.world.hold_disk(),
            ["the", "disk", "has", "all"] => self.world.sync_disk(),
            ["the", "disk", "is", "full"] => self.world.refuse_records(Some(Unavailable::DiskFull)),
            ["another", "node", "leads"] => self.world.refuse_records(Some(Unavailable::NotLeader)),
            ["too", "few", "nodes"] => self.world.refuse_records(Some(Unavailable::NoQuorum)),
            ["records", "are", "taken"] => self.world.refuse_records(None),
            ["wait", seconds, "s"] => self.wait(seconds.parse().unwrap()),
            ["the", "broker", "is", "going", "to", "stop"] => {
                for client in self.clients.values_mut() {
                    client.connection.stopping(&self.world);
                }
            }
            ["delete", queue] => self.world.delete_queue(queue),
            ["bytes", "are", "left"] => self.note(&format!("{} charged", self.charged())),
            ["queues", "are", "left"] => {
                self.note(&format!("{} queues, {} charged", self.world.queues_len(), self.charged()));
            }
            ["ready", "in", queue] => self.note(&format!("{} ready", self.world.ready_len(queue))),
            [name, "comes", "from", "elsewhere"] => self.open(name, false),
            [name, "is", "gone"] => self.clients.get_mut(name).expect("it came").leave(&self.world),
            _ => panic!("nobody knows what `{line}` means"),
        }
    }

    fn wait(&mut self, seconds: u64) {
        let until = self.world.now().after(Duration::from_secs(seconds));
        for client in self.clients.values_mut() {
            client.pass(&self.world, until);
        }
        self.world.set_time(until);
    }

    fn log_output(&mut self) {
        for (name, client) in &mut self.clients {
            for line in D::output(&client.output(&self.world)) {
                writeln!(self.log, "{}", format!("{name}< {line}").trim_end_matches(' ')).unwrap();
            }
            let state = match client.next {
                Next::Close => "closed",
                Next::Parked => "not read",
                _ => "",
            };
            let told = self.told.entry(name.clone()).or_default();
            if *told != state && !state.is_empty() {
                writeln!(self.log, "{name}< ({state})").unwrap();
            }
            *told = state;
        }
    }
}

fn is_output(line: &str) -> bool {
    line.split_once('<').is_some_and(|(name, _)| is_name(name))
}

fn sender(line: &str) -> Option<&str> {
    line.split_once('>').map(|(name, _)| name).filter(|name| is_name(name))
}

fn is_name(text: &str) -> bool {
    text.strip_prefix('C')
        .is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}
