//! Measures nanoseconds from the bytes of a PUB to the bytes of its MSG, and of decoding alone,
//! through the real core in a world without locks.
//!
//! `cargo bench -p imori-nats --bench connection`; an argument selects the rows that contain it.
//! `--rounds=N` runs N rounds of 64 operations without timing, for counting instructions.

#![allow(clippy::print_stdout, reason = "it is a program that prints its result")]
#![allow(clippy::disallowed_methods, reason = "it measures time")]

use std::fmt::Write as _;
use std::hint::black_box;
use std::mem;
use std::sync::Arc;
use std::time::Instant;

use imori_core::id::ConnectionId;
use imori_core::inbound::{Accept as _, Inbound as _};
use imori_core::outbound::Outbound;
use imori_core::turn::{Budget, Peer};
use imori_core::world::World;
use imori_nats::codec::decode::{Decoder, Step};
use imori_nats::codec::operation::ClientOp;
use imori_nats::connection::Connection;
use imori_nats::header_reader;
use imori_nats::limits::Limits;
use imori_nats::settings::Settings;
use imori_testkit::TestWorld;

/// Operations of one turn.
const OPERATIONS: usize = 64;

fn main() {
    let only = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    let is_wanted = |name: &str| only.as_ref().is_none_or(|only| name.contains(only.as_str()));
    if is_wanted("decode PUB, 16 B") {
        let input = operations(|_, out| out.push_str("PUB a.b.c 16\r\n0123456789abcdef\r\n"));
        report("decode PUB, 16 B", || decode(input.as_bytes()));
    }
    if is_wanted("reply to an inbox used once") {
        // A second subscription, for the service that an inbox client usually calls.
        let mut bench = Bench::new("SUB a.b.c q 1\r\nSUB _INBOX.0123456789abcdefghijkl.* 2\r\n");
        let text = operations(|number, out| {
            push(out, &format!("_INBOX.0123456789abcdefghijkl.{ROUND}{number:02}"), "", 16);
        });
        let places: Vec<usize> = text.match_indices(ROUND).map(|(at, _)| at).collect();
        let (mut input, mut rounds) = (text.into_bytes(), 0);
        report("reply to an inbox used once", || {
            rounds += 1;
            let round = format!("{rounds:06}");
            for at in &places {
                input[*at..at + ROUND.len()].copy_from_slice(round.as_bytes());
            }
            bench.round(black_box(&input))
        });
    }
    for (name, subscribe, operation) in [
        ("PUB to MSG, repeated", "SUB a.b.* 1\r\n", (|_, out| push(out, "a.b.c", "", 16)) as Operation),
        ("PUB to nobody, repeated", "", |_, out| push(out, "a.b.c", "", 16)),
        ("PUB to MSG, four subjects in turn", "SUB a.b.* 1\r\n", |number, out| {
            push(out, ["a.b.c", "a.b.d", "a.b.e", "a.b.f"][number % 4], "", 16);
        }),
        ("request: PUB with reply to MSG", "SUB a.b.c q 1\r\n", |number, out| {
            push(out, "a.b.c", &format!("_INBOX.0123456789abcdefghijkl.{number}"), 16);
        }),
        ("reply: PUB to a wildcard inbox", "SUB _INBOX.0123456789abcdefghijkl.* 1\r\n", |number, out| {
            push(out, &format!("_INBOX.0123456789abcdefghijkl.{number}"), "", 16);
        }),
        ("HPUB to HMSG", "SUB a.b.c 1\r\n", |_, out| {
            out.push_str("HPUB a.b.c 22 38\r\nNATS/1.0\r\nName: 12\r\n\r\n0123456789abcdef\r\n");
        }),
    ] {
        if is_wanted(name) {
            let mut bench = Bench::new(subscribe);
            let input = operations(operation);
            report(name, || bench.round(black_box(input.as_bytes())));
        }
    }
}

