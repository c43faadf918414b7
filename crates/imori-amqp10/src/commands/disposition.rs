//! `disposition`: settles deliveries.

use std::cell::Cell;

use imori_core::broker::{self, Annotations};
use imori_core::delivery::Outcome;
use imori_core::inbound::Performed;
use imori_core::outbound::{Numbers, SessionId};
use imori_core::turn::Budget;
use imori_core::world::World;

use crate::client::Client;
use crate::codec::composites::{self, DeliveryState, Disposition, Modified};
use crate::codec::condition;
use crate::codec::restricted::Role;
use crate::codec::value::Map;
use crate::commands::flow::settle_last;
use crate::commands::transaction::{add_settle, named};
use crate::limits::ADDED_ANNOTATIONS_BYTES_MAX;
use crate::message::{annotated, annotated_again};
use crate::protocol_error::{Failure, ProtocolError};
use crate::session::session_of;
use crate::transaction::Retired;

/// Settles deliveries as the client says; [`Performed::Partly`] if there are too many for one turn.
pub(crate) fn disposition<W: World>(
    client: &mut Client,
    world: &W,
    channel: u16,
    disposition: &Disposition<'_>,
    budget: &mut Budget,
) -> Result<Performed, Failure> {
    budget.spend(1, 0, None);
    if disposition.role == Role::Sender {
        if disposition.settled {
            let range = (disposition.first, disposition.last.unwrap_or(disposition.first));
            settle_last(client, world, channel, range);
        }
        return Ok(Performed::Done);
    }
    let transaction = named(client, disposition.state.as_ref()).map_err(Failure::Session)?;
    let Some(outcome) = outcome(disposition) else { return Ok(Performed::Done) };
    let session = session_of(channel);
    let delivered = world.with_outbound(client.connection, |outbound| outbound.delivered_in(session));
    let delivered = delivered.unwrap_or_default();
    let (first, last) = (disposition.first, disposition.last.unwrap_or(disposition.first));
    let Some(last) =
        number_of_id(delivered, last).or_else(|| number_of_id(delivered, first).map(|_| delivered))
    else {
        return Ok(Performed::Done);
    };
    let Some(first) = number_of_id(delivered, first) else { return Ok(Performed::Done) };
    let more = added_by(disposition.state.as_ref());
    if let Some(transaction) = transaction {
        let retired = Retired {
            session,
            numbers: Numbers::Range(first, last),
            ids: (disposition.first, disposition.last),
            outcome,
            is_settled: disposition.settled,
        };
        let annotations = match more {
            Some(more) => Some(annotations(client, world, (session, retired.numbers), more)?),
            None => None,
        };
        add_settle(client, world, transaction, retired, annotations).map_err(Failure::Session)?;
        return Ok(Performed::Done);
    }
    if let Some(more) = more {
        annotate(client, world, (session, Numbers::Range(first, last)), more)?;
    }
    let report = broker::settle(world, &client.actor(), session, Numbers::Range(first, last), outcome)
        .map_err(|error| Failure::Session(error.into()))?;
    // Each settled delivery may make room for a new one.
    budget.spend(0, report.settled, None);
    if report.has_more {
        return Ok(Performed::Partly);
    }
    if !disposition.settled {
        // AMQP 1.0, 2.6.12: if the receiver settles second, the sender settles now.
        let answer = Disposition { role: Role::Sender, settled: true, ..*disposition };
        client.answer(world, channel, report.confirm, &answer);
    }
    Ok(Performed::Done)
}

/// Adds annotations to messages that the client is about to release (AMQP 1.0, 3.4.5).
fn annotate<W: World>(
    client: &Client,
    world: &W,
    (session, numbers): (SessionId, Numbers),
    more: Map<'_>,
) -> Result<(), Failure> {
    let is_over = Cell::new(false);
    let annotate = |before: Option<&[u8]>| {
        let annotations = annotated(before, more);
        is_over.set(is_over.get() || annotations.is_none());
        annotations
    };
    broker::annotate(world, &client.actor(), session, numbers, annotate)
        .map_err(|error| Failure::Session(error.into()))?;
    if is_over.get() { Err(too_many_annotations()) } else { Ok(()) }
}

