//! Follow-up work of a queue change: gathered under the queue's lock, performed after its release.

use super::record::record_counts;
use super::stream::send_from_stream;
use crate::confirm::Confirm;
use crate::entries::GonePage;
use crate::id::{ConnectionId, QueueId};
use crate::limits::BYTES_TOLD_STEP;
use crate::paging::PageWork;
use crate::queue::{Effects, Queue};
use crate::time::Time;
use crate::world::{Quotas as _, StreamServices as _, World};

/// The follow-up work of one queue.
pub(crate) struct FollowUps {
    pages: Vec<PageWork>,
    /// Publishers that waited for the queue and may continue.
    unthrottled: Vec<ConnectionId>,
    wake_up: Option<Time>,
    /// The progress of the journal that a stream waits for.
    awaits: Option<Confirm>,
}

impl FollowUps {
    /// Gathers the follow-ups of a changed queue, and records its delivery counts while it is
    /// locked. `None` if there are none, as after nearly every message that was delivered at once.
    #[inline]
    pub(crate) fn of<W: World>(
        world: &W,
        (id, queue): (QueueId, &mut Queue),
        effects: &mut Effects,
        now: Time,
    ) -> Option<Box<FollowUps>> {
        if queue.is_at_rest(BYTES_TOLD_STEP) && !effects.have_counts() {
            return None;
        }
        Some(FollowUps::gather(world, (id, queue), effects, now))
    }

    #[inline(never)]
    fn gather<W: World>(
        world: &W,
        (id, queue): (QueueId, &mut Queue),
        effects: &mut Effects,
        now: Time,
    ) -> Box<FollowUps> {
        if queue.is_stream() {
            send_from_stream(world, (id, queue), now, effects);
        }
        record_counts(world, effects);
        if let Some(change) = queue.bytes_changed(BYTES_TOLD_STEP) {
            world.quotas().bytes_changed(queue.vhost(), change);
        }
        let share = world.queue_memory_bytes();
        // Page work first: whether publishers must wait depends on what is being written.
        let pages = queue.page_work(now, share);
        let (unthrottled, wake_up) = (queue.weigh(share), queue.new_wake_up());
        let awaits = queue.stream_awaits();
        queue.renew_features_in_use();
        Box::new(FollowUps { pages, unthrottled, wake_up, awaits })
    }

    /// Performs the follow-ups. No lock may be held.
    pub(crate) fn run<W: World>(self, world: &W, id: QueueId) {
        self.pages.into_iter().for_each(|work| world.page(id, work));
        unthrottle(world, self.unthrottled);
        if let Some(at) = self.wake_up {
            world.wake_queue_at(id, at);
        }
        if let Some(confirm) = self.awaits {
            world.streams().await_journal(id, confirm);
        }
    }
}

/// Wakes publishers that waited for a queue. No lock may be held.
pub(crate) fn unthrottle<W: World>(world: &W, publishers: Vec<ConnectionId>) {
    for publisher in publishers {
        world.unthrottle(publisher);
    }
}

/// Tells the pager to discard these pages.
pub(crate) fn give_up<W: World>(world: &W, id: QueueId, pages: Vec<GonePage>) {
    if !pages.is_empty() {
        world.page(id, PageWork::Gone(pages));
    }
}
