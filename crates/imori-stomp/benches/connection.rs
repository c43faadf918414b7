//! Measures nanoseconds from the bytes of a SEND to the bytes of its MESSAGE, through the real core
//! in a world without locks.
//!
//! `cargo bench -p imori-stomp --bench connection`; an argument selects the rows that contain it.
//! `--rounds=N` runs N rounds of 64 frames without timing, for counting instructions.

#![allow(clippy::print_stdout, reason = "it is a program that prints its result")]
#![allow(clippy::disallowed_methods, reason = "it measures time")]

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use imori_core::broker;
use imori_core::id::ConnectionId;
use imori_core::inbound::{Accept as _, Inbound as _};
use imori_core::outbound::Outbound;
use imori_core::turn::{Budget, Peer};
use imori_core::world::World;
use imori_stomp::codec::frame::HeaderTable;
use imori_stomp::connection::Connection;
use imori_stomp::header_reader;
use imori_stomp::settings::Settings;
use imori_testkit::TestWorld;

/// SENDs of one turn.
const FRAMES: usize = 64;

fn main() {
    let only = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    for (name, destination, headers, subscribe) in [
        ("queue, ack auto", "/queue/q", "", "SUBSCRIBE\nid:0\ndestination:/queue/q\n\n\0"),
        (
            "queue, 3 headers",
            "/queue/q",
            "content-type:text/plain\ncorrelation-id:123456\nx:y\n",
            "SUBSCRIBE\nid:0\ndestination:/queue/q\n\n\0",
        ),
        ("topic, 1 live subscription", "/topic/a.b", "", "SUBSCRIBE\nid:0\ndestination:/topic/a.*\n\n\0"),
        ("topic, nobody", "/topic/a.b", "", ""),
        (
            "call: reply-to rewritten",
            "/queue/q",
            "reply-to:/temp-queue/r\ncorrelation-id:123456\n",
            "SUBSCRIBE\nid:0\ndestination:/queue/q\n\n\0",
        ),
        ("reply to an inbox", "", "correlation-id:123456\n", ""),
        ("SEND with receipt", "/queue/q", "receipt:123\n", "SUBSCRIBE\nid:0\ndestination:/queue/q\n\n\0"),
        (
            "SEND, ACK of 1",
            "/queue/q",
            "",
            "SUBSCRIBE\nid:0\nack:client-individual\ndestination:/queue/q\n\n\0",
        ),
    ] {
        if only.as_ref().is_none_or(|only| name.contains(only.as_str())) {
            measure(name, destination, headers, subscribe);
        }
    }
}

struct Bench {
    world: TestWorld,
    table: HeaderTable,
    storage: Vec<u8>,
}

fn measure(name: &str, destination: &str, headers: &str, subscribe: &str) {
    let mut bench = Bench {
        world: TestWorld::reading(header_reader),
        table: HeaderTable::default(),
        storage: Vec::with_capacity(1 << 20),
    };
    let (mut sender, sender_id) = bench.connect();
    let (mut receiver, receiver_id) = bench.connect();
    bench.feed(&mut receiver, subscribe.as_bytes());
    let mut destination = destination.to_string();
    if destination.is_empty() {
        destination = bench.inbox_of(&mut receiver, receiver_id);
    }
    let frame = format!("SEND\ndestination:{destination}\n{headers}content-length:16\n\n0123456789abcdef\0");
    let input = frame.as_bytes().repeat(FRAMES);
    let mut number = 1_u64;
    let acks = subscribe.contains("client-individual");
    let asked = std::env::args().find_map(|argument| argument.strip_prefix("--rounds=")?.parse().ok());
    // Short rounds, so that some of them run without interruption.
    let (repetitions, rounds) = asked.map_or((500, 20), |rounds| (1, rounds));
    let mut best = f64::INFINITY;
    let mut written = 0;
    for _ in 0..repetitions {
        let start = Instant::now();
        for _ in 0..rounds {
            bench.feed(&mut sender, black_box(&input));
            written = bench.drain(receiver_id);
            if acks {
                let mut ack = Vec::new();
                for _ in 0..FRAMES {
                    ack.extend_from_slice(format!("ACK\nid:bbbbbbbbbbbb-{number}\n\n\0").as_bytes());
                    number += 1;
                }
                bench.feed(&mut receiver, &ack);
            }
            bench.drain(sender_id);
        }
        best = best.min(start.elapsed().as_secs_f64() * 1e9 / (rounds * FRAMES) as f64);
    }
    if asked.is_some() {
        return;
    }
    println!("{name:28} {best:7.1} ns, {:4} B in, {:4} B out", frame.len(), written / FRAMES);
}

impl Bench {
    fn connect(&mut self) -> (Connection, ConnectionId) {
        let settings = Arc::new(Settings::default());
        let id = self.world.open(Connection::encoder(&settings));
        let peer = Peer::plain(1, true, String::new());
        let mut connection = Connection::new(settings, id, peer, self.world.now());
        self.feed(&mut connection, b"CONNECT\naccept-version:1.2\nhost:/\n\n\0");
        self.drain(id);
        (connection, id)
    }

    fn feed(&mut self, connection: &mut Connection, input: &[u8]) {
        let mut budget = Budget::default();
        let received = connection.receive(&self.world, &mut self.table, input, None, &mut budget);
        assert_eq!(received.consumed, input.len(), "{:?}", received.next);
    }

    /// Drains the unsent bytes, as a writer does.
    fn drain(&mut self, id: ConnectionId) -> usize {
        let mut bytes = 0;
        while let Some((piece, _)) = self.world.with_outbound(id, Outbound::take_unsent).flatten() {
            bytes += piece.len();
            let all = piece.len();
            let spare = self.world.with_outbound(id, |outbound| outbound.put_back(piece, all)).flatten();
            self.storage = spare.unwrap_or_default();
            let (wakes, _) = self.world.with_outbound(id, Outbound::written).unwrap_or_default();
            broker::wake_consumers(&self.world, id, &wakes);
        }
        self.world.with_outbound(id, |outbound| outbound.lend(|| Some(std::mem::take(&mut self.storage))));
        bytes
    }

    /// Returns the address of an inbox as the receiver of a request sees it.
    fn inbox_of(&mut self, receiver: &mut Connection, id: ConnectionId) -> String {
        let call = b"SUBSCRIBE\nid:0\ndestination:/queue/q\n\n\0SEND\ndestination:/queue/q\nreply-to:/temp-queue/r\n\n\0";
        self.feed(receiver, call);
        let piece = self.world.with_outbound(id, Outbound::take_unsent).flatten();
        let (piece, _) = piece.expect("the call came back to its sender");
        let text = String::from_utf8_lossy(&piece).into_owned();
        self.world.with_outbound(id, |outbound| outbound.put_back(piece, usize::MAX));
        let line = text.lines().find_map(|line| line.strip_prefix("reply-to:"));
        line.expect("it has an address for the reply").to_string()
    }
}
