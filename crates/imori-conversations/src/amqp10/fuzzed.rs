//! AMQP 1.0 for the fuzzer.

use std::time::Duration;

use imori_amqp10::codec::composite::Composite;
use imori_amqp10::codec::composites::{
    Attach, Begin, Flow, Open, Performative, SaslFrame, SaslInit, Source, Target,
};
use imori_amqp10::codec::frame::{FrameKind, ProtocolHeader, Step, decode, push_frame};
use imori_amqp10::codec::restricted::Role;
use imori_amqp10::codec::value::Symbol;
use imori_amqp10::settings::Settings;

use crate::amqp10::Amqp10;
use crate::fuzzed::{Fuzzed, converse};

/// Runs the conversation of two clients that `data` stands for; `heard` gets each performative that
/// the broker writes.
///
/// # Panics
/// Panics if the broker stands still, or writes anything but frames.
pub fn fuzz(data: &[u8], heard: &mut dyn FnMut(&Performative<'_>)) {
    converse(data, &mut Answers { heard });
}

/// The performatives that the clients get.
struct Answers<'a> {
    heard: &'a mut dyn FnMut(&Performative<'_>),
}

impl Fuzzed for Answers<'_> {
    type Protocol = Amqp10;
    const UNIT_BYTES: usize = 8;
    const PASSING: Duration = Duration::from_secs(100);

    fn settings(choice: Option<u8>) -> Settings {
        Settings {
            channel_max: choice.map_or(1, |byte| u16::from(byte % 3) + 1),
            parked_bytes_max: 256,
            unfinished_bytes_max: 256,
            message_bytes_max: 512,
            ..Settings::default()
        }
    }

    /// A client's way to a session with a sender and a receiver.
    fn logins(_settings: &Settings) -> [Vec<u8>; 2] {
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
        let source = Some(Source { address: Some("q"), ..Source::default() });
        push(Attach { name: "in", handle: 1, role: Role::Receiver, source, ..Attach::default() }.into());
        push(Flow { incoming_window: 3, handle: Some(1), link_credit: Some(9), ..Flow::default() }.into());
        [out.clone(), out]
    }

    fn read(&mut self, _index: usize, bytes: &[u8]) {
        let mut rest = bytes;
        while !rest.is_empty() {
            let step = decode(rest, 512).unwrap_or_else(|error| panic!("{error}: {}", rest.escape_ascii()));
            let frame = match step {
                Step::Header(header) => {
                    rest = &rest[header.bytes().len()..];
                    continue;
                }
                Step::Frame(frame) => frame,
                Step::Incomplete { .. } => panic!("no frame: {}", rest.escape_ascii()),
            };
            rest = &rest[frame.len..];
            match frame.kind {
                FrameKind::Sasl => drop(SaslFrame::decode(frame.body).expect("the broker writes SASL")),
                FrameKind::Amqp if frame.body.is_empty() => {}
                FrameKind::Amqp => {
                    let read = Performative::decode(frame.body).expect("the broker writes performatives");
                    (self.heard)(&read.0);
                }
            }
        }
    }
}
