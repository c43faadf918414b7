//! Conversations written down: who sends what, and what everybody gets for it.
//!
//! `C1>` is a line that client 1 sends, `C1<` one that it gets; `^@` is NUL and ends its line.
//! Without `>` and `<` a line says what else happens; the rest is comments. What the clients get
//! is written after each step. `TALK=write cargo test -p imori-stomp talk` writes it anew.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use std::{env, fs};

use imori_core::authorize::Identity;
use imori_core::broker::{self, Actor};
use imori_core::id::{ConnectionId, VhostId};
use imori_core::name::Name;
use imori_core::route::ExchangeKind;
use imori_core::turn::Next;
use imori_core::world::World;
use imori_stomp::settings::Settings;

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
            vhosts: vec![(Name::from("/"), VhostId(0)), (Name::from("tenant"), VhostId(1))],
            server: "imori/0".to_string(),
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

    fn open(&mut self, name: &str, is_loopback: bool) {
        if !self.clients.contains_key(name) {
            let settings = Arc::new(self.settings.clone());
            self.clients.insert(name.to_string(), Client::new(&self.world, &settings, is_loopback));
        }
    }

    fn happen(&mut self, line: &str) {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["keep", "open", "after", "error"] => self.settings.keeps_open_after_error = true,
            ["at", "most", bytes, "bytes", "parked"] => {
                self.settings.parked_bytes_max = bytes.parse().unwrap();
            }
            ["at", "most", count, "subscriptions"] => {
                self.settings.subscription_count_max = count.parse().unwrap();
            }
            ["at", "most", count, "headers"] => {
                self.settings.limits.header_count_max = count.parse().unwrap();
            }
            ["at", "most", count, "transactions"] => {
                self.settings.limits.transaction_count_max = count.parse().unwrap();
            }
            ["at", "most", count, "actions"] => {
                self.settings.limits.transaction_action_count_max = count.parse().unwrap();
            }
            ["alarm"] => self.world.set_alarmed(true),
            ["alarm", "over"] => {
                self.world.set_alarmed(false);
                for client in self.clients.values_mut() {
                    client.alarm_ended(&self.world);
                }
            }
            ["wait", seconds, "s"] => self.wait(seconds.parse().unwrap()),
            ["declare", kind, exchange] => self.declare(kind, exchange),
            ["delete", queue] => {
                self.as_operator(|world, actor| broker::delete_queue(world, actor, queue.as_bytes()))
                    .unwrap();
            }
            [name, "comes", "from", "elsewhere"] => self.open(name, false),
            [name, "is", "gone"] => self.clients.get_mut(name).expect("it came").leave(&self.world),
            ["queues", "are", "left"] | ["bytes", "are", "left"] => {}
            _ if line.starts_with("= ") => return,
            _ => panic!("nobody knows what `{line}` means"),
        }
        if words[1..] == ["are", "left"] {
            let (queues, bytes) = (self.world.queues_len(), self.world.charged());
            writeln!(
                self.log,
                "C0< {queues} queues, {} charged",
                if bytes == 0 { "nothing" } else { "bytes" }
            )
            .unwrap();
        }
    }

    fn wait(&mut self, seconds: u64) {
        let until = self.world.now().after(Duration::from_secs(seconds));
        for client in self.clients.values_mut() {
            client.pass(&self.world, until);
        }
        self.world.set_time(until);
    }

    fn declare(&mut self, kind: &str, exchange: &str) {
        let kinds = [ExchangeKind::Direct, ExchangeKind::Fanout, ExchangeKind::Topic, ExchangeKind::Headers];
        let kind = kinds.into_iter().find(|known| known.name() == kind).expect("a kind of exchange");
        let settings = imori_core::route::Settings::default();
        let exchange = exchange.as_bytes();
        self.as_operator(|world, actor| broker::declare_exchange(world, actor, exchange, kind, settings))
            .unwrap();
    }

    fn as_operator<R>(&self, act: impl FnOnce(&TinyWorld, &Actor<'_>) -> R) -> R {
        let identity = Identity::guest();
        let connection = ConnectionId { cell: 0, slot: u32::MAX, generation: 0 };
        act(&self.world, &Actor { identity: &identity, connection, vhost: VhostId(0) })
    }

    fn log_output(&mut self) {
        for (name, client) in &mut self.clients {
            for line in output(&client.output(&self.world)) {
                let text = format!("{name}< {line}");
                writeln!(self.log, "{}", text.trim_end_matches(' ')).unwrap();
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

/// The bytes of a line that is sent.
fn input(line: &str) -> Vec<u8> {
    let bytes = line.replace("^@", "\0").replace("^M", "\r").into_bytes();
    if line.ends_with("^@") { bytes } else { [&bytes[..], b"\n"].concat() }
}

/// The lines of what was got.
fn output(bytes: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(bytes).replace('\r', "^M").replace('\0', "^@\n");
    text.lines().map(str::to_string).collect()
}
