//! What a queue asks of others once it has changed: it is gathered under its lock, and done when that is free.

use super::record::record_counts;
use crate::id::{ConnectionId, QueueId};
use crate::queue::{Effects, GonePage, PageWork, Queue};
use crate::time::Time;
use crate::world::World;

/// What a queue asks for.
pub(super) struct Asked {
    pages: Vec<PageWork>,
    /// Publishers that waited for it and go on.
    relieved: Vec<ConnectionId>,
    wake_up: Option<Time>,
}

impl Asked {
    /// Gathers it from a queue that has changed, and records what it counted while nobody else has it.
    #[inline]
    pub(super) fn by<W: World>(world: &W, queue: &mut Queue, effects: &mut Effects, now: Time) -> Asked {
        record_counts(world, effects);
        let share = world.queue_memory_bytes();
        // Whether publishers wait hangs on what is being written.
        let pages = queue.page_work(now, share);
        Asked { pages, relieved: queue.weigh(share), wake_up: queue.new_wake_up() }
    }

    /// Does it; nothing is locked.
    #[inline]
    pub(super) fn answer<W: World>(self, world: &W, id: QueueId) {
        self.pages.into_iter().for_each(|work| world.page(id, work));
        relieve(world, self.relieved);
        if let Some(at) = self.wake_up {
            world.wake_queue_at(id, at);
        }
    }
}

/// Lets those go on who waited for a queue; nothing is locked.
pub(super) fn relieve<W: World>(world: &W, publishers: Vec<ConnectionId>) {
    for publisher in publishers {
        world.relieve(publisher);
    }
}

/// Hands on that nobody needs these pages any more.
pub(super) fn give_up<W: World>(world: &W, id: QueueId, pages: Vec<GonePage>) {
    if !pages.is_empty() {
        world.page(id, PageWork::Gone(pages));
    }
}