/// Returns the annotations that a transaction adds at commit. The limit is checked now, as no other
/// client can annotate these messages until then.
fn annotations<W: World>(
    client: &Client,
    world: &W,
    (session, numbers): (SessionId, Numbers),
    more: Map<'_>,
) -> Result<Annotations, Failure> {
    let added = annotated(None, more).ok_or_else(too_many_annotations)?;
    let mut is_over = false;
    broker::visit_annotations(world, &client.actor(), session, numbers, |before| {
        is_over |= before.is_some() && annotated_again(before, &added).is_none();
    })
    .map_err(|error| Failure::Session(error.into()))?;
    if is_over { Err(too_many_annotations()) } else { Ok(Annotations { added, merge: annotated_again }) }
}

#[cold]
fn too_many_annotations() -> Failure {
    let text = format_args!(
        "annotations that receivers added to a message have over {ADDED_ANNOTATIONS_BYTES_MAX} bytes; add fewer"
    );
    Failure::Session(ProtocolError::new(condition::RESOURCE_LIMIT_EXCEEDED, text))
}

/// Returns the annotations in a `modified` outcome, also within a transaction.
fn added_by<'a>(state: Option<&DeliveryState<'a>>) -> Option<Map<'a>> {
    match state? {
        DeliveryState::Modified(modified) => modified.message_annotations,
        DeliveryState::Transactional(state) => match state.outcome? {
            composites::Outcome::Modified(modified) => modified.message_annotations,
            _ => None,
        },
        _ => None,
    }
}

/// Returns the number of the delivery with this id, which is its low 32 bits. `None` if it was not
/// delivered yet.
pub fn number_of_id(delivered: u64, id: u32) -> Option<u64> {
    let behind = (delivered as u32).wrapping_sub(1).wrapping_sub(id);
    // RFC 1982: a distance in the upper half means that the id lies ahead.
    let behind = if behind > i32::MAX as u32 { return None } else { behind };
    delivered.checked_sub(behind.into()).filter(|number| *number > 0)
}

fn outcome(disposition: &Disposition<'_>) -> Option<Outcome> {
    Some(match disposition.state {
        Some(DeliveryState::Transactional(state)) => of_transaction(state.outcome),
        Some(DeliveryState::Accepted(_)) => Outcome::Accept,
        Some(DeliveryState::Rejected(_)) => Outcome::Reject,
        Some(DeliveryState::Released(_)) => Outcome::Release { failed: false },
        Some(DeliveryState::Modified(modified)) => of_modified(&modified),
        // AMQP 1.0, 3.4.1: `received` is not an outcome. Settling with it, or without a state,
        // releases the delivery.
        Some(DeliveryState::Received(_)) | None if disposition.settled => Outcome::Release { failed: false },
        Some(DeliveryState::Received(_) | DeliveryState::Declared(_)) | None => return None,
    })
}

/// Returns the outcome of a delivery when its transaction commits.
fn of_transaction(outcome: Option<composites::Outcome<'_>>) -> Outcome {
    match outcome {
        // AMQP 1.0, 4.4.3: the default outcome of the link; this link has none.
        None | Some(composites::Outcome::Accepted(_)) => Outcome::Accept,
        Some(composites::Outcome::Rejected(_)) => Outcome::Reject,
        Some(composites::Outcome::Released(_)) => Outcome::Release { failed: false },
        Some(composites::Outcome::Modified(modified)) => of_modified(&modified),
    }
}

fn of_modified(modified: &Modified<'_>) -> Outcome {
    let failed = modified.delivery_failed == Some(true);
    match modified.undeliverable_here {
        // AMQP 1.0, 3.4.5: the message must not be delivered to this link again.
        Some(true) => Outcome::Refuse { failed },
        _ => Outcome::Release { failed },
    }
}
