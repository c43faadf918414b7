//! Handles timers of queues, and the time that passed before a restart.

use super::deliver::change_and_deliver;
use super::streams::delete_idle_consumers;
use crate::definitions::delete_idle;
use crate::delivery::Outcome;
use crate::id::QueueId;
use crate::pipeline::record_one;
use crate::restore::Awakening;
use crate::world::World;

/// Handles a due wake-up of a queue: dead-letters expired messages, moves delayed messages that are
/// due, and delivers. Deletes the queue if it has been idle for too long.
pub fn queue_woken<W: World>(world: &W, id: QueueId) {
    let now = world.now();
    let is_idle = change_and_deliver(world, id, |queue, effects| {
        queue.woken(now);
        delete_idle_consumers(world, queue, effects);
        queue.is_idle_too_long(now)
    });
    if is_idle == Some(true) {
        delete_idle(world, id);
    }
}

/// Called once for each restored queue: settles messages that failed too often before the restart,
/// removes messages beyond the limits of a stream, whose removal may not have been on disk, and delivers.
pub fn queue_restored<W: World>(world: &W, awakening: &Awakening) {
    let now = world.now();
    change_and_deliver(world, awakening.id, |queue, effects| {
        for sequence in &awakening.failed {
            queue.settle(*sequence, Outcome::Release { failed: false }, now, effects);
        }
        if queue.is_stream() {
            queue.record_restored_stream(|record| record_one(world, record));
            queue.enforce(now, effects);
        }
    });
}
