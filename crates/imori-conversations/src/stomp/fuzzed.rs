//! STOMP for the fuzzer.

use std::time::Duration;

use imori_stomp::codec::command::Command;
use imori_stomp::codec::decode::{Decoder, Step};
use imori_stomp::codec::frame::HeaderTable;
use imori_stomp::codec::version::Version;
use imori_stomp::limits::Limits;
use imori_stomp::settings::Settings;

use crate::fuzzed::{Fuzzed, converse};
use crate::stomp::Stomp;

/// Runs the conversation of two clients that `data` stands for; `heard` gets the command of each
/// frame that the broker writes.
///
/// # Panics
/// Panics if the broker stands still, or writes anything but frames.
pub fn fuzz(data: &[u8], heard: &mut dyn FnMut(Command)) {
    let decoders = [Version::V12, Version::V10].map(|version| {
        let mut decoder = Decoder::new(Limits::default());
        decoder.connected(version);
        decoder
    });
    converse(data, &mut Answers { decoders, heard });
}

/// The frames that the clients get, each read as one of its version reads them.
struct Answers<'a> {
    decoders: [Decoder; 2],
    heard: &'a mut dyn FnMut(Command),
}

impl Fuzzed for Answers<'_> {
    type Protocol = Stomp;
    const UNIT_BYTES: usize = 4;
    const PASSING: Duration = Duration::from_secs(1);

    fn settings(choice: Option<u8>) -> Settings {
        Settings {
            keeps_open_after_error: choice.is_some_and(|byte| byte % 2 == 0),
            parked_bytes_max: 256,
            ..Settings::default()
        }
    }

    fn logins(_settings: &Settings) -> [Vec<u8>; 2] {
        ["CONNECT\naccept-version:1.2\nhost:/\nheart-beat:1000,1000\n\n\0", "CONNECT\n\n\0"]
            .map(|connect| connect.as_bytes().to_vec())
    }

    fn read(&mut self, index: usize, bytes: &[u8]) {
        let mut table = HeaderTable::default();
        let mut rest = bytes;
        while !rest.is_empty() {
            match self.decoders[index].decode(rest, &mut table) {
                Ok(Step::Frame { frame, consumed }) => {
                    assert!(consumed > 0, "a step goes on");
                    (self.heard)(frame.command);
                    rest = &rest[consumed..];
                }
                Ok(Step::Noise { consumed }) => {
                    assert!(consumed > 0, "a step goes on");
                    rest = &rest[consumed..];
                }
                Ok(Step::Incomplete { .. }) => panic!("half a frame: {}", rest.escape_ascii()),
                Err(error) => panic!("{error}: {}", rest.escape_ascii()),
            }
        }
    }
}
