//! Inspects ready messages of a queue without changing it.

use crate::authorize::{Action, Actor, Object};
use crate::definitions::find_queue;
use crate::error::BrokerError;
use crate::id::QueueId;
use crate::name::Name;
use crate::queue::Peek;
use crate::world::World;

/// Returns up to `count` ready messages of a queue, after the first `skip`, in delivery order. Also
/// returns the queue's id, for messages that must still be read from disk.
///
/// # Errors
/// [`BrokerError::Refused`], [`BrokerError::Locked`] or [`BrokerError::NoQueue`].
pub fn peek<W: World>(
    world: &W,
    actor: &Actor<'_>,
    name: &[u8],
    skip: usize,
    count: usize,
) -> Result<(QueueId, Peek), BrokerError> {
    world.authorize(actor, Action::Consume, Object::Queue(name))?;
    let id = find_queue(world, actor, name)?;
    let peek = world.with_queue(id, |queue| queue.peek(skip, count));
    peek.map(|peek| (id, peek)).ok_or_else(|| BrokerError::NoQueue(Name::new(name)))
}
