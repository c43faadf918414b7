//! Two clients say anything to the broker in NATS, in any pieces: it never panics, never stands
//! still, and all that it answers is made of operations.
//!
//! Input: a byte of settings, then turns: a byte that says whose turn it is and how long, then the
//! bytes that are said.

use imori_conversations::nats;
use imori_nats::codec::operation::ServerOp;

use crate::planted::fail_if_planted;

/// Runs one input.
pub(crate) fn test_one_input(data: &[u8]) {
    nats::fuzz(data, &mut planted);
}

/// Does nothing unless a fault is planted: then a message with headers is one too many.
fn planted(op: &ServerOp<'_>) {
    let is_found = matches!(op, ServerOp::Message(message) if message.headers.is_some());
    fail_if_planted(is_found);
}
