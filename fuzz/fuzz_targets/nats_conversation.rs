//! Two clients say anything to the broker, in any pieces: it never panics, never stands still,
//! and all that it answers is made of operations.
//!
//! Input: a byte of settings, then turns: a byte that says whose turn it is and how long, then
//! so many bytes of what is said.

#![no_main]

use std::sync::Arc;

use imori_core::message::{OriginId, Properties, Publication, TOPIC_EXCHANGE};
use imori_core::time::Time;
use imori_core::turn::Next;
use imori_core::world::World;
use imori_nats::codec::decode::{Decoder, Step};
use imori_nats::codec::operation::ServerOp;
use imori_nats::connection::Connection;
use imori_nats::header_reader;
use imori_nats::limits::Limits;
use imori_nats::settings::Settings;
use imori_testkit::TestWorld;
use libfuzzer_sys::fuzz_target;

type Client = imori_testkit::Client<Connection>;

fuzz_target!(|data: &[u8]| {
    let world = TestWorld::reading(header_reader);
    let settings = Arc::new(Settings {
        subscription_count_max: data.first().map_or(1, |byte| usize::from(byte % 8) + 1),
        parked_bytes_max: 256,
        ..Settings::default()
    });
    let mut clients = [(); 2].map(|()| Client::new(&world, &settings, true));
    let connects = [
        &b"CONNECT {\"verbose\":false,\"headers\":true,\"no_responders\":true,\"protocol\":1}\r\n"[..],
        b"CONNECT {}\r\n",
    ];
    for (client, connect) in clients.iter_mut().zip(connects) {
        client.send(&world, connect);
    }
    let mut rest = data.get(1..).unwrap_or_default();
    while let Some((turn, after)) = rest.split_first() {
        let (said, after) = after.split_at(after.len().min(usize::from(turn / 8) * 4));
        rest = after;
        match turn % 8 {
            0..4 => clients[usize::from(turn % 2)].send(&world, said),
            4 => publish(&world, &clients[0], said),
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
    let left = world.with_router(|_, table| {
        let headers = imori_core::route::NoHeaders;
        table
            .route(imori_core::id::VhostId(0), TOPIC_EXCHANGE, b"a", &headers)
            .map(|route| route.target_count())
    });
    assert_eq!(left, Ok(0), "no binding outlives its connection");
});

/// Publishes to any subject as another protocol would.
fn publish(world: &TestWorld, client: &Client, subject: &[u8]) {
    let properties = Properties::new(OriginId::BROKER);
    let identity = imori_core::authorize::Identity::guest();
    let vhost = imori_core::id::VhostId(0);
    let actor = imori_core::broker::Actor { identity: &identity, connection: client.id, vhost };
    let publication = Publication::new(&properties, b"", b"body");
    // A subject that is too long is refused.
    let _ = imori_core::broker::publish(world, &actor, TOPIC_EXCHANGE, subject, &publication);
}

fn read(bytes: &[u8]) {
    let mut decoder = Decoder::new(Limits::of_client());
    let mut rest = bytes;
    while !rest.is_empty() {
        match decoder.server_op(rest) {
            Ok(Step::Op { op, consumed }) => {
                assert!(consumed > 0, "a step goes on");
                planted(&op);
                rest = &rest[consumed..];
            }
            Ok(Step::Incomplete { .. }) => panic!("half an operation: {}", rest.escape_ascii()),
            Err(error) => panic!("{error}: {}", rest.escape_ascii()),
        }
    }
}

/// Does nothing unless a fault is planted: then a message with headers is one too many.
fn planted(op: &ServerOp<'_>) {
    let is_found = matches!(op, ServerOp::Message(message) if message.headers.is_some());
    imori_fuzz::fail_if_planted(is_found);
}
