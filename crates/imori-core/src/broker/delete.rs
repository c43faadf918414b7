//! Queues end.

use super::declare::{define, find_queue};
use crate::authorize::{Action, Actor, Object, authorize};
use crate::error::BrokerError;
use crate::id::{QueueId, VhostId};
use crate::name::Name;
use crate::pipeline::{give_up, publish_dead_letters, record_effects, relieve};
use crate::queue::{Dead, Durability, Effects, Queue};
use crate::record::Definition;
use crate::world::World;

/// Deletes a queue with what is in it, tells its consumers, and gives how many messages waited.
///
/// # Errors
/// [`BrokerError::Refused`], [`BrokerError::Locked`] or [`BrokerError::NoQueue`].
pub fn delete_queue<W: World>(world: &W, actor: &Actor<'_>, name: &[u8]) -> Result<usize, BrokerError> {
    authorize(actor.identity, Action::Delete, actor.vhost, Object::Queue(name))?;
    let id = find_queue(world, actor, name)?;
    remove_queue(world, id).ok_or_else(|| BrokerError::NoQueue(Name::new(name)))
}

/// Takes a queue away and tells its consumers; `None` where it is gone already.
pub(super) fn remove_queue<W: World>(world: &W, id: QueueId) -> Option<usize> {
    // Before it is recorded that the queue is gone, and with it all that it holds.
    world.with_queue(id, |queue| Lingered::of(world, queue))?.bury(world);
    let mut queue = world.with_topology(|topology| {
        topology.forget_queue(id);
        note_gone(world, world.remove_queue(id))
    })?;
    Lingered::of(world, &mut queue).bury(world);
    give_up(world, id, queue.take_pages());
    relieve(world, queue.relieve());
    for reader in queue.consumers() {
        world.with_outbound(reader.connection, |outbound| outbound.cancel_reader(reader.id, queue.name()));
    }
    Some(queue.ready_len())
}

/// Deletes an auto-delete queue if it still has no consumer.
pub(super) fn delete_unused<W: World>(world: &W, id: QueueId) {
    delete_if(world, id, |queue| queue.consumers_len() == 0);
}

/// Deletes a queue that nobody used for longer than it may be idle.
pub(super) fn delete_idle<W: World>(world: &W, id: QueueId) {
    let now = world.now();
    delete_if(world, id, |queue| queue.is_idle_too_long(now));
}

fn delete_if<W: World>(world: &W, id: QueueId, is_due: impl FnOnce(&Queue) -> bool) {
    let queue = world.with_topology(|topology| {
        let is_due = world.with_queue(id, |queue| {
            let is_due = is_due(queue);
            if is_due {
                // Who found it before it was forgotten may come to read it until it is removed.
                queue.retire();
            }
            is_due
        })?;
        if !is_due {
            return None;
        }
        topology.forget_queue(id);
        note_gone(world, world.remove_queue(id))
    });
    // Its messages go after everybody else can go on.
    if let Some(mut queue) = queue {
        Lingered::of(world, &mut queue).bury(world);
        give_up(world, id, queue.take_pages());
        relieve(world, queue.relieve());
    }
}

/// Records that a durable queue is no more, and with it all that it holds.
fn note_gone<W: World>(world: &W, queue: Option<Queue>) -> Option<Queue> {
    let durability = queue.as_ref().and_then(Queue::durability);
    if let Some(Durability { id, .. }) = durability {
        define(world, &Definition::QueueGone { queue: id });
    }
    queue
}

/// Dead letters that lingered in a queue which ends. They died before it, and go wherever the dead go, room or not:
/// what else the queue has gives back more.
struct Lingered {
    vhost: VhostId,
    dead: Vec<Dead>,
}

impl Lingered {
    fn of<W: World>(world: &W, queue: &mut Queue) -> Lingered {
        let mut effects = Effects::default();
        queue.bury_lingering(world.now(), &mut effects);
        let mut dead = Vec::new();
        record_effects(world, effects, &mut dead);
        Lingered { vhost: queue.vhost(), dead }
    }

    fn bury<W: World>(self, world: &W) {
        if !self.dead.is_empty() {
            publish_dead_letters(world, self.vhost, self.dead);
        }
    }
}
