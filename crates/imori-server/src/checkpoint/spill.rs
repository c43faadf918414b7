//! Copies records that queues still need from the journal to segments, so that journal files can be freed.
//!
//! While the disk has room, this copies the older half of the journal at once. If space is short, it exchanges only
//! the oldest file for a segment as small as possible.

use imori_core::confirm::Lsn;
use imori_core::entries::GonePage;
use imori_core::id::{DurableQueueId, QueueId};
use imori_core::paging::PageDraft;
use imori_core::queue::Queue;
use imori_store::limits::{SEGMENT_BYTES_GOAL, SEGMENT_PAGES_MAX};
use tracing::debug;

use crate::checkpoint::host::CheckpointHost;
use crate::store::Purpose;

/// A page to write, with its queue.
type Owned = (QueueId, DurableQueueId, PageDraft);

/// Copies messages with records through `through`, several queues to a segment, as far as the disk has room.
pub(crate) fn spill<H: CheckpointHost>(host: &H, through: Lsn) {
    let (mut drafts, mut bytes) = (Vec::new(), 0);
    // One segment replaces at most one journal file.
    let goal = host.segment_bytes_goal();
    for key in host.queues() {
        loop {
            let room = goal.saturating_sub(bytes).max(1);
            let spilled = spilled(host, key, through, room);
            if spilled.is_empty() {
                break;
            }
            bytes += spilled.iter().map(|(_, _, draft)| draft.bytes()).sum::<usize>();
            drafts.extend(spilled);
            if bytes >= goal {
                if !write(host, std::mem::take(&mut drafts), Purpose::Files) {
                    return;
                }
                bytes = 0;
            }
        }
    }
    write(host, drafts, Purpose::Files);
}

/// Copies what is needed of the oldest file, whose last LSN is `oldest`, if the file is larger than the copy.
pub(crate) fn exchange<H: CheckpointHost>(host: &H, oldest: Lsn) {
    let Some(bytes_max) = host.exchange_bytes_max() else { return };
    let (mut drafts, mut bytes) = (Vec::new(), 0);
    for key in host.queues() {
        let spilled = spilled(host, key, oldest, usize::MAX);
        bytes += spilled.iter().map(|(_, _, draft)| draft.written_bytes()).sum::<usize>();
        drafts.extend(spilled);
        if bytes > bytes_max {
            debug!(
                bytes,
                bytes_max,
                through = oldest.0,
                "the oldest journal file has too much that is needed"
            );
            return give_up(host, drafts);
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
        if !write(host, some, Purpose::Exchange) {
            return give_up(host, drafts);
        }
    }
}

/// Takes the entries of a queue that have to leave the journal: pages that recovery left there, and copies of
/// messages in memory.
fn spilled<H: CheckpointHost>(host: &H, key: QueueId, through: Lsn, bytes_max: usize) -> Vec<Owned> {
    let moving = host.with_queue(key, |queue| {
        let owner = queue.durability()?.id;
        Some((owner, queue.moving_pages(through, bytes_max)))
    });
    let Some(Some((owner, moving))) = moving else { return Vec::new() };
    let mut drafts: Vec<PageDraft> = Vec::new();
    for (id, read) in moving {
        let draft = match host.read_journal(&read) {
            Some(entries) => host.with_queue(key, |queue| queue.draft_of(id, entries)).flatten(),
            None => {
                host.with_queue(key, |queue| queue.not_moved(id));
                None
            }
        };
        drafts.extend(draft);
    }
    let left = bytes_max.saturating_sub(drafts.iter().map(PageDraft::bytes).sum());
    if left > 0 {
        drafts.extend(host.with_queue(key, |queue| queue.spill(through, left)).unwrap_or_default());
    }
    drafts.into_iter().map(|draft| (key, owner, draft)).collect()
}

/// Writes pages in as few segments as their tables allow, and tells the queues; false if some were not written.
fn write<H: CheckpointHost>(host: &H, drafts: Vec<Owned>, purpose: Purpose) -> bool {
    let mut drafts = drafts.into_iter().peekable();
    while drafts.peek().is_some() {
        let some: Vec<Owned> = drafts.by_ref().take(SEGMENT_PAGES_MAX).collect();
        let Some(places) = host.write_pages(&some, purpose) else {
            give_up(host, some.into_iter().chain(drafts));
            return false;
        };
        for ((key, _, draft), place) in some.into_iter().zip(places) {
            if !tell(host, key, |queue| queue.page_written(&draft, place)) {
                // The queue was deleted meanwhile.
                host.checkpointer().take_gone(vec![GonePage { place, is_durable: true }]);
            }
        }
    }
    true
}

fn give_up<H: CheckpointHost>(host: &H, drafts: impl IntoIterator<Item = Owned>) {
    let now = host.now();
    for (key, _, draft) in drafts {
        tell(host, key, |queue| queue.page_failed(draft, now));
    }
}

/// Tells a queue the result for a page, which its throttled publishers may wait for; false if the queue is gone.
fn tell<H: CheckpointHost>(host: &H, key: QueueId, tell: impl FnOnce(&mut Queue)) -> bool {
    let is_throttling = host.with_queue(key, |queue| {
        tell(queue);
        queue.is_throttling()
    });
    if is_throttling == Some(true) {
        host.weigh(key);
    }
    is_throttling.is_some()
}
