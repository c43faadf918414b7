//! Two clients say anything to the broker in AMQP 1.0, in any pieces: it never panics, never stands
//! still, and all that it answers is made of frames.
//!
//! Input: a byte of settings, then turns: a byte that says whose turn it is and how long, then the
//! bytes that are said.

use imori_amqp10::codec::composites::Performative;
use imori_conversations::amqp10;

use crate::planted::fail_if_planted;

/// Runs one input.
pub(crate) fn test_one_input(data: &[u8]) {
    amqp10::fuzz(data, &mut planted);
}

/// Does nothing unless a fault is planted: then a session that is ended is one too many.
fn planted(performative: &Performative<'_>) {
    let is_found = matches!(performative, Performative::End(_));
    fail_if_planted(is_found);
}
