//! What became of the pages of a queue.

use super::deliver::change_and_deliver;
use crate::confirm::Lsn;
use crate::id::QueueId;
use crate::queue::{Entry, GonePage, PageDraft, PageId, PagePlace, PageWork, Tally};
use crate::record::{NewRecord, RecordKind, encode_counts};
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

/// To be called with a page that cannot be read; tells how many messages have to wait for the next start.
pub fn page_unreadable<W: World>(world: &W, id: QueueId, page: PageId) -> u32 {
    change_and_deliver(world, id, |queue, _| queue.page_unreadable(page)).unwrap_or(0)
}

/// Copies of about so many bytes of messages of a queue whose records are to go, to be written as pages.
pub fn spill<W: World>(world: &W, id: QueueId, through: Lsn, bytes_max: usize) -> Vec<PageDraft> {
    world.with_queue(id, |queue| queue.spill(through, bytes_max)).unwrap_or_default()
}

/// What a checkpoint has to know of a queue. What is known of deliveries is recorded anew, as its records may go.
pub fn tally<W: World>(world: &W, id: QueueId) -> Tally {
    let tally = world.with_queue(id, |queue| {
        let tally = queue.tally();
        if !tally.counts.is_empty() {
            // Under the lock, so that nothing that is newer comes before it.
            world.append(vec![NewRecord::new(RecordKind::Count, encode_counts(&tally.counts))]);
        }
        tally
    });
    tally.unwrap_or_default()
}

/// Hands on that nobody needs these pages any more.
pub(super) fn give_up<W: World>(world: &W, id: QueueId, pages: Vec<GonePage>) {
    if !pages.is_empty() {
        world.page(id, PageWork::Gone(pages));
    }
}
