//! What the journal has and queues still need is copied to segments, so that journal files can go.
//!
//! While there is room the older half of the journal is copied at once. Where space is short the oldest file alone is
//! exchanged: all that is needed of it, in as little as that takes, for the whole file.

use imori_core::confirm::Lsn;
use imori_core::id::DurableQueueId;
use imori_core::queue::{GonePage, PageDraft};
use imori_store::limits::{SEGMENT_BYTES_GOAL, SEGMENT_PAGES_MAX};
use tracing::debug;

use crate::shared::Shared;
use crate::slots::SlotKey;
use crate::store::Purpose;

/// A page that is to be written, and whose it is.
type Owned = (SlotKey, DurableQueueId, PageDraft);

/// Copies messages whose records are up to `through`, those of several queues to one segment, as far as there
/// is room.
pub(crate) fn spill(shared: &Shared, through: Lsn) {
    let (mut drafts, mut bytes) = (Vec::new(), 0);
    // The journal may get a new file meanwhile, of the same room.
    let goal = SEGMENT_BYTES_GOAL.min(usize::try_from(shared.journal.file_bytes()).unwrap_or(usize::MAX));
    for key in shared.queues.keys() {
        loop {
            let room = goal.saturating_sub(bytes).max(1);
            let spilled = spilled(shared, key, through, room);
            if spilled.is_empty() {
                break;
            }
            bytes += spilled.iter().map(|(_, _, draft)| draft.bytes()).sum::<usize>();
            drafts.extend(spilled);
            if bytes >= goal {
                if !write(shared, std::mem::take(&mut drafts), Purpose::Files) {
                    return;
                }
                bytes = 0;
            }
        }
    }
    write(shared, drafts, Purpose::Files);
}

/// Copies what is needed of the oldest file, whose last record is `oldest`, if more is gained than it takes.
pub(crate) fn exchange(shared: &Shared, oldest: Lsn) {
    let Ok(room) = shared.pager.room() else { return };
    let bytes_max = usize::try_from(room.exchange_bytes_max()).unwrap_or(usize::MAX);
    let (mut drafts, mut bytes) = (Vec::new(), 0);
    for key in shared.queues.keys() {
        let spilled = spilled(shared, key, oldest, usize::MAX);
        bytes += spilled.iter().map(|(_, _, draft)| draft.written_bytes()).sum::<usize>();
        drafts.extend(spilled);
        if bytes > bytes_max {
            debug!(
                bytes,
                bytes_max,
                through = oldest.0,
                "the oldest journal file has too much that is needed"
            );
            return give_up(shared, drafts);
        }
    }
    let mut drafts = drafts.into_iter().peekable();
    while drafts.peek().is_some() {
        let mut bytes = 0;
        let mut some: Vec<Owned> = Vec::new();
        while let Some(draft) =
            drafts.next_if(|_| bytes < SEGMENT_BYTES_GOAL && some.len() < SEGMENT_PAGES_MAX)
        {
            bytes += draft.2.written_bytes();
            some.push(draft);
        }
        if !write(shared, some, Purpose::Exchange) {
            return give_up(shared, drafts);
        }
    }
}

fn spilled(shared: &Shared, key: SlotKey, through: Lsn, bytes_max: usize) -> Vec<Owned> {
    let spilled = shared.queues.with(key, |queue| {
        let owner = queue.durability()?.id;
        Some((owner, queue.spill(through, bytes_max)))
    });
    let Some(Some((owner, drafts))) = spilled else { return Vec::new() };
    drafts.into_iter().map(|draft| (key, owner, draft)).collect()
}

/// Writes pages, as one segment if its table has room for them, and tells their queues; false where they were not
/// all written.
fn write(shared: &Shared, drafts: Vec<Owned>, purpose: Purpose) -> bool {
    let mut drafts = drafts.into_iter().peekable();
    while drafts.peek().is_some() {
        let some: Vec<Owned> = drafts.by_ref().take(SEGMENT_PAGES_MAX).collect();
        let pages = some.iter().map(|(_, owner, draft)| (owner.0, draft));
        let Some(places) = shared.pager.write_now(pages, purpose) else {
            give_up(shared, some.into_iter().chain(drafts));
            return false;
        };
        for ((key, _, draft), place) in some.into_iter().zip(places) {
            let told = shared.queues.with(key, |queue| queue.page_written(&draft, place));
            if told.is_none() {
                // The queue went meanwhile.
                shared.keeper.take_gone(vec![GonePage { place, is_durable: true }]);
            }
        }
    }
    true
}

fn give_up(shared: &Shared, drafts: impl IntoIterator<Item = Owned>) {
    let now = shared.clock.now();
    for (key, _, draft) in drafts {
        shared.queues.with(key, |queue| queue.page_failed(draft, now));
    }
}
