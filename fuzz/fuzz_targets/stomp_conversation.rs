//! Two clients say anything to the broker in STOMP, in any pieces: it never panics, never stands
//! still, and all that it answers is made of frames.
//!
//! Input: a byte of settings, then turns: a byte that says whose turn it is and how long, then the
//! bytes that are said.

use imori_conversations::stomp;
use imori_stomp::codec::command::Command;

use crate::planted::fail_if_planted;

/// Runs one input.
pub(crate) fn test_one_input(data: &[u8]) {
    stomp::fuzz(data, &mut planted);
}

/// Does nothing unless a fault is planted: then a RECEIPT, which is given for a whole frame that asks
/// for one, is one too many.
fn planted(command: Command) {
    let is_found = command == Command::Receipt;
    fail_if_planted(is_found);
}
