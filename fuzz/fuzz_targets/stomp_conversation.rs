//! Two clients say anything to the broker, in any pieces: it never panics, never stands still,
//! and all that it answers is made of frames.
//!
//! Input: a byte of settings, then turns: a byte that says whose turn it is and how long, then
//! so many bytes of what is said.

#![no_main]

use std::sync::Arc;

use imori_core::time::Time;
use imori_core::turn::Next;
use imori_core::world::World;
use imori_stomp::codec::command::Command;
use imori_stomp::codec::decode::{Decoder, Step};
use imori_stomp::codec::frame::HeaderTable;
use imori_stomp::codec::version::Version;
use imori_stomp::connection::Connection;
use imori_stomp::header_reader;
use imori_stomp::limits::Limits;
use imori_stomp::settings::Settings;
use imori_testkit::TestWorld;
use libfuzzer_sys::fuzz_target;

type Client = imori_testkit::Client<Connection>;

/// The frames that a client gets, read as one of its version reads them.
struct Answers {
    decoder: Decoder,
}

fuzz_target!(|data: &[u8]| {
    let world = TestWorld::reading(header_reader);
    let settings = Arc::new(Settings {
        keeps_open_after_error: data.first().is_some_and(|byte| byte % 2 == 0),
        parked_bytes_max: 256,
        ..Settings::default()
    });
    let mut clients = [(); 2].map(|()| Client::new(&world, &settings, true));
    let mut answers = [Version::V12, Version::V10].map(Answers::new);
    let connects =
        [&b"CONNECT\naccept-version:1.2\nhost:/\nheart-beat:1000,1000\n\n\0"[..], b"CONNECT\n\n\0"];
    for (client, connect) in clients.iter_mut().zip(connects) {
        client.send(&world, connect);
    }
    let mut rest = data.get(1..).unwrap_or_default();
    while let Some((turn, after)) = rest.split_first() {
        let (said, after) = after.split_at(after.len().min(usize::from(turn / 8) * 4));
        rest = after;
        match turn % 8 {
            0..5 => clients[usize::from(turn % 2)].send(&world, said),
            5 => world.set_alarmed(true),
            6 => {
                world.set_alarmed(false);
                clients.iter_mut().for_each(|client| client.alarm_ended(&world));
            }
            _ => {
                let now = Time(world.now().0 + 1_000_000);
                clients.iter_mut().for_each(|client| client.pass(&world, now));
                world.set_time(now);
            }
        }
        for (client, answers) in clients.iter_mut().zip(&mut answers) {
            answers.read(&client.output(&world));
        }
    }
    for client in &mut clients {
        client.leave(&world);
        assert_eq!(client.next, Next::Close);
    }
});

impl Answers {
    fn new(version: Version) -> Answers {
        let mut decoder = Decoder::new(Limits::default());
        decoder.connected(version);
        Answers { decoder }
    }

    fn read(&mut self, bytes: &[u8]) {
        let mut table = HeaderTable::default();
        let mut rest = bytes;
        while !rest.is_empty() {
            match self.decoder.decode(rest, &mut table) {
                Ok(Step::Frame { frame, consumed }) => {
                    assert!(consumed > 0, "a step goes on");
                    planted(frame.command);
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

/// Does nothing unless a fault is planted: then a RECEIPT, which is given for a whole frame that asks
/// for one, is one too many.
fn planted(command: Command) {
    let is_found = command == Command::Receipt;
    imori_fuzz::fail_if_planted(is_found);
}
