//! Measures nanoseconds from the bytes of a `basic.publish` to the bytes of its `basic.deliver`,
//! through the real core in a world without locks.
//!
//! `cargo bench -p imori-amqp091 --bench connection`; an argument selects the rows that contain it.
//! `--rounds=N` runs N rounds of 64 publishes without timing, for counting instructions.

#![allow(clippy::print_stdout, reason = "it is a program that prints its result")]
#![allow(clippy::disallowed_methods, reason = "it measures time")]

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use imori_amqp091::codec::frame::{PROTOCOL_HEADER, push_body, push_content_header, push_method};
use imori_amqp091::codec::methods::{basic, channel, confirm, connection, queue};
use imori_amqp091::codec::properties::{BasicProperties, TextProperty};
use imori_amqp091::codec::table::Table;
use imori_amqp091::connection::Connection;
use imori_amqp091::header_reader;
use imori_amqp091::limits::{CHANNEL_MAX, FRAME_BYTES_MAX};
use imori_amqp091::settings::Settings;
use imori_core::id::ConnectionId;
use imori_core::inbound::{Accept as _, Inbound as _};
use imori_core::outbound::Outbound;
use imori_core::turn::{Budget, Peer};
use imori_core::world::World;
use imori_testkit::TestWorld;

/// Publishes of one turn.
const PUBLISHES: usize = 64;

/// The publisher's channel, and the first channel of consumers.
const CHANNEL: u16 = 1;

fn main() {
    let only = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    let row = Row { key: "q", consumers: 1, channels: 1, acks: false, confirms: false, correlates: false };
    for (name, row) in [
        ("publish to deliver, no ack", row),
        ("publish to nobody", Row { key: "nobody", ..row }),
        ("publish to 10 queues", Row { key: "fan", consumers: 10, ..row }),
        ("publish with confirm", Row { confirms: true, ..row }),
        ("publish, deliver, ack", Row { acks: true, ..row }),
        ("publish to deliver, 2,000 channels in turn", Row { channels: 2_000, ..row }),
        ("publish, properties differ", Row { correlates: true, ..row }),
    ] {
        if only.as_ref().is_none_or(|only| name.contains(only.as_str())) {
            measure(name, row);
        }
    }
}

/// The parameters of a measurement.
#[derive(Clone, Copy)]
struct Row {
    /// The routing key: the queue `q`, `fan` for `amq.fanout`, or a key without a queue.
    key: &'static str,
    /// Number of consuming connections, each with its own queue.
    consumers: usize,
    /// Number of channels per consuming connection, each with a consumer.
    channels: u16,
    acks: bool,
    confirms: bool,
    /// Each publish has a different `correlation-id`.
    correlates: bool,
}

struct Bench {
    world: TestWorld,
    storage: Vec<u8>,
}

fn measure(name: &str, row: Row) {
    let mut bench = Bench { world: TestWorld::reading(header_reader), storage: Vec::with_capacity(1 << 20) };
    let (mut publisher, publisher_id) = bench.connect();
    let exchange = if row.key == "fan" { "amq.fanout" } else { "" };
    let mut consumers: Vec<(Connection, ConnectionId)> = (0..row.consumers)
        .map(|number| {
            let (mut consumer, id) = bench.connect();
            bench.feed(&mut consumer, &queue_and_consumer(row, exchange, number));
            (consumer, id)
        })
        .collect();
    if row.confirms {
        bench.feed(
            &mut publisher,
            &written(|out| {
                push_method(out, CHANNEL, &confirm::Select { no_wait: false });
            }),
        );
    }
    let input = written(|out| (0..PUBLISHES).for_each(|number| publish(out, row, exchange, number)));
    let asked = std::env::args().find_map(|argument| argument.strip_prefix("--rounds=")?.parse().ok());
    // Short rounds, so that some of them run without interruption.
    let (repetitions, rounds) = asked.map_or((500, 20), |rounds| (1, rounds));
    let (mut best, mut bytes, mut tag) = (f64::INFINITY, 0, 0_u64);
    for _ in 0..repetitions {
        let start = Instant::now();
        for _ in 0..rounds {
            bench.feed(&mut publisher, black_box(&input));
            bytes = consumers.iter().map(|(_, id)| bench.drain(*id)).sum();
            if let Some((consumer, _)) = consumers.first_mut().filter(|_| row.acks) {
                let acks = written(|out| {
                    for _ in 0..PUBLISHES {
                        tag += 1;
                        push_method(out, CHANNEL, &basic::Ack { delivery_tag: tag, multiple: false });
                    }
                });
                bench.feed(consumer, &acks);
            }
            bench.drain(publisher_id);
        }
        best = best.min(start.elapsed().as_secs_f64() * 1e9 / (rounds * PUBLISHES) as f64);
    }
    if asked.is_none() {
        println!("{name:30} {best:7.1} ns  {} bytes", bytes / PUBLISHES);
    }
}

