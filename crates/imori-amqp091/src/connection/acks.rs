//! Takes runs of acknowledgements at once, as most clients acknowledge every delivery, in order.

use imori_core::inbound::Taken;
use imori_core::limits::SETTLES_AT_ONCE;
use imori_core::outbound::SessionId;
use imori_core::turn::Budget;
use imori_core::world::World;

use super::Connection;
use crate::codec::frame::{Frame, HEAD_BYTES};
use crate::codec::methods::{Method, basic};
use crate::commands::settle::accept_in_row;
use crate::protocol_error::ProtocolError;

impl Connection {
    /// Performs an ack of one delivery, together with acks of the next deliveries that follow it in
    /// the input.
    pub(super) fn take_acks<W: World>(
        &mut self,
        world: &W,
        frame: &Frame<'_>,
        ack: basic::Ack,
        input: &[u8],
        budget: &mut Budget,
    ) -> Result<Taken, ProtocolError> {
        let max = budget.commands().min(SETTLES_AT_ONCE);
        let last = last_in_row(input, frame.len(), ack.delivery_tag, max);
        let numbers = (ack.delivery_tag, last);
        let accepted = accept_in_row(&self.client, world, frame.channel, numbers, budget);
        if accepted.is_err() && self.intake.parking.has_parked_of(SessionId(frame.channel)) {
            let left = self.take_method(world, frame, &Method::BasicAck(ack), budget)?;
            return Ok(left.map_or(Taken::Bytes(frame.len()), Taken::Left));
        }
        Ok(Taken::Bytes(frame.len() * accepted?))
    }
}

/// Returns the last tag in the run of acks at the start of the input, each for the delivery after
/// the previous one. Their frames differ only in the tag; at most `max` are considered.
fn last_in_row(input: &[u8], frame_len: usize, first: u64, max: usize) -> u64 {
    let mut last = first;
    let mut frames = input.chunks_exact(frame_len).take(max);
    let Some((before, _, behind)) = frames.next().and_then(around_tag) else { return last };
    for (front, tag, end) in frames.map_while(around_tag) {
        if front != before || end != behind || last.checked_add(1) != Some(u64::from_be_bytes(*tag)) {
            break;
        }
        last += 1;
    }
    last
}

/// Splits a `basic.ack` frame into the bytes before the delivery tag, the tag, and the bytes after
/// it.
fn around_tag(frame: &[u8]) -> Option<(&[u8], &[u8; 8], &[u8])> {
    let (before, rest) = frame.split_at_checked(HEAD_BYTES + 2 + 2)?;
    let (tag, behind) = rest.split_first_chunk()?;
    Some((before, tag, behind))
}
