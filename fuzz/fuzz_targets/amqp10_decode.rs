//! Any bytes, whole and in pieces, as the AMQP 1.0 decoder takes them.
//!
//! Held: a step consumes a frame, fails or waits; pieces give the same frames as the whole; a performative that is
//! encoded again reads the same; every value can be walked to its end and stays what it is; sections of a message have
//! headers and a body for other protocols; nothing is awaited past the limit.
//! The first byte of the input decides the sizes of the pieces.

use imori_amqp10::codec::composites::{Performative, SaslFrame};
use imori_amqp10::codec::frame::{Frame, FrameKind, Step, decode, push_frame};
use imori_amqp10::codec::push::push_value;
use imori_amqp10::codec::sections::{Section, Sections};
use imori_amqp10::codec::value::{Map, Value};
use imori_amqp10::{FORMS, reader_of_form};
use imori_core::message::{MessageView, OriginId, Properties};

use crate::planted::fail_if_planted;

/// Bytes of a frame at most.
const FRAME_BYTES_MAX: usize = 512;

/// The result of a run of the decoder: the frames, written anew.
#[derive(Debug, PartialEq, Eq)]
struct Outcome {
    frames: Vec<Vec<u8>>,
    is_refused: bool,
    rest: usize,
}

/// Runs one input.
pub(crate) fn test_one_input(data: &[u8]) {
    let [sizes, input @ ..] = data else { return };
    let whole = run(input, input.len().max(1));
    assert_eq!(run(input, usize::from(sizes % 16) + 1), whole);
    for frame in &whole.frames {
        let again = run(frame, usize::MAX);
        assert_eq!(again.frames, std::slice::from_ref(frame), "what was read can be written");
        assert!(!again.is_refused && again.rest == 0);
    }
    // A payload of its own, as it can be longer than a frame.
    message(input);
    if let Ok((value, _)) = Value::decode(input) {
        look(value);
    }
}

fn run(input: &[u8], size: usize) -> Outcome {
    let mut outcome = Outcome { frames: Vec::new(), is_refused: false, rest: 0 };
    let (mut start, mut end) = (0, 0);
    while end < input.len() {
        end = end.saturating_add(size).min(input.len());
        loop {
            match decode(&input[start..end], FRAME_BYTES_MAX) {
                Ok(Step::Frame(frame)) => {
                    assert!(frame.len <= end - start);
                    start += frame.len;
                    let Some(again) = again(&frame) else {
                        outcome.is_refused = true;
                        return outcome;
                    };
                    outcome.frames.push(again);
                }
                Ok(Step::Header(header)) => {
                    start += header.bytes().len();
                    outcome.frames.push(header.bytes().to_vec());
                }
                Ok(Step::Incomplete { frame_bytes }) => {
                    assert!(end - start < FRAME_BYTES_MAX, "nothing is awaited past the limit");
                    assert!(frame_bytes.is_none_or(|bytes| bytes > end - start && bytes <= FRAME_BYTES_MAX));
                    break;
                }
                Err(error) => {
                    refused(error);
                    outcome.is_refused = true;
                    return outcome;
                }
            }
        }
    }
    outcome.rest = end - start;
    outcome
}

/// The frame as it is written; `None` where its body means nothing.
fn again(frame: &Frame<'_>) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    match frame.kind {
        _ if frame.body.is_empty() => {}
        FrameKind::Amqp => {
            let (performative, payload) = Performative::decode(frame.body).map_err(refused).ok()?;
            look_at_maps(&performative);
            performative.encode(&mut body);
            body.extend_from_slice(payload);
            message(payload);
        }
        FrameKind::Sasl => SaslFrame::decode(frame.body).map_err(refused).ok()?.encode(&mut body),
    }
    assert!(body.len() <= frame.body.len(), "the fewest bytes are written");
    let mut out = Vec::new();
    push_frame(&mut out, frame.kind, frame.channel, |out| out.extend_from_slice(&body));
    Some(out)
}

fn refused(error: impl std::fmt::Display) {
    assert!(!error.to_string().contains(char::is_control), "it is one line");
}

fn look_at_maps(performative: &Performative<'_>) {
    match performative {
        Performative::Open(open) => {
            walk(open.properties.unwrap_or_default());
            planted(open.desired_capabilities.is_some_and(|symbols| symbols.iter().count() > 1));
        }
        Performative::Attach(attach) => walk(attach.properties.unwrap_or_default()),
        _ => {}
    }
}

/// Reads a message, and what other protocols see of it.
fn message(payload: &[u8]) {
    let mut sections = Sections::new(payload);
    let mut body = None;
    loop {
        let rest = sections.rest();
        match sections.next_section().map_err(refused) {
            Err(()) => return,
            Ok(None) => break,
            Ok(Some(section)) => match section {
                Section::MessageAnnotations(map)
                | Section::ApplicationProperties(map)
                | Section::Footer(map) => walk(map),
                Section::AmqpValue(value) => look(value),
                Section::AmqpSequence(list) => list.iter().for_each(look),
                Section::Data(_)
                | Section::Header(_)
                | Section::Properties(_)
                | Section::DeliveryAnnotations(_) => {}
            },
        }
        let is_body = matches!(sections.last_kind(), Some(kind) if kind.is_body());
        body = body.or(is_body.then_some(rest));
    }
    let body = body.unwrap_or_default();
    let text = &payload[..payload.len() - body.len()];
    let properties = Properties::new(OriginId(1));
    for form in 0..FORMS {
        let reader = reader_of_form(form);
        let message = MessageView { properties: &properties, text, body };
        let mut names = Vec::new();
        reader.visit_headers(text, &mut |name, value| names.push((name, value)));
        for (name, _) in &names {
            assert!(reader.header(text, name).is_some(), "what is shown is found");
        }
        let _ = reader.timestamp_ms(&message);
        assert!(
            reader.body(&message).len() <= 32 * body.len().max(1) + 8192,
            "a body does not grow without bound"
        );
    }
}

/// Looks at every value: what was checked has all of its bytes, and is written as it was.
fn walk(map: Map<'_>) {
    let mut count = 0;
    for (key, value) in map.iter() {
        count += 1;
        look(key);
        look(value);
    }
    assert_eq!(count, map.len());
}

fn look(value: Value<'_>) {
    match value {
        Value::List(list) => {
            assert_eq!(list.iter().count(), list.len());
            list.iter().for_each(look);
        }
        Value::Map(map) => walk(map),
        Value::Array(array) => {
            assert_eq!(array.iter().count(), array.len());
            array.iter().for_each(look);
        }
        Value::Described(described) => look(described.value()),
        _ => {
            let mut written = Vec::new();
            push_value(&mut written, value);
            let (again, rest) = Value::decode(&written).expect("what is written can be read");
            let mut twice = Vec::new();
            push_value(&mut twice, again);
            assert!(rest.is_empty() && twice == written);
        }
    }
}

/// Does nothing unless a fault is planted: then an `open` that desires two capabilities has one too many.
fn planted(is_found: bool) {
    fail_if_planted(is_found);
}
