//! The thread that lets journal files go: it copies what outlives them to segments, then says in a checkpoint from
//! where on the journal is needed.
//!
//! A cell appends a record first and changes its queue afterwards, or the other way round. So the keeper waits twice
//! until every cell has ended what it was at: before it looks at the queues, so that they have all that the
//! journal has below the floor, and before the checkpoint, so that the journal has all that they have.

use std::sync::Arc;
use std::time::{Duration, Instant};

use imori_core::broker::renew_some_seen;
use imori_core::confirm::Lsn;
use imori_core::id::DurableQueueId;
use imori_core::queue::{GonePage, PageDraft, PagePlace, Ranges};
use imori_core::record::{Checkpoint, NewRecord, RecordKind, SegmentState, encode_counts};
use imori_store::limits::SEGMENT_BYTES_GOAL;
use tracing::debug;

use crate::limits::{CHECKPOINT_AT_END_MAX, CHECKPOINT_PAGES, KEEPER_LOOK_EVERY};
use crate::shared::Shared;
use crate::slots::SlotKey;

/// Runs the keeper until it is told to end.
pub(crate) fn keep(shared: &Arc<Shared>) {
    let keeper = &shared.keeper;
    loop {
        let is_ending = keeper.is_ending();
        let is_full = shared.journal.live_files() > keeper.files_max;
        // Where space is short each page that goes may be what publishers wait for.
        let spared_min = if shared.journal.is_space_low() { 1 } else { CHECKPOINT_PAGES };
        if is_ending || is_full || keeper.spared() >= spared_min {
            checkpoint(shared, is_full && !is_ending);
        }
        if is_ending {
            return;
        }
        keeper.wait(KEEPER_LOOK_EVERY);
    }
}

/// What was gathered from all queues.
#[derive(Default)]
struct Gathered {
    floor: Option<Lsn>,
    settled: Vec<(PagePlace, Ranges)>,
    gone: Vec<GonePage>,
}

/// Makes a checkpoint; with `spills` the older half of what the journal has is copied first.
fn checkpoint(shared: &Shared, spills: bool) {
    let Some(next) = shared.journal.next_lsn() else { return };
    pass(shared);
    if spills && let Some(oldest) = shared.journal.oldest_sealed() {
        spill(shared, oldest.max(Lsn(oldest.0.midpoint(next.0))));
    }
    let mut gathered = gather(shared);
    gathered.gone.append(&mut shared.keeper.gone());
    let floor =
        [gathered.floor, shared.journal.first_definition()].into_iter().flatten().fold(next, Lsn::min);
    renew_seen(shared, floor);
    pass(shared);
    let payload = payload(shared, &gathered).encode();
    let Some(lsn) = shared.journal.append_checkpoint(floor, &payload) else { return };
    debug!(floor = floor.0, bytes = payload.len(), gone = gathered.gone.len(), "checkpoint");
    let begin = Instant::now();
    while shared.journal.waiters().progress().synced < lsn {
        // A disk without room may never have it; what it does not have the next start does without.
        let is_late = shared.keeper.is_ending() && begin.elapsed() > CHECKPOINT_AT_END_MAX;
        if shared.journal.has_failed() || is_late {
            return;
        }
        // This thread has time, and nobody waits for it.
        std::thread::sleep(Duration::from_millis(1));
    }
    shared.pager.discard_now(&gathered.gone);
}

/// Waits until every cell has ended the turn that it is in.
fn pass(shared: &Shared) {
    let cells = || shared.cells.get().into_iter().flatten();
    let before: Vec<u64> = cells().map(|cell| cell.turns.count()).collect();
    for (cell, before) in cells().zip(before) {
        while !cell.turns.has_passed(before) && !shared.keeper.is_ending() {
            shared.keeper.wait(Duration::from_millis(1));
        }
    }
}

fn queues(shared: &Shared) -> Vec<SlotKey> {
    shared.queues.keys()
}

