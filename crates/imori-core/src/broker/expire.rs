//! Time passes over a queue.

use super::delete::delete_idle;
use super::deliver::follow_up;
use crate::id::QueueId;
use crate::world::World;

/// To be called when a wake-up of a queue is due: buries what has expired, deletes the queue
/// if it was idle too long.
pub fn queue_woken<W: World>(world: &W, id: QueueId) {
    let now = world.now();
    let mut dead = Vec::new();
    let state = world.with_queue(id, |queue| {
        queue.woken(now);
        queue.expire(now, &mut dead);
        let is_idle = queue.is_idle_too_long(now);
        let wake_up = if is_idle { None } else { queue.new_wake_up() };
        (is_idle, queue.vhost(), wake_up)
    });
    let Some((is_idle, vhost, wake_up)) = state else {
        return;
    };
    follow_up(world, id, vhost, wake_up, dead);
    if is_idle {
        delete_idle(world, id);
    }
}
