//! Two clients say anything to the broker, in any pieces: it never panics, never stands still,
//! and all that it answers is made of frames.
//!
//! Input: a byte of settings, then turns: a byte that says whose turn it is and how long, then
//! so many bytes of what is said.

#![no_main]

use std::sync::Arc;

use imori_amqp091::codec::frame::{FrameType, PROTOCOL_HEADER, Step, decode, push_method};
use imori_amqp091::codec::methods::{Method, channel, connection, queue};
use imori_amqp091::codec::properties::{BasicProperties, ContentHeader};
use imori_amqp091::connection::Connection;
use imori_amqp091::header_reader;
use imori_amqp091::settings::Settings;
use imori_core::time::Time;
use imori_core::turn::Next;
use imori_core::world::World;
use imori_testkit::TestWorld;
use libfuzzer_sys::fuzz_target;

type Client = imori_testkit::Client<Connection>;

fuzz_target!(|data: &[u8]| {
    let world = TestWorld::reading(header_reader);
    let settings = Arc::new(Settings {
        channel_max: data.first().map_or(1, |byte| u16::from(byte % 3) + 1),
        parked_bytes_max: 256,
        unfinished_bytes_max: 256,
        body_bytes_max: 512,
        ..Settings::default()
    });
    let mut clients = [(); 2].map(|()| Client::new(&world, &settings, true));
    for client in &mut clients {
        client.send(&world, &login(settings.channel_max));
    }
    let mut rest = data.get(1..).unwrap_or_default();
    while let Some((turn, after)) = rest.split_first() {
        let (said, after) = after.split_at(after.len().min(usize::from(turn / 8) * 8));
        rest = after;
        match turn % 8 {
            0..5 => clients[usize::from(turn % 2)].send(&world, said),
            5 => world.set_alarmed(true),
            6 => {
                world.set_alarmed(false);
                clients.iter_mut().for_each(|client| client.alarm_ended(&world));
            }
            _ => {
                let now = Time(world.now().0 + 100_000_000);
                clients.iter_mut().for_each(|client| client.pass(&world, now));
                world.set_time(now);
            }
        }
        for client in &mut clients {
            read(&client.output(&world));
        }
    }
    for client in &mut clients {
        client.leave(&world);
        assert_eq!(client.next, Next::Close);
    }
});

/// A client's way to an open channel with a queue.
fn login(channel_max: u16) -> Vec<u8> {
    let mut out = PROTOCOL_HEADER.to_vec();
    let start_ok =
        connection::StartOk { mechanism: "PLAIN", response: b"\0guest\0guest", ..Default::default() };
    push_method(&mut out, 0, &start_ok);
    push_method(&mut out, 0, &connection::TuneOk { channel_max, frame_max: 4096, heartbeat: 60 });
    push_method(&mut out, 0, &connection::Open { virtual_host: "/" });
    push_method(&mut out, 1, &channel::Open);
    push_method(&mut out, 1, &queue::Declare { queue: "q", ..Default::default() });
    out
}

/// Reads all that the broker wrote: methods, and contents that are whole.
fn read(bytes: &[u8]) {
    let mut rest = bytes;
    let mut missing = 0;
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix(PROTOCOL_HEADER) {
            rest = after;
            continue;
        }
        let Ok(Step::Frame(frame)) = decode(rest, 4096) else { panic!("no frame: {}", rest.escape_ascii()) };
        rest = &rest[frame.len()..];
        match frame.kind {
            FrameType::Method => {
                assert_eq!(missing, 0, "a body is whole before the next method");
                let method = Method::decode(frame.payload).expect("the broker writes methods");
                planted(&method);
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

/// Does nothing unless a fault is planted: then a channel that is refused is one too many.
fn planted(method: &Method<'_>) {
    let is_found = matches!(method, Method::ChannelClose(_));
    imori_fuzz::fail_if_planted(is_found);
}
