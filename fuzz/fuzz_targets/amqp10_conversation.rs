//! Two clients say anything to the broker, in any pieces: it never panics, never stands still,
//! and all that it answers is made of frames.
//!
//! Input: a byte of settings, then turns: a byte that says whose turn it is and how long, then
//! so many bytes of what is said.

#![no_main]

use std::sync::Arc;

use imori_amqp10::codec::composite::Composite;
use imori_amqp10::codec::composites::{
    Attach, Begin, Flow, Open, Performative, SaslFrame, SaslInit, Source, Target,
};
use imori_amqp10::codec::frame::{FrameKind, ProtocolHeader, Step, decode, push_frame};
use imori_amqp10::codec::restricted::Role;
use imori_amqp10::codec::value::Symbol;
use imori_amqp10::connection::Connection;
use imori_amqp10::header_reader;
use imori_amqp10::settings::Settings;
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
        message_bytes_max: 512,
        ..Settings::default()
    });
    let mut clients = [(); 2].map(|()| Client::new(&world, &settings, true));
    for client in &mut clients {
        client.send(&world, &login());
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

/// A client's way to a session with a sender and a receiver.
fn login() -> Vec<u8> {
    let mut out = ProtocolHeader::Sasl.bytes().to_vec();
    let init = SaslInit {
        mechanism: Symbol("PLAIN"),
        initial_response: Some(b"\0guest\0guest"),
        ..SaslInit::default()
    };
    push_frame(&mut out, FrameKind::Sasl, 0, |out| init.encode(out));
    out.extend_from_slice(ProtocolHeader::Amqp.bytes());
    let mut push = |performative: Performative<'_>| {
        push_frame(&mut out, FrameKind::Amqp, 0, |out| performative.encode(out));
    };
    push(Open { container_id: "c", max_frame_size: 512, ..Open::default() }.into());
    push(Begin { incoming_window: 3, outgoing_window: 3, ..Begin::default() }.into());
    let target = Target { address: Some("q"), ..Target::default() };
    push(Attach { name: "out", target: Some(target.into()), ..Attach::default() }.into());
    let source = Source { address: Some("q"), ..Source::default() };
    push(
        Attach { name: "in", handle: 1, role: Role::Receiver, source: Some(source), ..Attach::default() }
            .into(),
    );
    push(Flow { incoming_window: 3, handle: Some(1), link_credit: Some(9), ..Flow::default() }.into());
    out
}

/// Reads all that the broker wrote: headers and whole frames.
fn read(bytes: &[u8]) {
    let mut rest = bytes;
    while !rest.is_empty() {
        let step = decode(rest, 512).unwrap_or_else(|error| panic!("{error}: {}", rest.escape_ascii()));
        match step {
            Step::Header(header) => rest = &rest[header.bytes().len()..],
            Step::Frame(frame) => {
                rest = &rest[frame.len..];
                match frame.kind {
                    FrameKind::Sasl => drop(SaslFrame::decode(frame.body).expect("the broker writes SASL")),
                    FrameKind::Amqp if frame.body.is_empty() => {}
                    FrameKind::Amqp => {
                        let read = Performative::decode(frame.body).expect("the broker writes performatives");
                        planted(&read.0);
                    }
                }
            }
            Step::Incomplete { .. } => panic!("no frame: {}", rest.escape_ascii()),
        }
    }
}

/// Does nothing unless a fault is planted: then a session that is ended is one too many.
fn planted(performative: &Performative<'_>) {
    let is_found = matches!(performative, Performative::End(_));
    imori_fuzz::fail_if_planted(is_found);
}
