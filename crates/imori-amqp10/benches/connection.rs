//! Measures nanoseconds from the bytes of a client's transfer to those of the broker's, through the
//! real core in a world without locks. Messages use a link without an address, like replies.
//!
//! `cargo bench -p imori-amqp10 --bench connection`; an argument selects the rows that contain it.
//! `--rounds=N` runs N rounds of 64 messages without timing, for counting instructions.

#![allow(clippy::print_stdout, reason = "it is a program that prints its result")]
#![allow(clippy::disallowed_methods, reason = "it measures time")]

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use imori_amqp10::codec::composites::{
    Accepted, AnyTarget, Attach, Begin, DeliveryState, Disposition, Flow, Open, Performative, Properties,
    SaslFrame, SaslInit, Source, Target, Transfer,
};
use imori_amqp10::codec::field::Field as _;
use imori_amqp10::codec::frame::{FrameKind, ProtocolHeader, Step, decode, push_frame};
use imori_amqp10::codec::restricted::{MessageId, Role, SenderSettleMode};
use imori_amqp10::codec::value::Symbol;
use imori_amqp10::connection::Connection;
use imori_amqp10::header_reader;
use imori_amqp10::settings::Settings;
use imori_core::id::ConnectionId;
use imori_core::inbound::{Accept as _, Inbound as _};
use imori_core::outbound::Outbound;
use imori_core::turn::{Budget, Peer};
use imori_core::world::World;
use imori_testkit::TestWorld;

/// Messages of one turn.
const MESSAGES: u32 = 64;

/// The channel of the only session.
const CHANNEL: u16 = 0;

/// A session window that the benchmark never exhausts.
const WINDOW: u32 = i32::MAX as u32;

fn main() {
    let only = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    for (name, row) in [
        ("to a queue, settled", Row { is_dynamic: false, is_settled: true }),
        ("to a queue, accepted", Row { is_dynamic: false, is_settled: false }),
        ("to a dynamic source, settled", Row { is_dynamic: true, is_settled: true }),
        ("to a dynamic source, accepted", Row { is_dynamic: true, is_settled: false }),
    ] {
        if only.as_ref().is_none_or(|only| name.contains(only.as_str())) {
            measure(name, row);
        }
    }
}

/// The source of a measurement and how its receiver settles.
#[derive(Clone, Copy)]
struct Row {
    is_dynamic: bool,
    is_settled: bool,
}

struct Bench {
    world: TestWorld,
    storage: Vec<u8>,
}

fn measure(name: &str, row: Row) {
    let mut bench = Bench { world: TestWorld::reading(header_reader), storage: Vec::with_capacity(1 << 20) };
    let (mut sender, sender_id) = bench.connect();
    let (mut receiver, receiver_id) = bench.connect();
    bench.feed(&mut sender, &written(|out| push(out, &Performative::Attach(relay()))));
    bench.drain(sender_id);
    bench.feed(&mut receiver, &written(|out| push(out, &Performative::Attach(source(row)))));
    let address = dynamic_address(&bench.drain(receiver_id)).unwrap_or_else(|| "q".to_string());
    let asked = std::env::args().find_map(|argument| argument.strip_prefix("--rounds=")?.parse().ok());
    // Short rounds, so that some of them run without interruption.
    let (repetitions, rounds) = asked.map_or((500, 20), |rounds| (1, rounds));
    let (mut best, mut bytes, mut first) = (f64::INFINITY, 0, 0_u32);
    for _ in 0..repetitions {
        let start = Instant::now();
        for _ in 0..rounds {
            bench.feed(&mut receiver, &written(|out| credit(out, first)));
            let input = written(|out| (0..MESSAGES).for_each(|index| transfer(out, first + index, &address)));
            bench.feed(&mut sender, black_box(&input));
            bytes = bench.drain(receiver_id).len();
            if !row.is_settled {
                let answers = written(|out| (0..MESSAGES).for_each(|index| accept(out, first + index)));
                bench.feed(&mut receiver, &answers);
            }
            bench.drain(sender_id);
            first += MESSAGES;
        }
        best = best.min(start.elapsed().as_secs_f64() * 1e9 / f64::from(rounds * MESSAGES));
    }
    if asked.is_none() {
        println!("{name:30} {best:7.1} ns  {} bytes", bytes / MESSAGES as usize);
    }
}

/// A relay link, on which each message names its node.
fn relay() -> Attach<'static> {
    Attach {
        name: "send",
        role: Role::Sender,
        source: Some(Source::default()),
        target: Some(AnyTarget::Target(Target::default())),
        initial_delivery_count: Some(0),
        ..Attach::default()
    }
}

