//! Cancels delayed messages on behalf of their publisher.

use super::deliver::change_and_deliver;
use crate::authorize::{Action, Actor, Object};
use crate::confirm::{Confirm, Level};
use crate::definitions::find_queue;
use crate::error::BrokerError;
use crate::message::DEFAULT_EXCHANGE;
use crate::name::Name;
use crate::world::World;

/// Cancels the delayed messages of a queue with this message id, unless they are already due.
///
/// Returns their number, and the confirm after which the cancellation survives a crash.
///
/// # Errors
/// [`BrokerError::Refused`] for a client that may not publish to the queue, [`BrokerError::Locked`]
/// or
/// [`BrokerError::NoQueue`].
pub fn cancel_delayed<W: World>(
    world: &W,
    actor: &Actor<'_>,
    queue: &[u8],
    message: &[u8],
) -> Result<(usize, Confirm), BrokerError> {
    let object = Object::Subject { exchange: DEFAULT_EXCHANGE, subject: queue, is_topic: false };
    world.authorize(actor, Action::Publish, object)?;
    let id = find_queue(world, actor, queue)?;
    let now = world.now();
    let cancelled = change_and_deliver(world, id, |queue, effects| {
        let recorded = effects.settled.len();
        let count = queue.cancel(message, now, effects);
        let durability = queue.durability().filter(|_| effects.settled.len() > recorded);
        (count, durability.map_or(Level::Memory, |durability| durability.level))
    });
    let (count, level) = cancelled.ok_or_else(|| BrokerError::NoQueue(Name::new(queue)))?;
    // The records of this change are among those appended so far.
    Ok((count, world.confirm_own(level)))
}
