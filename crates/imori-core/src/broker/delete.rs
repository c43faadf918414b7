//! Queues end.

use crate::id::QueueId;
use crate::world::World;

/// Deletes a queue with what is in it and tells its consumers; `None` where it is gone already,
/// else how many messages waited.
pub fn delete_queue<W: World>(world: &W, id: QueueId) -> Option<usize> {
    let queue = world.with_topology(|topology| {
        topology.forget_queue(id);
        world.remove_queue(id)
    })?;
    for reader in queue.consumers() {
        world.with_outbound(reader.connection, |outbound| outbound.cancel_reader(reader.id, queue.name()));
    }
    Some(queue.ready_len())
}

/// Deletes an auto-delete queue if it still has no consumer.
pub(super) fn delete_unused<W: World>(world: &W, id: QueueId) {
    world.with_topology(|topology| {
        let is_unused = world.with_queue(id, |queue| queue.consumers_len() == 0).unwrap_or(false);
        if is_unused {
            topology.forget_queue(id);
            world.remove_queue(id);
        }
    });
}

/// Deletes a queue that nobody used for longer than it may be idle.
pub(super) fn delete_idle<W: World>(world: &W, id: QueueId) {
    let now = world.now();
    world.with_topology(|topology| {
        let is_idle = world.with_queue(id, |queue| queue.is_idle_too_long(now)).unwrap_or(false);
        if is_idle {
            topology.forget_queue(id);
            world.remove_queue(id);
        }
    });
}
