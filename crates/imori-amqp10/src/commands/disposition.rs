//! `disposition`: what became of deliveries.

use imori_core::broker;
use imori_core::delivery::Outcome;
use imori_core::inbound::Performed;
use imori_core::outbound::Numbers;
use imori_core::turn::Budget;
use imori_core::world::World;

use crate::client::Client;
use crate::codec::composites::{DeliveryState, Disposition};
use crate::codec::condition;
use crate::codec::restricted::Role;
use crate::protocol_error::{Failure, ProtocolError};
use crate::session::session_of;

/// Settles deliveries as the client says; [`Performed::Partly`] where these are very many.
pub(crate) fn disposition<W: World>(
    client: &mut Client,
    world: &W,
    channel: u16,
    disposition: &Disposition<'_>,
    budget: &mut Budget,
) -> Result<Performed, Failure> {
    budget.spend(1, 0, None);
    if disposition.role == Role::Sender {
        // The broker has settled what it received.
        return Ok(Performed::Done);
    }
    let Some(outcome) = outcome(disposition)? else { return Ok(Performed::Done) };
    let session = session_of(channel);
    let delivered = world.with_outbound(client.connection, |outbound| outbound.delivered_in(session));
    let delivered = delivered.unwrap_or_default();
    let (first, last) = (disposition.first, disposition.last.unwrap_or(disposition.first));
    let Some(last) = number(delivered, last).or_else(|| number(delivered, first).map(|_| delivered)) else {
        return Ok(Performed::Done);
    };
    let Some(first) = number(delivered, first) else { return Ok(Performed::Done) };
    let report = broker::settle(world, &client.actor(), session, Numbers::Range(first, last), outcome)
        .map_err(|error| Failure::Session(error.into()))?;
    // Each of them may be followed by another delivery.
    budget.spend(0, report.settled, None);
    if report.has_more {
        return Ok(Performed::Partly);
    }
    if !disposition.settled {
        // AMQP 1.0, 2.6.12: where the receiver settles second, the sender does it now.
        let answer = Disposition { role: Role::Sender, settled: true, ..*disposition };
        client.answer(world, channel, report.confirm, &answer);
    }
    Ok(Performed::Done)
}

/// The number of the delivery with this id, among so many: ids are its last 32 bits. `None` where there is none yet.
fn number(delivered: u64, id: u32) -> Option<u64> {
    let behind = (delivered as u32).wrapping_sub(1).wrapping_sub(id);
    // A serial number in the upper half lies before (RFC 1982).
    let behind = if behind > i32::MAX as u32 { return None } else { behind };
    delivered.checked_sub(behind.into()).filter(|number| *number > 0)
}

fn outcome(disposition: &Disposition<'_>) -> Result<Option<Outcome>, Failure> {
    Ok(Some(match disposition.state {
        Some(DeliveryState::Accepted(_)) => Outcome::Accept,
        Some(DeliveryState::Rejected(_)) => Outcome::Reject,
        Some(DeliveryState::Released(_)) => Outcome::Release { failed: false },
        // RabbitMQ: what cannot be delivered here is dead-lettered.
        Some(DeliveryState::Modified(modified)) if modified.undeliverable_here == Some(true) => {
            Outcome::Reject
        }
        Some(DeliveryState::Modified(modified)) => {
            Outcome::Release { failed: modified.delivery_failed == Some(true) }
        }
        None if disposition.settled => Outcome::Release { failed: false },
        Some(DeliveryState::Received(_)) | None => return Ok(None),
        Some(DeliveryState::Transactional(_) | DeliveryState::Declared(_)) => {
            let text = "there is no transaction of this id; declare one first";
            return Err(Failure::Session(ProtocolError::new(condition::TRANSACTION_UNKNOWN_ID, text)));
        }
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_the_last_bits_of_numbers() {
        let far = (5 << 32) + 3;
        for (delivered, id, expected) in [
            (0, 0, None),
            (1, 0, Some(1)),
            (1, 1, None),
            (10, 3, Some(4)),
            (far, 2, Some(far)),
            (far, 3, None),
            (far, u32::MAX, Some(far - 3)),
            (2, u32::MAX, None),
        ] {
            assert_eq!(number(delivered, id), expected, "{id} of {delivered}");
        }
    }
}