/// Encodes the declaration of a queue and its consumers.
fn queue_and_consumer(row: Row, exchange: &str, number: usize) -> Vec<u8> {
    let name = if row.consumers == 1 { "q".to_string() } else { format!("q{number}") };
    written(|out| {
        let declare = queue::Declare {
            queue: &name,
            passive: false,
            durable: false,
            exclusive: false,
            auto_delete: false,
            no_wait: false,
            arguments: Table::EMPTY,
        };
        push_method(out, CHANNEL, &declare);
        if !exchange.is_empty() {
            let bind = queue::Bind {
                queue: &name,
                exchange,
                routing_key: "",
                no_wait: false,
                arguments: Table::EMPTY,
            };
            push_method(out, CHANNEL, &bind);
        }
        for number in CHANNEL..CHANNEL + row.channels {
            if number > CHANNEL {
                push_method(out, number, &channel::Open);
            }
            let consume = basic::Consume {
                queue: &name,
                consumer_tag: &name,
                no_local: false,
                no_ack: !row.acks,
                exclusive: false,
                no_wait: false,
                arguments: Table::EMPTY,
            };
            push_method(out, number, &consume);
        }
    })
}

fn publish(out: &mut Vec<u8>, row: Row, exchange: &str, number: usize) {
    let publish = basic::Publish { exchange, routing_key: row.key, mandatory: false, immediate: false };
    push_method(out, CHANNEL, &publish);
    let correlation = number.to_string();
    let id = row.correlates.then(|| TextProperty::new(correlation.as_bytes()));
    let mut properties = Vec::new();
    BasicProperties { correlation_id: id, ..BasicProperties::default() }.push(&mut properties);
    push_content_header(out, CHANNEL, 16, &properties);
    push_body(out, CHANNEL, b"0123456789abcdef", FRAME_BYTES_MAX as usize);
}

fn written(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    write(&mut out);
    out
}

impl Bench {
    /// Opens a connection with a channel.
    fn connect(&mut self) -> (Connection, ConnectionId) {
        let settings = Arc::new(Settings::default());
        let id = self.world.open(Connection::encoder(&settings));
        let peer = Peer::plain(1, true, "127.0.0.1:50000".to_string());
        let mut client = Connection::new(settings, id, peer, self.world.now());
        let login = written(|out| {
            out.extend_from_slice(PROTOCOL_HEADER);
            let start_ok = connection::StartOk {
                client_properties: Table::EMPTY,
                mechanism: "PLAIN",
                response: b"\0guest\0guest",
                locale: "en_US",
            };
            push_method(out, 0, &start_ok);
            let tune_ok =
                connection::TuneOk { channel_max: CHANNEL_MAX, frame_max: FRAME_BYTES_MAX, heartbeat: 0 };
            push_method(out, 0, &tune_ok);
            push_method(out, 0, &connection::Open { virtual_host: "/" });
            push_method(out, CHANNEL, &channel::Open);
        });
        self.feed(&mut client, &login);
        self.drain(id);
        (client, id)
    }

    /// Runs turns until the input is consumed.
    fn feed(&self, client: &mut Connection, mut input: &[u8]) {
        while !input.is_empty() {
            let received = client.receive(&self.world, &mut (), input, None, &mut Budget::default());
            assert_ne!(received.consumed, 0, "{:?}", received.next);
            input = input.get(received.consumed..).unwrap_or_default();
        }
    }

    /// Drains the unsent bytes, as a writer does.
    fn drain(&mut self, id: ConnectionId) -> usize {
        let (world, mut bytes) = (&self.world, 0);
        while let Some((piece, _)) = world.with_outbound(id, Outbound::take_unsent).flatten() {
            bytes += piece.len();
            let all = piece.len();
            let spare = world.with_outbound(id, |outbound| outbound.put_back(piece, all)).flatten();
            self.storage = spare.unwrap_or_default();
            world.with_outbound(id, Outbound::written);
        }
        world.with_outbound(id, |outbound| outbound.lend(|| Some(std::mem::take(&mut self.storage))));
        bytes
    }
}
