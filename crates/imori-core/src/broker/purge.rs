//! Purges the ready messages of a queue.

use super::deliver::change_and_deliver;
use crate::authorize::{Action, Actor, Object};
use crate::confirm::Confirm;
use crate::definitions::find_queue;
use crate::error::BrokerError;
use crate::name::Name;
use crate::world::{Change, World};

/// Drops the ready messages of a queue; returns their number, and the confirm after which the purge
/// survives a crash. Unsettled deliveries and delayed messages stay. Nothing is dead-lettered.
///
/// # Errors
/// [`BrokerError::Refused`], [`BrokerError::Locked`], [`BrokerError::NoQueue`] or [`BrokerError::StreamKeeps`].
pub fn purge<W: World>(world: &W, actor: &Actor<'_>, name: &[u8]) -> Result<(usize, Confirm), BrokerError> {
    world.authorize(actor, Action::Purge, Object::Queue(name))?;
    let id = find_queue(world, actor, name)?;
    let now = world.now();
    let purged = change_and_deliver(world, id, |queue, effects| {
        let level = queue.level();
        queue.check_purge()?;
        Ok::<_, BrokerError>((queue.purge(now, effects), level))
    });
    let (count, level) = purged.ok_or_else(|| BrokerError::NoQueue(Name::new(name)))??;
    world.changed(actor, Change::Purge, &Object::Queue(name));
    Ok((count, world.confirm_own(level)))
}
