//! Measures nanoseconds to decode or encode one frame.
//!
//! `cargo bench -p imori-stomp`; an argument selects the rows that contain it. `--rounds=N` runs N
//! rounds of 64 frames without timing, for counting instructions.

#![allow(clippy::print_stdout, reason = "it is a program that prints its result")]
#![allow(clippy::disallowed_methods, reason = "it measures time")]

use std::hint::black_box;
use std::time::Instant;

use imori_stomp::address::{Destination, push_destination};
use imori_stomp::codec::command::Command;
use imori_stomp::codec::decode::{Decoder, Step};
use imori_stomp::codec::encode::FrameWriter;
use imori_stomp::codec::frame::{Frame, HeaderTable};
use imori_stomp::codec::version::Version;
use imori_stomp::limits::Limits;

/// Frames of one round; all of them fit in the second-level cache.
const FRAMES: usize = 64;

fn main() {
    let only = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    let is_wanted = |name: &str| only.as_ref().is_none_or(|only| name.contains(only.as_str()));
    for (name, body_len) in [("16 B", 16), ("1 KB", 1024)] {
        let frames = frames(body_len);
        let mut table = HeaderTable::default();
        let name_decode = format!("decode SEND {name}, {} B of head", head_len(body_len));
        if is_wanted(&name_decode) {
            report(&name_decode, || decode(&frames, &mut table, |frame| frame.body.len()));
        }
        let name_read = format!("decode SEND {name} and read its headers");
        if is_wanted(&name_read) {
            report(&name_read, || decode(&frames, &mut table, read));
        }
        let name_encode = format!("encode MESSAGE {name}");
        if is_wanted(&name_encode) {
            let body = vec![b'x'; body_len];
            let mut out = Vec::with_capacity(2 * frames.len());
            report(&name_encode, || encode(&mut out, &body));
        }
    }
}

/// Prints the best of many repetitions, which is one that nothing interrupted.
fn report(name: &str, mut round: impl FnMut() -> usize) {
    if let Some(rounds) = rounds_asked() {
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

fn rounds_asked() -> Option<u64> {
    std::env::args().find_map(|argument| argument.strip_prefix("--rounds=")?.parse().ok())
}

fn send(out: &mut Vec<u8>, body_len: usize) {
    let mut frame = FrameWriter::new(out, Command::Send, Version::V12);
    frame.header("destination", b"/queue/rpc-bench");
    frame.header("reply-to", b"/temp-queue/rpc-bench");
    frame.header("correlation-id", b"123456");
    frame.body(&vec![b'x'; body_len]);
}

fn frames(body_len: usize) -> Vec<u8> {
    let mut out = Vec::new();
    for _ in 0..FRAMES {
        send(&mut out, body_len);
    }
    out
}

fn head_len(body_len: usize) -> usize {
    let mut out = Vec::new();
    send(&mut out, body_len);
    out.len() - body_len - 1
}

fn decode(input: &[u8], table: &mut HeaderTable, mut read: impl FnMut(&Frame<'_>) -> usize) -> usize {
    let mut decoder = Decoder::new(Limits::default());
    decoder.connected(Version::V12);
    let mut rest = black_box(input);
    let mut sum = 0;
    while let Ok(Step::Frame { frame, consumed }) = decoder.decode(rest, table) {
        sum += read(&frame);
        rest = rest.get(consumed..).unwrap_or_default();
    }
    sum
}

/// Reads every header once, as the broker does for a SEND.
fn read(frame: &Frame<'_>) -> usize {
    let (mut destination, mut reply_to, mut others) = (None, None, 0);
    for header in frame.headers.iter() {
        match header.name {
            b"destination" => destination = destination.or(Some(header.value)),
            b"reply-to" => reply_to = reply_to.or(Some(header.value)),
            b"content-length" | b"receipt" | b"transaction" | b"persistent" | b"expiration" => {}
            _ => others += header.value.len(),
        }
    }
    let address = destination.and_then(|text| Destination::parse(text).ok());
    let address_len = address.as_ref().and_then(Destination::address).map_or(0, |(_, subject)| subject.len());
    address_len + reply_to.map_or(0, <[u8]>::len) + others + frame.body.len()
}

fn encode(out: &mut Vec<u8>, body: &[u8]) -> usize {
    out.clear();
    for number in 0..FRAMES as u64 {
        let mut frame = FrameWriter::new(out, Command::Message, Version::V12);
        frame.header("subscription", b"0");
        frame.header_with("destination", |escaping, out| push_destination(escaping, out, b"", b"rpc-bench"));
        frame.header_u64("message-id", 1_000_000 + number);
        frame.lines(black_box(b"reply-to:/reply-queue/0123456789abcdef\ncorrelation-id:123456\n"));
        frame.body(black_box(body));
    }
    out.len()
}
