//! Answers of the disk about the pages of a queue: written, failed, read or unreadable.

use super::deliver::change_and_deliver;
use crate::entries::{Entry, GonePage, PageId, PagePlace, PageSource};
use crate::id::QueueId;
use crate::paging::PageDraft;
use crate::pipeline::give_up;
use crate::world::World;

/// To be called with each page of a queue that was written: its messages leave memory.
pub fn page_written<W: World>(world: &W, id: QueueId, draft: PageDraft, place: PagePlace) {
    let known = change_and_deliver(world, id, |queue, _| queue.page_written(&draft, place));
    if known.is_none() {
        give_up(world, id, vec![GonePage { place, is_durable: draft.is_durable() }]);
    }
    // Its messages go after everybody else can go on.
    drop(draft);
}

/// To be called when pages are written, or could not be, of messages that stay in memory too.
pub fn pages_copied<W: World>(world: &W, id: QueueId) {
    change_and_deliver(world, id, |_, _| ());
}

/// To be called with each page of a queue that could not be written: its messages stay.
pub fn page_failed<W: World>(world: &W, id: QueueId, draft: PageDraft) {
    let now = world.now();
    change_and_deliver(world, id, |queue, _| queue.page_failed(draft, now));
}

/// To be called with what of a page could be read; tells how many of its messages are lost.
pub fn page_read<W: World>(world: &W, id: QueueId, page: PageId, entries: Vec<Entry>) -> u32 {
    let now = world.now();
    let lost = change_and_deliver(world, id, |queue, effects| queue.page_read(page, entries, now, effects));
    lost.unwrap_or(0)
}

/// To be called with a page that cannot be read there; tells how many messages have to wait for the next start.
pub fn page_unreadable<W: World>(world: &W, id: QueueId, page: PageId, source: &PageSource) -> u32 {
    change_and_deliver(world, id, |queue, _| queue.page_unreadable(page, source)).unwrap_or(0)
}
