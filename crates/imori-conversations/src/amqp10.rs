//! AMQP 1.0, with a frame per line.

mod fuzzed;
pub mod text;

use std::time::Duration;

use imori_amqp10::connection::Connection;
use imori_amqp10::settings::Settings;
use imori_core::message::{HeaderReader, OriginId};
use imori_testkit::{Client, TestWorld};

pub use fuzzed::fuzz;
use text::{bytes, lines};

use crate::talk::{self, Dialogue, Talk};

/// AMQP 1.0 in a conversation.
#[derive(Debug)]
pub struct Amqp10;

/// Runs the conversations in `tests/talk/amqp10`.
///
/// # Panics
/// Panics if a conversation takes a different course than its file.
pub fn check_conversations() {
    talk::check_conversations::<Amqp10>();
}

/// The frames with which a client opens a connection.
pub const LOGIN: &str = "sasl-hello
sasl init mechanism=:PLAIN initial-response=@006775657374006775657374
hello
0 open container-id=c";

impl Dialogue for Amqp10 {
    type Connection = Connection;
    const FOLDER: &str = "amqp10";

    fn header_reader(origin: OriginId) -> &'static dyn HeaderReader {
        imori_amqp10::header_reader(origin)
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
        assert!(answers.last().is_some_and(|last| last.starts_with("0 open ")), "{answers:?}");
    }

    fn happen(talk: &mut Talk<Amqp10>, words: &[&str]) -> bool {
        let settings = &mut talk.settings;
        match words[..] {
            [name, "connects"] => talk.open_greeted(name, true),
            [name, "connects", "from", "elsewhere"] => talk.open_greeted(name, false),
            ["at", "most", bytes, "bytes", "a", "message"] => {
                settings.message_bytes_max = bytes.parse().unwrap();
            }
            ["at", "most", bytes, "bytes", "unfinished"] => {
                settings.unfinished_bytes_max = bytes.parse().unwrap();
            }
            ["at", "most", bytes, "bytes", "a", "frame"] => settings.frame_bytes_max = bytes.parse().unwrap(),
            ["producers", "have", credit, "credits"] => settings.link_credit = credit.parse().unwrap(),
            ["sessions", "take", window, "transfers"] => settings.session_window = window.parse().unwrap(),
            ["channels", "up", "to", max] => settings.channel_max = max.parse().unwrap(),
            ["handles", "up", "to", max] => settings.handle_max = max.parse().unwrap(),
            ["silence", "of", seconds, "s"] => {
                settings.idle_time_out = Duration::from_secs(seconds.parse().unwrap());
            }
            ["brokers", "beside", host, port] => {
                settings.failover.push((String::from(host), port.parse().unwrap()));
            }
            ["transactions", "take", seconds, "s", "at", "most"] => {
                settings.transaction_time_max = Duration::from_secs(seconds.parse().unwrap());
            }
            ["SCRAM", "is", "offered"] => settings.offers_scram = true,
            ["a", "user", "has", "no", "keys"] => talk.world.lacks_scram_keys.set(true),
            ["all", "users", "have", "keys"] => talk.world.lacks_scram_keys.set(false),
            _ => return false,
        }
        true
    }
}
