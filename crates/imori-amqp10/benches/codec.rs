//! Measures nanoseconds to decode or encode one frame.
//!
//! `cargo bench -p imori-amqp10`; an argument selects the rows that contain it. `--rounds=N` runs N
//! rounds of 64 frames without timing, for counting instructions.

#![allow(clippy::print_stdout, reason = "it is a program that prints its result")]
#![allow(clippy::disallowed_methods, reason = "it measures time")]

use std::hint::black_box;
use std::time::Instant;

use imori_amqp10::codec::composites::{Accepted, DeliveryState, Disposition, Performative, Transfer};
use imori_amqp10::codec::frame::{FrameKind, Step, decode, push_frame};
use imori_amqp10::codec::restricted::Role;
use imori_amqp10::codec::sections::Sections;

/// Frames of one round; all of them fit in the second-level cache.
const FRAMES: usize = 64;

/// A typical JMS message: annotations, properties, an application property and a short text.
const MESSAGE: &[u8] = b"\x00\x53\x70\xc0\x02\x01\x41\
    \x00\x53\x72\xc1\x28\x04\xa3\x0ex-opt-jms-dest\x51\x00\xa3\x12x-opt-jms-msg-type\x51\x05\
    \x00\x53\x73\xc0\x2c\x0a\xa1\x0cID:1:1:1-123\x40\xa1\x06orders\x40\x40\x40\x40\x40\x40\
    \x83\x00\x00\x01\x8b\xcf\xe5\x68\x00\
    \x00\x53\x74\xc1\x0b\x02\xa1\x05price\x71\x00\x01\x00\x00\
    \x00\x53\x77\xa1\x10sixteen bytes...";

/// Appends the frame with this number.
type WriteFrame = fn(&mut Vec<u8>, u32);

fn main() {
    let only = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    let is_wanted = |name: &str| only.as_ref().is_none_or(|only| name.contains(only.as_str()));
    let rows: [(&str, WriteFrame); 2] = [("decode transfer", transfer), ("decode disposition", disposition)];
    for (name, write) in rows {
        if is_wanted(name) {
            let mut input = Vec::new();
            (0..FRAMES as u32).for_each(|number| write(&mut input, number));
            report(name, || frames(&input, |_| 0));
        }
    }
    if is_wanted("read sections of a message") {
        let mut input = Vec::new();
        (0..FRAMES as u32).for_each(|number| transfer(&mut input, number));
        report("read sections of a message", || frames(&input, sections));
    }
    if is_wanted("encode transfer") {
        let mut out = Vec::with_capacity(64 * 1024);
        report("encode transfer", || {
            out.clear();
            (0..FRAMES as u32).for_each(|number| transfer(&mut out, number));
            out.len()
        });
    }
}

fn transfer(out: &mut Vec<u8>, number: u32) {
    let tag = number.to_be_bytes();
    push_frame(out, FrameKind::Amqp, 1, |out| {
        let transfer = Transfer {
            handle: 0,
            delivery_id: Some(1000 + number),
            delivery_tag: Some(&tag),
            message_format: Some(0),
            settled: Some(false),
            ..Transfer::default()
        };
        Performative::Transfer(black_box(transfer)).encode(out);
        out.extend_from_slice(black_box(MESSAGE));
    });
}

fn disposition(out: &mut Vec<u8>, number: u32) {
    push_frame(out, FrameKind::Amqp, 1, |out| {
        let disposition = Disposition {
            role: Role::Receiver,
            first: 1000 + number,
            settled: true,
            state: Some(DeliveryState::Accepted(Accepted {})),
            ..Disposition::default()
        };
        Performative::Disposition(black_box(disposition)).encode(out);
    });
}

fn frames(input: &[u8], mut read: impl FnMut(&[u8]) -> usize) -> usize {
    let mut rest = black_box(input);
    let mut sum = 0;
    while let Ok(Step::Frame(frame)) = decode(rest, 65_536) {
        if let Ok((performative, payload)) = Performative::decode(frame.body) {
            sum += payload.len() + read(payload);
            black_box(&performative);
        }
        rest = rest.get(frame.len..).unwrap_or_default();
    }
    sum
}

fn sections(payload: &[u8]) -> usize {
    let mut sections = Sections::new(payload);
    let mut count = 0;
    while let Ok(Some(section)) = sections.next_section() {
        black_box(&section);
        count += 1;
    }
    count
}

/// Prints the best of many repetitions, which is one that nothing interrupted.
fn report(name: &str, mut round: impl FnMut() -> usize) {
    let asked = std::env::args().find_map(|argument| argument.strip_prefix("--rounds=")?.parse::<u64>().ok());
    if let Some(rounds) = asked {
        for _ in 0..rounds {
            black_box(round());
        }
        return;
    }
    let rounds = 50;
    let mut best = f64::INFINITY;
    for _ in 0..2_000 {
        let start = Instant::now();
        for _ in 0..rounds {
            black_box(round());
        }
        let elapsed = start.elapsed().as_secs_f64() * 1e9 / (rounds * FRAMES) as f64;
        best = best.min(elapsed);
    }
    println!("{name:48} {best:7.1} ns");
}
