//! STOMP: `^@` is NUL and ends its line, `^M` is CR.

mod fuzzed;

use imori_core::broker;
use imori_core::message::{HeaderReader, OriginId};
use imori_core::route::ExchangeKind;
use imori_stomp::connection::Connection;
use imori_stomp::settings::Settings;
use imori_testkit::TestWorld;

pub use fuzzed::fuzz;

use crate::talk::{self, Dialogue, Talk};

/// STOMP in a conversation.
#[derive(Debug)]
pub struct Stomp;

/// A client that speaks STOMP.
pub type Client = imori_testkit::Client<Connection>;

/// Creates a world that reads STOMP headers.
pub fn world() -> TestWorld {
    TestWorld::reading(imori_stomp::header_reader)
}

/// Runs the conversations in `tests/talk/stomp`.
///
/// # Panics
/// Panics if a conversation takes a different course than its file.
pub fn check_conversations() {
    talk::check_conversations::<Stomp>();
}

impl Dialogue for Stomp {
    type Connection = Connection;
    const FOLDER: &str = "stomp";

    fn header_reader(origin: OriginId) -> &'static dyn HeaderReader {
        imori_stomp::header_reader(origin)
    }

    fn settings() -> Settings {
        Settings { server: "imori/0".to_string(), ..Settings::default() }
    }

    fn input(line: &str) -> Vec<u8> {
        let bytes = line.replace("^@", "\0").replace("^M", "\r").into_bytes();
        if line.ends_with("^@") { bytes } else { [&bytes[..], b"\n"].concat() }
    }

    fn output(bytes: &[u8]) -> Vec<String> {
        let text = String::from_utf8_lossy(bytes).replace('\r', "^M").replace('\0', "^@\n");
        text.lines().map(str::to_string).collect()
    }

    fn happen(talk: &mut Talk<Stomp>, words: &[&str]) -> bool {
        let settings = &mut talk.settings;
        match words[..] {
            ["keep", "open", "after", "error"] => settings.keeps_open_after_error = true,
            ["at", "most", bytes, "bytes", "parked"] => settings.parked_bytes_max = bytes.parse().unwrap(),
            ["at", "most", count, "subscriptions"] => {
                settings.subscription_count_max = count.parse().unwrap();
            }
            ["at", "most", count, "headers"] => settings.limits.header_count_max = count.parse().unwrap(),
            ["at", "most", count, "transactions"] => {
                settings.limits.transaction_count_max = count.parse().unwrap();
            }
            ["at", "most", count, "actions"] => {
                settings.limits.transaction_action_count_max = count.parse().unwrap();
            }
            ["declare", kind, exchange] => declare(talk, kind, exchange),
            _ => return false,
        }
        true
    }
}

fn declare(talk: &Talk<Stomp>, kind: &str, exchange: &str) {
    let kinds = [ExchangeKind::Direct, ExchangeKind::Fanout, ExchangeKind::Topic, ExchangeKind::Headers];
    let kind = kinds.into_iter().find(|known| known.name() == kind).expect("a kind of exchange");
    let settings = imori_core::route::Settings::default();
    let (world, exchange) = (&talk.world, exchange.as_bytes());
    world.as_operator(|actor| broker::declare_exchange(world, actor, exchange, kind, settings)).unwrap();
}
