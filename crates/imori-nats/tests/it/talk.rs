//! Conversations written down: who sends what, and what everybody gets for it.
//!
//! `C1>` is a line that client 1 sends, `C1<` one that it gets; each ends with CR LF, which `^M^J` stands
//! for within a line and `^-` at its end leaves out. Without `>` and `<` a line says what else happens;
//! the rest is comments. What the clients get is written after each step. `TALK=write cargo test -p
//! imori-nats talk` writes it anew.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use std::{env, fs};

use imori_core::authorize::Identity;
use imori_core::broker::{self, Actor};
use imori_core::id::{ConnectionId, VhostId};
use imori_core::inbound::Inbound;
use imori_core::message::{Head, OriginId, Publication, TOPIC_EXCHANGE};
use imori_core::queue::QueueSettings;
use imori_core::turn::Next;
use imori_core::world::World;
use imori_nats::settings::Settings;

use crate::client::Client;
use crate::world::TinyWorld;

#[test]
#[allow(clippy::disallowed_methods, reason = "the conversations are files")]
fn conversations_go_as_written() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/talk");
    let mut files: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty());
    for file in files {
        let written = fs::read_to_string(&file).unwrap();
        let happened = Talk::run(&written);
        if env::var("TALK").is_ok_and(|mode| mode == "write") {
            fs::write(&file, &happened).unwrap();
        } else {
            assert_eq!(happened, written, "in {}, which went on like this:\n{happened}", file.display());
        }
    }
}

/// A conversation while it goes on.
struct Talk {
    world: TinyWorld,
    settings: Settings,
    clients: BTreeMap<String, Client>,
    /// The state of each client that was written last.
    told: BTreeMap<String, &'static str>,
    log: String,
}

impl Talk {
    fn run(text: &str) -> String {
        let settings = Settings {
            server_id: "ID".to_string(),
            server_name: "imori/0".to_string(),
            ..Settings::default()
        };
        let mut talk = Talk {
            world: TinyWorld::default(),
            settings,
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

    fn step(&mut self, lines: &[&str]) {
        let mut bytes = Vec::new();
        for line in lines {
            writeln!(self.log, "{line}").unwrap();
            if let Some((_, sent)) = line.split_once('>').filter(|_| sender(line).is_some()) {
                bytes.extend_from_slice(&input(sent.strip_prefix(' ').unwrap_or(sent)));
            }
        }
        match sender(lines[0]) {
            Some(name) => {
                self.open(name, true);
                let client = self.clients.get_mut(name).expect("it was opened");
                client.send(&self.world, &bytes);
            }
            None if lines[0].is_empty() || lines[0].starts_with('#') => return,
            None => self.happen(lines[0]),
        }
        self.log_output();
    }

    /// Connects a client; its first INFO is shown only where a line asks for it.
    fn open(&mut self, name: &str, is_loopback: bool) {
        if !self.clients.contains_key(name) {
            let settings = Arc::new(self.settings.clone());
            let mut client = Client::new(&self.world, &settings, is_loopback);
            assert!(client.output(&self.world).starts_with(b"INFO {"));
            self.clients.insert(name.to_string(), client);
        }
    }

    fn happen(&mut self, line: &str) {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["at", "most", bytes, "bytes", "parked"] => {
                self.settings.parked_bytes_max = bytes.parse().unwrap();
            }
            ["at", "most", count, "subscriptions"] => {
                self.settings.subscription_count_max = count.parse().unwrap();
            }
            ["alarm"] => self.world.set_alarmed(true),
            ["alarm", "over"] => {
                self.world.set_alarmed(false);
                for client in self.clients.values_mut() {
                    client.alarm_ended(&self.world);
                }
            }
            ["wait", seconds, "s"] => self.wait(seconds.parse().unwrap()),
            ["queue", name] => self.declare(name, &QueueSettings::default()),
            ["queue", a, b] => self.declare(&format!("{a} {b}"), &QueueSettings::default()),
            ["queue", name, "of", len] => {
                let length_max = Some(len.parse().unwrap());
                let overflow = imori_core::queue::Overflow::RejectPublish;
                self.declare(name, &QueueSettings { length_max, overflow, ..QueueSettings::default() });
            }
            ["publish", subject, body] => self.publish(subject, body),
            [name, "is", "greeted"] => {
                let settings = Arc::new(self.settings.clone());
                self.clients.insert(name.to_string(), Client::new(&self.world, &settings, true));
            }
            [name, "comes", "from", "elsewhere"] => self.open(name, false),
            [name, "is", "gone"] => self.clients.get_mut(name).expect("it came").leave(&self.world),
            ["the", "broker", "is", "going", "to", "stop"] => {
                for client in self.clients.values_mut() {
                    client.connection.stopping(&self.world);
                }
            }
            ["bytes", "are", "left"] => {
                let charged = if self.world.charged() == 0 { "nothing" } else { "bytes" };
                writeln!(self.log, "C0< {charged} charged").unwrap();
            }
            ["ready", "in", queue] => {
                let id = self.world.with_router(|_, table| table.queue(VhostId(0), queue.as_bytes()));
                let id = id.expect("it is there");
                let ready = self.world.with_queue(id, |queue| queue.ready_len()).unwrap();
                writeln!(self.log, "C0< {ready} ready").unwrap();
            }
            ["bindings", "of", subject] => {
                let headers = imori_core::route::NoHeaders;
                let targets = self.world.with_router(|_, table| {
                    table
                        .route(VhostId(0), TOPIC_EXCHANGE, subject.as_bytes(), &headers)
                        .unwrap()
                        .target_count()
                });
                writeln!(self.log, "C0< {targets} targets").unwrap();
            }
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

    fn declare(&self, name: &str, settings: &QueueSettings) {
        as_somebody(|actor| {
            broker::declare_queue(&self.world, actor, name.as_bytes(), settings, true).unwrap();
        });
    }

    /// Publishes as another protocol would.
    fn publish(&self, subject: &str, body: &str) {
        let head = Head::new(OriginId::BROKER);
        let publication = Publication::new(&head, b"", body.as_bytes());
        let subject = subject.replace("^M", "\r").replace("^J", "\n").replace("^_", " ");
        as_somebody(|actor| {
            broker::publish(&self.world, actor, TOPIC_EXCHANGE, subject.as_bytes(), &publication).unwrap();
        });
    }

    fn log_output(&mut self) {
        for (name, client) in &mut self.clients {
            for line in output(&client.output(&self.world)) {
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

fn as_somebody(act: impl FnOnce(&Actor<'_>)) {
    let identity = Identity::guest();
    let connection = ConnectionId { cell: 0, slot: u32::MAX, generation: 0 };
    act(&Actor { identity: &identity, connection, vhost: VhostId(0) });
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

/// The bytes of a line that is sent.
fn input(line: &str) -> Vec<u8> {
    let (line, end) = line.strip_suffix("^-").map_or((line, "\r\n"), |line| (line, ""));
    (line.replace("^M", "\r").replace("^J", "\n") + end).into_bytes()
}

/// The lines of what was got.
fn output(bytes: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(bytes);
    text.split_terminator("\r\n").map(|line| line.replace('\r', "^M").replace('\n', "^J")).collect()
}
