//! Any bytes, whole and in pieces, as the AMQP 0-9-1 decoder takes them.
//!
//! Held: a step consumes a frame, fails or waits; pieces give the same frames as the whole; a frame that is
//! encoded again reads the same; every table can be walked to its end; nothing is awaited past the limit.
//! The first byte of the input decides the sizes of the pieces.

use imori_amqp091::codec::frame::{
    FRAME_BYTES, Frame, FrameType, Step, decode, push_content_header, push_frame,
};
use imori_amqp091::codec::methods::Method;
use imori_amqp091::codec::properties::{BasicProperties, ContentHeader};
use imori_amqp091::codec::push::push_field;
use imori_amqp091::codec::table::{FieldValue, Table};

use crate::planted::fail_if_planted;

/// Bytes of a payload at most.
const PAYLOAD_BYTES_MAX: usize = 512;

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
}

fn run(input: &[u8], size: usize) -> Outcome {
    let mut outcome = Outcome { frames: Vec::new(), is_refused: false, rest: 0 };
    let (mut start, mut end) = (0, 0);
    while end < input.len() {
        end = end.saturating_add(size).min(input.len());
        loop {
            match decode(&input[start..end], PAYLOAD_BYTES_MAX) {
                Ok(Step::Frame(frame)) => {
                    assert!(frame.len() <= end - start);
                    start += frame.len();
                    let Some(again) = again(&frame) else {
                        outcome.is_refused = true;
                        return outcome;
                    };
                    outcome.frames.push(again);
                }
                Ok(Step::Incomplete { frame_bytes }) => {
                    let max = PAYLOAD_BYTES_MAX + FRAME_BYTES;
                    assert!(end - start < max, "nothing is awaited past the limit");
                    assert!(frame_bytes.is_none_or(|bytes| bytes > end - start && bytes <= max));
                    break;
                }
                Err(error) => {
                    assert!(!error.to_string().contains(char::is_control), "{error:?} is one line");
                    outcome.is_refused = true;
                    return outcome;
                }
            }
        }
    }
    outcome.rest = end - start;
    outcome
}

/// The frame as it is written; `None` where its payload means nothing.
fn again(frame: &Frame<'_>) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    match frame.kind {
        FrameType::Method => {
            let method = Method::decode(frame.payload).map_err(refused).ok()?;
            if let Method::QueueDeclare(declare) = method {
                walk(declare.arguments);
                planted(declare.arguments);
            }
            push_frame(&mut out, frame.kind, frame.channel, |out| {
                out.extend_from_slice(&frame.payload[..4]);
                method.push_fields(out);
            });
        }
        FrameType::Header => {
            let header = ContentHeader::decode(frame.payload).map_err(refused).ok()?;
            let properties = BasicProperties::read(header.properties).map_err(refused).ok()?;
            walk(properties.headers.unwrap_or_default());
            let mut written = Vec::new();
            properties.push(&mut written);
            assert_eq!(written, header.properties);
            push_content_header(&mut out, frame.channel, header.body_len as usize, &written);
        }
        FrameType::Body | FrameType::Heartbeat => {
            push_frame(&mut out, frame.kind, frame.channel, |out| out.extend_from_slice(frame.payload));
        }
    }
    Some(out)
}

fn refused(error: impl std::fmt::Display) {
    assert!(!error.to_string().contains(char::is_control), "it is one line");
}

/// Looks at every value: what was checked has all of its bytes.
fn walk(table: Table<'_>) {
    let mut written = Vec::new();
    for (name, value) in table.iter() {
        look(value);
        push_field(&mut written, name, value);
    }
    assert_eq!(written.len(), table.bytes().len());
}

fn look(value: FieldValue<'_>) {
    match value {
        FieldValue::Table(table) => walk(table),
        FieldValue::Array(array) => array.iter().for_each(look),
        _ => {}
    }
}

/// Does nothing unless a fault is planted: then an array in the arguments of a queue is one too many.
fn planted(arguments: Table<'_>) {
    let is_found = arguments.iter().any(|(_, value)| matches!(value, FieldValue::Array(_)));
    fail_if_planted(is_found);
}
