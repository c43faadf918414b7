//! Any bytes, whole and in pieces, as the NATS decoder takes them, from a client or from a server.
//!
//! Held: a step consumes a byte, fails or waits; pieces give the same operations as the whole; an
//! operation that is encoded again reads the same; nothing is awaited past the limits.
//! The first byte of the input chooses the direction, the second the sizes of the pieces.

use imori_nats::codec::decode::{Decoder, Step};
use imori_nats::codec::encode::{push_message, push_publish, push_subscribe, push_unsubscribe};
use imori_nats::codec::error::DecodeError;
use imori_nats::codec::headers::Headers;
use imori_nats::codec::operation::{ClientOp, ServerOp};
use imori_nats::limits::Limits;

use crate::planted::fail_if_planted;

const LIMITS: Limits = Limits { control_line_bytes_max: 64, payload_bytes_max: 512 };

/// For what is written anew: an -ERR that came without quotes has them then.
const LIMITS_AGAIN: Limits = Limits { control_line_bytes_max: LIMITS.control_line_bytes_max + 2, ..LIMITS };

/// What a run of the decoder came to: the operations, written anew.
#[derive(Debug, PartialEq, Eq)]
struct Outcome {
    operations: Vec<Vec<u8>>,
    is_refused: bool,
    rest: usize,
}

/// Runs one input.
pub(crate) fn test_one_input(data: &[u8]) {
    let [direction, sizes, input @ ..] = data else { return };
    let step = if direction % 2 == 0 { client_step } else { server_step };
    let whole = run(step, LIMITS, input, input.len().max(1));
    assert_eq!(run(step, LIMITS, input, usize::from(sizes % 16) + 1), whole);
    for operation in &whole.operations {
        let again = run(step, LIMITS_AGAIN, operation, usize::MAX);
        assert_eq!(again.operations, std::slice::from_ref(operation), "what was read can be written");
        assert!(!again.is_refused && again.rest == 0);
    }
}

type StepFn = fn(&mut Decoder, &[u8]) -> Result<Step<Vec<u8>>, DecodeError>;

fn run(step: StepFn, limits: Limits, input: &[u8], size: usize) -> Outcome {
    let mut decoder = Decoder::new(limits);
    let mut outcome = Outcome { operations: Vec::new(), is_refused: false, rest: 0 };
    let (mut start, mut end) = (0, 0);
    while end < input.len() {
        end = end.saturating_add(size).min(input.len());
        loop {
            match step(&mut decoder, &input[start..end]) {
                Ok(Step::Op { op, consumed }) => {
                    assert!(consumed > 0 && consumed <= end - start);
                    outcome.operations.push(op);
                    start += consumed;
                }
                Ok(Step::Incomplete { needed }) => {
                    // The longest operation, its line, the message, and the ends of both.
                    let max = 7 + 1 + limits.control_line_bytes_max + 2 + limits.payload_bytes_max + 2;
                    assert!(end - start <= max, "nothing is awaited past the limits");
                    assert!(needed.is_none_or(|needed| needed > end - start && needed <= max));
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

fn client_step(decoder: &mut Decoder, input: &[u8]) -> Result<Step<Vec<u8>>, DecodeError> {
    Ok(match decoder.client_op(input)? {
        Step::Incomplete { needed } => Step::Incomplete { needed },
        Step::Op { op, consumed } => {
            let mut out = Vec::new();
            match op {
                ClientOp::Connect(json) => out.extend([b"CONNECT ", json, b"\r\n"].concat()),
                ClientOp::Publish(publish) => {
                    planted(publish.headers);
                    Headers::new(publish.headers.unwrap_or_default()).for_each(drop);
                    push_publish(&mut out, &publish);
                }
                ClientOp::Subscribe(subscribe) => push_subscribe(&mut out, &subscribe),
                ClientOp::Unsubscribe(unsubscribe) => push_unsubscribe(&mut out, &unsubscribe),
                ClientOp::Ping => out.extend(b"PING\r\n"),
                ClientOp::Pong => out.extend(b"PONG\r\n"),
                ClientOp::Nothing => out.extend(b"+OK\r\n"),
            }
            Step::Op { op: out, consumed }
        }
    })
}

fn server_step(decoder: &mut Decoder, input: &[u8]) -> Result<Step<Vec<u8>>, DecodeError> {
    Ok(match decoder.server_op(input)? {
        Step::Incomplete { needed } => Step::Incomplete { needed },
        Step::Op { op, consumed } => {
            let mut out = Vec::new();
            match op {
                ServerOp::Info(json) => out.extend([b"INFO ", json, b"\r\n"].concat()),
                ServerOp::Message(message) => {
                    planted(message.headers);
                    push_message(&mut out, &message);
                }
                ServerOp::Err(text) => out.extend([b"-ERR '", text, b"'\r\n"].concat()),
                ServerOp::Ok => out.extend(b"+OK\r\n"),
                ServerOp::Ping => out.extend(b"PING\r\n"),
                ServerOp::Pong => out.extend(b"PONG\r\n"),
            }
            Step::Op { op: out, consumed }
        }
    })
}

/// Does nothing unless a fault is planted: then headers without a message are one too many.
fn planted(headers: Option<&[u8]>) {
    let is_found = headers.is_some_and(|headers| headers.ends_with(b"\r\n"));
    fail_if_planted(is_found);
}
