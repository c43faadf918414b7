//! NATS: each line ends with CR LF, unless it ends with `^-`; within a line, `^M^J` stands for CR LF.

mod fuzzed;

use imori_core::broker;
use imori_core::id::VhostId;
use imori_core::message::{HeaderReader, OriginId, Properties, Publication, TOPIC_EXCHANGE};
use imori_core::queue::QueueSettings;
use imori_core::world::World;
use imori_nats::connection::Connection;
use imori_nats::settings::Settings;
use imori_testkit::TestWorld;

pub use fuzzed::fuzz;

use crate::talk::{self, Dialogue, Talk};

/// NATS in a conversation.
#[derive(Debug)]
pub struct Nats;

/// A client that speaks NATS.
pub type Client = imori_testkit::Client<Connection>;

/// Creates a world that reads NATS headers.
pub fn world() -> TestWorld {
    TestWorld::reading(imori_nats::header_reader)
}

/// Runs the conversations in `tests/talk/nats`.
///
/// # Panics
/// Panics if a conversation takes a different course than its file.
pub fn check_conversations() {
    talk::check_conversations::<Nats>();
}

impl Dialogue for Nats {
    type Connection = Connection;
    const FOLDER: &str = "nats";

    fn header_reader(origin: OriginId) -> &'static dyn HeaderReader {
        imori_nats::header_reader(origin)
    }

    fn settings() -> Settings {
        Settings { server_id: "ID".to_string(), server_name: "imori/0".to_string(), ..Settings::default() }
    }

    fn input(line: &str) -> Vec<u8> {
        let (line, end) = line.strip_suffix("^-").map_or((line, "\r\n"), |line| (line, ""));
        (line.replace("^M", "\r").replace("^J", "\n") + end).into_bytes()
    }

    fn output(bytes: &[u8]) -> Vec<String> {
        let text = String::from_utf8_lossy(bytes);
        text.split_terminator("\r\n").map(|line| line.replace('\r', "^M").replace('\n', "^J")).collect()
    }

    /// Drops the first INFO, which a conversation shows only if it asks for it.
    fn greeted(client: &mut Client, world: &TestWorld) {
        assert!(client.output(world).starts_with(b"INFO {"));
    }

    fn happen(talk: &mut Talk<Nats>, words: &[&str]) -> bool {
        match words[..] {
            ["at", "most", bytes, "bytes", "parked"] => {
                talk.settings.parked_bytes_max = bytes.parse().unwrap();
            }
            ["at", "most", count, "subscriptions"] => {
                talk.settings.subscription_count_max = count.parse().unwrap();
            }
            ["queue", name] => declare(talk, name, &QueueSettings::default()),
            ["queue", a, b] => declare(talk, &format!("{a} {b}"), &QueueSettings::default()),
            ["queue", name, "of", len] => {
                let length_max = Some(len.parse().unwrap());
                let overflow = imori_core::queue::Overflow::RejectPublish;
                declare(talk, name, &QueueSettings { length_max, overflow, ..QueueSettings::default() });
            }
            ["publish", subject, body] => publish(talk, subject, body),
            [name, "is", "greeted"] => talk.open_greeted(name, true),
            ["bindings", "of", subject] => {
                let headers = imori_core::route::NoHeaders;
                let targets = talk.world.with_router(|_, table| {
                    table
                        .route(VhostId(0), TOPIC_EXCHANGE, subject.as_bytes(), &headers)
                        .unwrap()
                        .target_count()
                });
                talk.note(&format!("{targets} targets"));
            }
            _ => return false,
        }
        true
    }
}

fn declare(talk: &Talk<Nats>, name: &str, settings: &QueueSettings) {
    let (world, name) = (&talk.world, name.as_bytes());
    world.as_operator(|actor| broker::declare_queue(world, actor, name, settings, true)).unwrap();
}

/// Publishes as a client of another protocol would.
fn publish(talk: &Talk<Nats>, subject: &str, body: &str) {
    let properties = Properties::new(OriginId::BROKER);
    let publication = Publication::new(&properties, b"", body.as_bytes());
    let subject = subject.replace("^M", "\r").replace("^J", "\n").replace("^_", " ");
    let (world, subject) = (&talk.world, subject.as_bytes());
    world.as_operator(|actor| broker::publish(world, actor, TOPIC_EXCHANGE, subject, &publication)).unwrap();
}
