//! Reports from the disk about pages of a queue: written, failed, read or unreadable.

use super::deliver::change_and_deliver;
use crate::entries::{Entry, GonePage, PageId, PagePlace, PageSource};
use crate::id::QueueId;
use crate::paging::PageDraft;
use crate::pipeline::give_up;
use crate::world::World;

/// Called when a page of a queue was written: its messages leave memory.
pub fn page_written<W: World>(world: &W, id: QueueId, draft: PageDraft, place: PagePlace) {
    let known = change_and_deliver(world, id, |queue, _| queue.page_written(&draft, place));
    if known.is_none() {
        give_up(world, id, vec![GonePage { place, is_durable: draft.is_durable() }]);
    }
    // Frees the messages after releasing the queue's lock.
    drop(draft);
}

/// Called when pages of messages that also stay in memory were written, or could not be.
pub fn pages_copied<W: World>(world: &W, id: QueueId) {
    change_and_deliver(world, id, |_, _| ());
}

/// Called when a page of a queue could not be written: its messages stay in memory.
pub fn page_failed<W: World>(world: &W, id: QueueId, draft: PageDraft) {
    let now = world.now();
    change_and_deliver(world, id, |queue, _| queue.page_failed(draft, now));
}

/// Called with the messages that could be read from a page; returns the number of lost ones.
pub fn page_read<W: World>(world: &W, id: QueueId, page: PageId, entries: Vec<Entry>) -> u32 {
    let now = world.now();
    let lost = change_and_deliver(world, id, |queue, effects| queue.page_read(page, entries, now, effects));
    lost.unwrap_or(0)
}

/// Called when a page cannot be read from its place; returns the number of messages that stay
/// unavailable until the next start.
pub fn page_unreadable<W: World>(world: &W, id: QueueId, page: PageId, source: &PageSource) -> u32 {
    change_and_deliver(world, id, |queue, _| queue.page_unreadable(page, source)).unwrap_or(0)
}
