//! `basic.ack`, `nack`, `reject` and `recover`: settles deliveries.

use imori_core::broker;
use imori_core::delivery::Outcome;
use imori_core::id::ConnectionId;
use imori_core::inbound::Performed;
use imori_core::outbound::{Numbers, Outbound, SessionId};
use imori_core::turn::Budget;
use imori_core::world::World;

use crate::client::Client;
use crate::protocol_error::{Code, ProtocolError};

/// Settles one delivery, or all up to it; [`Performed::Partly`] if there are too many for one turn.
pub(crate) fn settle<W: World>(
    client: &mut Client,
    world: &W,
    channel: u16,
    (tag, is_multiple): (u64, bool),
    outcome: Outcome,
    budget: &mut Budget,
) -> Result<Performed, ProtocolError> {
    match (tag, is_multiple) {
        // AMQP 0-9-1, basic.ack: tag 0 with multiple means all deliveries so far.
        (0, true) => settle_all(client, world, channel, outcome, budget),
        (tag, true) => settle_part(client, world, channel, Numbers::UpTo(tag), outcome, budget),
        (tag, false) => settle_part(client, world, channel, Numbers::One(tag), outcome, budget),
    }
}

/// Accepts a run of deliveries that were acknowledged one by one, from the first to the last
/// unsettled one without a gap. Returns how many.
pub(crate) fn accept_in_row<W: World>(
    client: &Client,
    world: &W,
    channel: u16,
    (first, last): (u64, u64),
    budget: &mut Budget,
) -> Result<usize, ProtocolError> {
    let numbers = Numbers::InRow(first, last);
    let report = broker::settle(world, &client.actor(), SessionId(channel), numbers, Outcome::Accept)
        .map_err(|error| client.error(&error))?;
    budget.spend(report.settled, report.settled, None);
    Ok(report.settled)
}

/// Returns the outcome of a refused delivery: requeued or dead-lettered.
pub(crate) fn refused(is_requeued: bool) -> Outcome {
    if is_requeued { Outcome::Release { failed: true } } else { Outcome::Reject }
}

/// Releases all unsettled deliveries of a channel; [`Performed::Partly`] if there are too many for
/// one turn.
pub(crate) fn recover<W: World>(
    client: &mut Client,
    world: &W,
    channel: u16,
    is_requeued: bool,
    budget: &mut Budget,
) -> Result<Performed, ProtocolError> {
    if !is_requeued {
        return Err(ProtocolError::new(Code::NotImplemented, "requeue=false"));
    }
    settle_all(client, world, channel, Outcome::Release { failed: false }, budget)
}

/// Settles all deliveries that the channel has when the command arrives, but not later ones.
fn settle_all<W: World>(
    client: &mut Client,
    world: &W,
    channel: u16,
    outcome: Outcome,
    budget: &mut Budget,
) -> Result<Performed, ProtocolError> {
    let begun = client.channels.get(&channel).and_then(|channel| channel.settles_through);
    let last = || last_unsettled(world, client.connection, channel);
    let Some(through) = begun.or_else(last) else { return Ok(Performed::Done) };
    let performed = settle_part(client, world, channel, Numbers::Range(0, through), outcome, budget)?;
    if let Some(channel) = client.channels.get_mut(&channel) {
        channel.settles_through = (performed == Performed::Partly).then_some(through);
    }
    Ok(performed)
}

/// Returns the number of a channel's last unsettled delivery.
pub(crate) fn last_unsettled<W: World>(world: &W, connection: ConnectionId, channel: u16) -> Option<u64> {
    let last = |outbound: &mut Outbound| {
        outbound.meant(SessionId(channel), Numbers::All, 0).last().map(|unsettled| unsettled.number)
    };
    world.with_outbound(connection, last).flatten()
}

fn settle_part<W: World>(
    client: &Client,
    world: &W,
    channel: u16,
    numbers: Numbers,
    outcome: Outcome,
    budget: &mut Budget,
) -> Result<Performed, ProtocolError> {
    let report = broker::settle(world, &client.actor(), SessionId(channel), numbers, outcome)
        .map_err(|error| client.error(&error))?;
    // Each settled delivery may make room for a new one.
    budget.spend(0, report.settled, None);
    Ok(if report.has_more { Performed::Partly } else { Performed::Done })
}
