//! AMQP 0-9-1 for the fuzzer.

use std::time::Duration;

use imori_amqp091::codec::frame::{FrameType, PROTOCOL_HEADER, Step, decode, push_method};
use imori_amqp091::codec::methods::{Method, channel, connection, queue};
use imori_amqp091::codec::properties::{BasicProperties, ContentHeader};
use imori_amqp091::settings::Settings;

use crate::amqp091::Amqp091;
use crate::fuzzed::{Fuzzed, converse};

/// Runs the conversation of two clients that `data` stands for; `heard` gets each method that the
/// broker writes.
///
/// # Panics
/// Panics if the broker stands still, or writes anything but methods and whole contents.
pub fn fuzz(data: &[u8], heard: &mut dyn FnMut(&Method<'_>)) {
    converse(data, &mut Answers { heard });
}

/// The methods that the clients get.
struct Answers<'a> {
    heard: &'a mut dyn FnMut(&Method<'_>),
}

impl Fuzzed for Answers<'_> {
    type Protocol = Amqp091;
    const UNIT_BYTES: usize = 8;
    const PASSING: Duration = Duration::from_secs(100);

    fn settings(choice: Option<u8>) -> Settings {
        Settings {
            channel_max: choice.map_or(1, |byte| u16::from(byte % 3) + 1),
            parked_bytes_max: 256,
            unfinished_bytes_max: 256,
            body_bytes_max: 512,
            ..Settings::default()
        }
    }

    /// A client's way to an open channel with a queue.
    fn logins(settings: &Settings) -> [Vec<u8>; 2] {
        let mut out = PROTOCOL_HEADER.to_vec();
        let start_ok =
            connection::StartOk { mechanism: "PLAIN", response: b"\0guest\0guest", ..Default::default() };
        push_method(&mut out, 0, &start_ok);
        let channel_max = settings.channel_max;
        push_method(&mut out, 0, &connection::TuneOk { channel_max, frame_max: 4096, heartbeat: 60 });
        push_method(&mut out, 0, &connection::Open { virtual_host: "/" });
        push_method(&mut out, 1, &channel::Open);
        push_method(&mut out, 1, &queue::Declare { queue: "q", ..Default::default() });
        [out.clone(), out]
    }

    fn read(&mut self, _index: usize, bytes: &[u8]) {
        let mut rest = bytes;
        let mut missing = 0;
        while !rest.is_empty() {
            if let Some(after) = rest.strip_prefix(PROTOCOL_HEADER) {
                rest = after;
                continue;
            }
            let Ok(Step::Frame(frame)) = decode(rest, 4096) else {
                panic!("no frame: {}", rest.escape_ascii())
            };
            rest = &rest[frame.len()..];
            match frame.kind {
                FrameType::Method => {
                    assert_eq!(missing, 0, "a body is whole before the next method");
                    (self.heard)(&Method::decode(frame.payload).expect("the broker writes methods"));
                }
                FrameType::Header => {
                    let header = ContentHeader::decode(frame.payload).expect("the broker writes headers");
                    BasicProperties::read(header.properties).expect("the broker writes properties");
                    missing = header.body_len;
                }
                FrameType::Body => missing -= frame.payload.len() as u64,
                FrameType::Heartbeat => {}
            }
        }
    }
}