/// Placeholder in an operation for the number of the round.
const ROUND: &str = "RRRRRR";

type Operation = fn(usize, &mut String);

fn operations(mut write: impl FnMut(usize, &mut String)) -> String {
    let mut out = String::new();
    (0..OPERATIONS).for_each(|number| write(number, &mut out));
    out
}

fn push(out: &mut String, subject: &str, reply: &str, len: usize) {
    let body = &"0123456789abcdef"[..len];
    let space = if reply.is_empty() { "" } else { " " };
    write!(out, "PUB {subject} {reply}{space}{len}\r\n{body}\r\n").expect("a string takes it");
}

/// Prints the best of many repetitions, which is one that nothing interrupted.
fn report(name: &str, mut round: impl FnMut() -> usize) {
    let asked = std::env::args().find_map(|argument| argument.strip_prefix("--rounds=")?.parse::<u64>().ok());
    let rounds = asked.unwrap_or(20);
    let mut best = f64::INFINITY;
    for _ in 0..if asked.is_some() { 1 } else { 500 } {
        let start = Instant::now();
        for _ in 0..rounds {
            black_box(round());
        }
        best = best.min(start.elapsed().as_secs_f64() * 1e9 / (rounds as f64 * OPERATIONS as f64));
    }
    if asked.is_none() {
        println!("{name:36} {best:7.1} ns");
    }
}

fn decode(input: &[u8]) -> usize {
    let mut decoder = Decoder::new(Limits::default());
    let (mut rest, mut sum) = (black_box(input), 0);
    while let Ok(Step::Op { op: ClientOp::Publish(publish), consumed }) = decoder.client_op(rest) {
        sum += publish.payload.len();
        rest = rest.get(consumed..).unwrap_or_default();
    }
    sum
}

struct Bench {
    world: TestWorld,
    publisher: Connection,
    subscriber: ConnectionId,
    storage: Vec<u8>,
}

impl Bench {
    fn new(subscribe: &str) -> Bench {
        let world = TestWorld::reading(header_reader);
        let (mut connection, subscriber) = connect(&world);
        feed(&world, &mut connection, subscribe.as_bytes());
        let (publisher, _) = connect(&world);
        let mut bench = Bench { world, publisher, subscriber, storage: Vec::with_capacity(1 << 20) };
        bench.drain();
        bench
    }

    fn round(&mut self, input: &[u8]) -> usize {
        feed(&self.world, &mut self.publisher, input);
        self.drain()
    }

    /// Drains the unsent bytes, as a writer does.
    fn drain(&mut self) -> usize {
        let (world, id) = (&self.world, self.subscriber);
        let mut bytes = 0;
        while let Some((piece, _)) = world.with_outbound(id, Outbound::take_unsent).flatten() {
            bytes += piece.len();
            let all = piece.len();
            let spare = world.with_outbound(id, |outbound| outbound.put_back(piece, all)).flatten();
            self.storage = spare.unwrap_or_default();
            world.with_outbound(id, Outbound::written);
        }
        world.with_outbound(id, |outbound| outbound.lend(|| Some(mem::take(&mut self.storage))));
        bytes
    }
}

fn connect(world: &TestWorld) -> (Connection, ConnectionId) {
    let settings = Arc::new(Settings::default());
    let id = world.open(Connection::encoder(&settings));
    let peer = Peer::plain(1, true, "127.0.0.1:50000".to_string());
    let mut connection = Connection::new(settings, id, peer, world.now());
    connection.greet(world);
    feed(world, &mut connection, b"CONNECT {\"verbose\":false,\"pedantic\":false,\"headers\":true}\r\n");
    (connection, id)
}

fn feed(world: &TestWorld, connection: &mut Connection, input: &[u8]) {
    let received = connection.receive(world, &mut (), input, None, &mut Budget::default());
    assert_eq!(received.consumed, input.len(), "{:?}", received.next);
}
