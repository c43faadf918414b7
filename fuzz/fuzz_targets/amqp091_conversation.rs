//! Two clients say anything to the broker in AMQP 0-9-1, in any pieces: it never panics, never stands
//! still, and all that it answers is made of frames.
//!
//! Input: a byte of settings, then turns: a byte that says whose turn it is and how long, then the
//! bytes that are said.

use imori_amqp091::codec::methods::Method;
use imori_conversations::amqp091;

use crate::planted::fail_if_planted;

/// Runs one input.
pub(crate) fn test_one_input(data: &[u8]) {
    amqp091::fuzz(data, &mut planted);
}

/// Does nothing unless a fault is planted: then a channel that is refused is one too many.
fn planted(method: &Method<'_>) {
    let is_found = matches!(method, Method::ChannelClose(_));
    fail_if_planted(is_found);
}
