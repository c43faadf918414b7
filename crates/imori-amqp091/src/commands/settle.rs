//! `basic.ack`, `nack`, `reject` and `recover`: what became of deliveries.

use imori_core::broker;
use imori_core::delivery::Outcome;
use imori_core::outbound::{Numbers, SessionId};
use imori_core::world::World;

use crate::client::Client;
use crate::protocol_error::{Code, ProtocolError};

/// Settles a delivery, or all up to it.
pub(crate) fn settle<W: World>(
    client: &Client,
    world: &W,
    channel: u16,
    (tag, is_multiple): (u64, bool),
    outcome: Outcome,
) -> Result<(), ProtocolError> {
    let numbers = match (tag, is_multiple) {
        // AMQP 0-9-1, basic.ack: zero and multiple are all deliveries so far.
        (0, true) => Numbers::All,
        (tag, true) => Numbers::UpTo(tag),
        (tag, false) => Numbers::One(tag),
    };
    let settled = broker::settle(world, &client.actor(), SessionId(channel), numbers, outcome);
    settled.map(drop).map_err(|error| client.error(&error))
}

/// The outcome of a delivery that is not accepted: back to its queue, or dead-lettered.
pub(crate) fn refused(is_requeued: bool) -> Outcome {
    if is_requeued { Outcome::Release { failed: true } } else { Outcome::Reject }
}

/// Gives all unsettled deliveries of a channel back.
pub(crate) fn recover<W: World>(
    client: &Client,
    world: &W,
    channel: u16,
    is_requeued: bool,
) -> Result<(), ProtocolError> {
    if !is_requeued {
        return Err(ProtocolError::new(Code::NotImplemented, "requeue=false"));
    }
    let outcome = Outcome::Release { failed: false };
    let settled = broker::settle(world, &client.actor(), SessionId(channel), Numbers::All, outcome);
    settled.map(drop).map_err(|error| client.error(&error))
}
