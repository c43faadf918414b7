//! AMQP 0-9-1, with a frame per line.

mod fuzzed;
pub mod text;
// The specification's list of methods, as the tests of the codec read it.
#[path = "../../imori-amqp091/tests/it/named_fields.rs"]
mod named_fields;

use imori_amqp091::connection::Connection;
use imori_amqp091::settings::Settings;
use imori_core::message::{HeaderReader, OriginId};
use imori_testkit::{Client, TestWorld};

pub use fuzzed::fuzz;
use text::{bytes, lines};

use crate::talk::{self, Dialogue, Talk};

/// AMQP 0-9-1 in a conversation.
#[derive(Debug)]
pub struct Amqp091;

/// Runs the conversations in `tests/talk/amqp091`.
///
/// # Panics
/// Panics if a conversation takes a different course than its file.
pub fn check_conversations() {
    talk::check_conversations::<Amqp091>();
}

/// The frames with which a client opens a connection.
pub const LOGIN: &str = "hello
0 connection.start-ok mechanism=PLAIN response=^guest^guest locale=en_US \
client-properties={capabilities:F:{consumer_cancel_notify:t:true,connection.blocked:t:true,\
authentication_failure_close:t:true}}
0 connection.tune-ok channel-max=2047 frame-max=131072 heartbeat=60
0 connection.open virtual-host=/";

impl Dialogue for Amqp091 {
    type Connection = Connection;
    const FOLDER: &str = "amqp091";

    fn header_reader(origin: OriginId) -> &'static dyn HeaderReader {
        imori_amqp091::header_reader(origin)
    }

    fn settings() -> Settings {
        Settings { platform: "Imori 0".to_string(), ..Settings::default() }
    }

    fn input(line: &str) -> Vec<u8> {
        bytes(line)
    }

    fn output(bytes: &[u8]) -> Vec<String> {
        lines(bytes)
    }

    /// Logs a client in, unless the conversation does so itself.
    fn greeted(client: &mut Client<Connection>, world: &TestWorld) {
        client.send(world, &LOGIN.lines().flat_map(bytes).collect::<Vec<u8>>());
        let answers = lines(&client.output(world));
        assert_eq!(answers.last().map(String::as_str), Some("0 connection.open-ok"), "{answers:?}");
    }

    fn happen(talk: &mut Talk<Amqp091>, words: &[&str]) -> bool {
        let settings = &mut talk.settings;
        match words[..] {
            [name, "connects"] => talk.open_greeted(name, true),
            [name, "connects", "from", "elsewhere"] => talk.open_greeted(name, false),
            ["at", "most", count, "channels"] => settings.channel_max = count.parse().unwrap(),
            ["at", "most", bytes, "bytes", "a", "body"] => settings.body_bytes_max = bytes.parse().unwrap(),
            ["at", "most", bytes, "bytes", "unfinished"] => {
                settings.unfinished_bytes_max = bytes.parse().unwrap();
            }
            _ => return false,
        }
        true
    }
}
