//! Moves an operator's ready messages: all to one address, or each dead letter back to the queue where it died.

use crate::authorize::Actor;
use crate::broker::{Waiting, peek, relocate};
use crate::confirm::Confirm;
use crate::entries::Entry;
use crate::error::BrokerError;
use crate::message::{Address, DEFAULT_EXCHANGE, Deaths};
use crate::name::Name;
use crate::queue::PeekPart;
use crate::world::World;

/// The address to move messages to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MoveTarget {
    /// To this exchange with this routing key; `None` keeps each message's own key.
    Address {
        /// The exchange; empty for the default one.
        exchange: Name,
        /// The routing key that all messages get.
        routing_key: Option<Name>,
    },
    /// Each dead letter to the queue where it last died.
    Origin,
}

/// The result of one move command.
#[derive(Debug, Default)]
pub struct MoveBatch {
    /// The new address of each moved message.
    pub targets: Vec<Address>,
    /// Messages that stay, because they have no target.
    pub skipped: usize,
    /// No message follows the skipped ones.
    pub is_end: bool,
    /// The next message is on disk.
    pub is_on_disk: bool,
    /// Why the first unmovable message was refused.
    pub stopped: Option<BrokerError>,
}

impl MoveTarget {
    /// The address to move a message to; `None` if it stays.
    #[must_use]
    pub fn of(&self, entry: &Entry) -> Option<Address> {
        let envelope = entry.envelope();
        match self {
            MoveTarget::Address { exchange, routing_key } => {
                let key = routing_key.as_ref().unwrap_or(&envelope.address.subject);
                Some(Address::new(exchange.as_bytes(), key.as_bytes()))
            }
            MoveTarget::Origin => {
                let died = envelope.deaths.as_deref().and_then(|deaths: &Deaths| deaths.iter().next())?;
                Some(Address::new(DEFAULT_EXCHANGE, died.queue.as_bytes()))
            }
        }
    }
}

/// Moves messages that are in memory, up to the first that cannot be moved. Returns the confirm after which the moves
/// survive a crash.
pub(super) fn move_messages<W: World>(
    world: &W,
    actor: &Actor<'_>,
    from: &Name,
    target: &MoveTarget,
    (skip, count): (usize, usize),
) -> Result<(MoveBatch, Confirm), BrokerError> {
    let (_, found) = peek(world, actor, from.as_bytes(), skip, count)?;
    let is_end = found.parts.is_empty() && !found.is_being_written;
    let (mut batch, mut confirm) = (MoveBatch { is_end, ..MoveBatch::default() }, Confirm::NOW);
    let Some(PeekPart::Entries(entries)) = found.parts.into_iter().next() else {
        batch.is_on_disk = !batch.is_end;
        return Ok((batch, confirm));
    };
    for entry in &entries {
        let Some(to) = target.of(entry) else {
            batch.skipped += 1;
            continue;
        };
        let waiting = Waiting { priority: entry.envelope().priority, sequence: entry.envelope().sequence };
        match relocate(world, actor, from.as_bytes(), waiting, &to) {
            Ok(Some(moved)) => {
                confirm = confirm.after(moved);
                batch.targets.push(to);
            }
            // A consumer has taken it meanwhile.
            Ok(None) => {}
            Err(error) => {
                batch.stopped = Some(error);
                break;
            }
        }
    }
    Ok((batch, confirm))
}
