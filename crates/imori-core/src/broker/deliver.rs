//! A queue changes, and what it then can give out goes out.

use super::distribute::bury;
use super::offer::offer;
use super::record::{record_counts, record_effects};
use super::relieve::relieve;
use crate::id::{ConnectionId, QueueId, Reader, VhostId};
use crate::outbound::Wake;
use crate::queue::{Effects, GonePage, PageWork, Queue};
use crate::time::Time;
use crate::world::World;

/// Changes a queue, gives out what then can be given out, and sees to the consequences.
/// `None` where the queue is gone.
pub(super) fn change_and_deliver<W: World, R>(
    world: &W,
    id: QueueId,
    change: impl FnOnce(&mut Queue, &mut Effects) -> R,
) -> Option<R> {
    let now = world.now();
    let mut effects = Effects::default();
    let share = world.queue_memory_bytes();
    let (result, vhost, wake_up, (work, relieved)) = world.with_queue(id, |queue| {
        let result = change(queue, &mut effects);
        queue.deliver(
            now,
            &mut |reader, delivery, sequence| offer(world, id, reader, delivery, sequence),
            &mut effects,
        );
        record_counts(world, &mut effects);
        let asked = (queue.page_work(now, share), queue.weigh(share));
        (result, queue.vhost(), queue.new_wake_up(), asked)
    })?;
    work.into_iter().for_each(|work| world.page(id, work));
    relieve(world, relieved);
    follow_up(world, id, vhost, wake_up, effects);
    Some(result)
}

/// What has to be done after a queue is unlocked.
pub(super) fn follow_up<W: World>(
    world: &W,
    id: QueueId,
    vhost: VhostId,
    wake_up: Option<Time>,
    effects: Effects,
) {
    if let Some(at) = wake_up {
        world.wake_queue_at(id, at);
    }
    let dead = record_effects(world, effects);
    if !dead.is_empty() {
        bury(world, vhost, dead);
    }
}

/// Lets publishers go on who waited for the room of a connection, as [`Outbound::written`](crate::outbound::Outbound::written) tells.
pub fn resume_publishers<W: World>(world: &W, publishers: &[ConnectionId]) {
    for publisher in publishers {
        world.resume(*publisher);
    }
}

/// Lets consumers of a connection take more, as [`Outbound::written`](crate::outbound::Outbound::written) tells.
pub fn wake_consumers<W: World>(world: &W, connection: ConnectionId, wakes: &[Wake]) {
    for wake in wakes {
        let reader = Reader { connection, id: wake.reader };
        change_and_deliver(world, wake.queue, |queue, _| queue.wake(reader));
    }
}

/// Hands on that nobody needs these pages any more.
pub(super) fn give_up<W: World>(world: &W, id: QueueId, pages: Vec<GonePage>) {
    if !pages.is_empty() {
        world.page(id, PageWork::Gone(pages));
    }
}
