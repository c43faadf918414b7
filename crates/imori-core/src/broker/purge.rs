//! Drops what waits in a queue.

use super::deliver::change_and_deliver;
use crate::authorize::{Action, Actor, Object};
use crate::confirm::{Confirm, Level};
use crate::definitions::find_queue;
use crate::error::BrokerError;
use crate::name::Name;
use crate::world::{Change, World};

/// Drops the messages of a queue that wait to be given out; gives how many they were, and the confirm after which no
/// crash brings them back. Deliveries that are not settled stay, and so do messages that are not due. Nothing is
/// dead-lettered.
///
/// # Errors
/// [`BrokerError::Refused`], [`BrokerError::Locked`] or [`BrokerError::NoQueue`].
pub fn purge<W: World>(world: &W, actor: &Actor<'_>, name: &[u8]) -> Result<(usize, Confirm), BrokerError> {
    world.authorize(actor, Action::Purge, Object::Queue(name))?;
    let id = find_queue(world, actor, name)?;
    let now = world.now();
    let purged = change_and_deliver(world, id, |queue, effects| {
        let level = queue.durability().map_or(Level::Memory, |durability| durability.level);
        (queue.purge(now, effects), level)
    });
    let (count, level) = purged.ok_or_else(|| BrokerError::NoQueue(Name::new(name)))?;
    world.changed(actor, Change::Purge, &Object::Queue(name));
    // The records of this verb are among those up to now.
    Ok((count, Confirm::of(level, world.appended())))
}