fn source(row: Row) -> Attach<'static> {
    let address = (!row.is_dynamic).then_some("q");
    Attach {
        name: "receive",
        role: Role::Receiver,
        snd_settle_mode: if row.is_settled { SenderSettleMode::Settled } else { SenderSettleMode::Unsettled },
        source: Some(Source { address, dynamic: row.is_dynamic, ..Source::default() }),
        target: Some(AnyTarget::Target(Target::default())),
        ..Attach::default()
    }
}

/// Returns the address in the broker's answer to the `attach` of a dynamic source.
fn dynamic_address(mut answers: &[u8]) -> Option<String> {
    while let Ok(Step::Frame(frame)) = decode(answers, 65_536) {
        if let Ok((Performative::Attach(Attach { source: Some(source), .. }), _)) =
            Performative::decode(frame.body)
            && source.dynamic
        {
            return source.address.map(str::to_string);
        }
        answers = answers.get(frame.len..)?;
    }
    None
}

fn credit(out: &mut Vec<u8>, received: u32) {
    let flow = Flow {
        next_incoming_id: Some(received),
        incoming_window: WINDOW,
        outgoing_window: WINDOW,
        handle: Some(0),
        delivery_count: Some(received),
        link_credit: Some(2 * MESSAGES),
        ..Flow::default()
    };
    push(out, &Performative::Flow(flow));
}

fn transfer(out: &mut Vec<u8>, number: u32, to: &str) {
    let tag = number.to_be_bytes();
    let correlation = number.to_string();
    let transfer = Transfer {
        handle: 0,
        delivery_id: Some(number),
        delivery_tag: Some(&tag),
        message_format: Some(0),
        settled: Some(true),
        ..Transfer::default()
    };
    let properties = Properties {
        to: Some(to),
        correlation_id: Some(MessageId::String(&correlation)),
        ..Properties::default()
    };
    push_frame(out, FrameKind::Amqp, CHANNEL, |out| {
        Performative::Transfer(transfer).encode(out);
        properties.push(out);
        out.extend_from_slice(b"\x00\x53\x75\xa0\x100123456789abcdef");
    });
}

fn accept(out: &mut Vec<u8>, number: u32) {
    let disposition = Disposition {
        role: Role::Receiver,
        first: number,
        settled: true,
        state: Some(DeliveryState::Accepted(Accepted {})),
        ..Disposition::default()
    };
    push(out, &Performative::Disposition(disposition));
}

fn push(out: &mut Vec<u8>, performative: &Performative<'_>) {
    push_frame(out, FrameKind::Amqp, CHANNEL, |out| performative.encode(out));
}

fn written(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    write(&mut out);
    out
}

impl Bench {
    /// Opens a connection with a session.
    fn connect(&mut self) -> (Connection, ConnectionId) {
        let settings = Arc::new(Settings::default());
        let id = self.world.open(Connection::encoder(&settings));
        let peer = Peer::plain(1, true, "127.0.0.1:50000".to_string());
        let mut client = Connection::new(settings, id, peer, self.world.now());
        let login = written(|out| {
            out.extend_from_slice(ProtocolHeader::Sasl.bytes());
            let init = SaslInit {
                mechanism: Symbol("PLAIN"),
                initial_response: Some(b"\0guest\0guest"),
                ..SaslInit::default()
            };
            push_frame(out, FrameKind::Sasl, 0, |out| SaslFrame::Init(init).encode(out));
            out.extend_from_slice(ProtocolHeader::Amqp.bytes());
            push(out, &Performative::Open(Open { container_id: "bench", ..Open::default() }));
            let begin = Begin { incoming_window: WINDOW, outgoing_window: WINDOW, ..Begin::default() };
            push(out, &Performative::Begin(begin));
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
    fn drain(&mut self, id: ConnectionId) -> Vec<u8> {
        let (world, mut bytes) = (&self.world, Vec::new());
        while let Some((piece, _)) = world.with_outbound(id, Outbound::take_unsent).flatten() {
            bytes.extend_from_slice(&piece);
            let all = piece.len();
            let spare = world.with_outbound(id, |outbound| outbound.put_back(piece, all)).flatten();
            self.storage = spare.unwrap_or_default();
            world.with_outbound(id, Outbound::written);
        }
        world.with_outbound(id, |outbound| outbound.lend(|| Some(std::mem::take(&mut self.storage))));
        bytes
    }
}
