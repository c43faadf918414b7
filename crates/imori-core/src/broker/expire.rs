//! Time passes over a queue.

use super::delete::delete_idle;
use super::deliver::{change_and_deliver, follow_up};
use super::offer::offer;
use super::record::record_counts;
use super::relieve::relieve;
use crate::delivery::Outcome;
use crate::id::QueueId;
use crate::queue::Effects;
use crate::restore::Awakening;
use crate::world::World;

/// To be called when a wake-up of a queue is due: buries what has expired, gives out what waited for its
/// time, deletes the queue if it was idle too long.
pub fn queue_woken<W: World>(world: &W, id: QueueId) {
    let now = world.now();
    let share = world.queue_memory_bytes();
    let mut effects = Effects::default();
    let state = world.with_queue(id, |queue| {
        queue.woken(now);
        queue.deliver(
            now,
            &mut |reader, delivery, sequence| offer(world, id, reader, delivery, sequence),
            &mut effects,
        );
        record_counts(world, &mut effects);
        let is_idle = queue.is_idle_too_long(now);
        let wake_up = if is_idle { None } else { queue.new_wake_up() };
        let asked = (queue.page_work(now, share), queue.weigh(share));
        (is_idle, queue.vhost(), wake_up, asked)
    });
    let Some((is_idle, vhost, wake_up, (work, relieved))) = state else {
        return;
    };
    work.into_iter().for_each(|work| world.page(id, work));
    relieve(world, relieved);
    follow_up(world, id, vhost, wake_up, effects);
    if is_idle {
        delete_idle(world, id);
    }
}

/// To be called once for each queue that was restored: sees to what died while the broker was away.
pub fn queue_restored<W: World>(world: &W, awakening: &Awakening) {
    let now = world.now();
    change_and_deliver(world, awakening.id, |queue, effects| {
        for sequence in &awakening.failed {
            queue.settle(*sequence, Outcome::Release { failed: false }, now, effects);
        }
    });
}