/// Copies messages whose records are up to `through` to segments, those of several queues to one.
fn spill(shared: &Shared, through: Lsn) {
    let mut drafts: Vec<(SlotKey, DurableQueueId, PageDraft)> = Vec::new();
    let mut bytes = 0;
    for key in queues(shared) {
        loop {
            let room = SEGMENT_BYTES_GOAL.saturating_sub(bytes).max(1);
            let spilled = shared.queues.with(key, |queue| {
                let owner = queue.durability()?.id;
                Some((owner, queue.spill(through, room)))
            });
            let Some(Some((owner, spilled))) = spilled else { break };
            if spilled.is_empty() {
                break;
            }
            bytes += spilled.iter().map(PageDraft::bytes).sum::<usize>();
            drafts.extend(spilled.into_iter().map(|draft| (key, owner, draft)));
            if bytes >= SEGMENT_BYTES_GOAL {
                if !write(shared, std::mem::take(&mut drafts)) {
                    return;
                }
                bytes = 0;
            }
        }
    }
    write(shared, drafts);
}

fn write(shared: &Shared, drafts: Vec<(SlotKey, DurableQueueId, PageDraft)>) -> bool {
    if drafts.is_empty() {
        return true;
    }
    let pages = drafts.iter().map(|(_, owner, draft)| (owner.0, draft));
    let places = shared.pager.write_now(pages);
    let now = shared.clock.now();
    let is_written = places.is_some();
    let mut places = places.unwrap_or_default().into_iter();
    for (key, _, draft) in drafts {
        let place = places.next();
        let told = shared.queues.with(key, |queue| match place {
            Some(place) => {
                queue.page_written(&draft, place);
                None
            }
            None => Some(draft),
        });
        if let Some(Some(draft)) = told {
            shared.queues.with(key, |queue| queue.page_failed(draft, now));
        } else if let (None, Some(place)) = (told, place) {
            // The queue went meanwhile.
            shared.keeper.take_gone(vec![GonePage { place, is_durable: true }]);
        }
    }
    is_written
}

fn gather(shared: &Shared) -> Gathered {
    let mut gathered = Gathered::default();
    for key in queues(shared) {
        let tally = shared.queues.with(key, |queue| {
            let tally = queue.tally();
            if !tally.counts.is_empty() {
                // Under the lock, so that nothing that is newer comes before it.
                let counts = NewRecord::new(RecordKind::Count, encode_counts(&tally.counts));
                shared.journal.append(vec![counts]);
            }
            tally
        });
        let Some(tally) = tally else { continue };
        gathered.floor = [gathered.floor, tally.floor].into_iter().flatten().min();
        gathered.settled.extend(tally.settled);
        gathered.gone.extend(tally.gone);
    }
    gathered
}

/// Records anew the ids that queues have seen and that stand below the floor.
fn renew_seen(shared: &Shared, floor: Lsn) {
    let now = shared.clock.now();
    for key in queues(shared) {
        let append = |record| shared.journal.append(vec![record]).first;
        // Others have the queue between two records.
        while shared.queues.with(key, |queue| renew_some_seen(queue, floor, now, append)) == Some(true) {}
    }
}

fn payload(shared: &Shared, gathered: &Gathered) -> Checkpoint {
    let mut gone: Vec<PagePlace> = gathered.gone.iter().map(|page| page.place).collect();
    gone.sort_unstable();
    let census = shared.pager.census();
    let segments = census.segments.into_iter().map(|state| {
        let first = gone.partition_point(|place| place.segment < state.segment);
        let of_segment = gone.iter().skip(first).take_while(|place| place.segment == state.segment);
        let mut indexes = state.gone;
        indexes.extend(of_segment.map(|place| place.index));
        indexes.sort_unstable();
        indexes.dedup();
        SegmentState { segment: state.segment, page_count: state.page_count, gone: indexes }
    });
    Checkpoint {
        next_segment: census.next_segment,
        doubtful_below: shared.keeper.doubtful_below,
        segments: segments.collect(),
        settled: gathered.settled.clone(),
    }
}
