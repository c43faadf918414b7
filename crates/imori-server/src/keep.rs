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
use imori_core::queue::{GonePage, PagePlace, Ranges};
use imori_core::record::{Checkpoint, NewRecord, RecordKind, SegmentState, encode_counts};
use tracing::debug;

use crate::limits::{
    CHECKPOINT_AT_END_MAX, CHECKPOINT_PAGES, FILES_MAX_WHEN_SHORT, KEEPER_LOOK_EVERY, SPILL_AGAIN,
};
use crate::shared::Shared;
use crate::slots::SlotKey;
use crate::spill::{exchange, spill};

/// Runs the keeper until it is told to end.
pub(crate) fn keep(shared: &Arc<Shared>) {
    let keeper = &shared.keeper;
    let mut spills_again = Instant::now();
    while !keeper.is_ending() {
        keep_once(shared, &mut spills_again);
        keeper.wait(KEEPER_LOOK_EVERY);
    }
    checkpoint(shared, Spills::Nothing);
}

/// What is copied to segments before a checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Spills {
    Nothing,
    /// The older half of what the journal has.
    Half,
    /// What is needed of the oldest file, for the space that this takes.
    Oldest,
}

/// Makes a checkpoint if something goes with it. One that frees nothing would only fill the journal.
fn keep_once(shared: &Shared, spills_again: &mut Instant) {
    let (journal, keeper) = (&shared.journal, &shared.keeper);
    // Where space is short each file and page that goes may be what publishers wait for.
    let is_short = journal.is_space_low() || journal.is_out_of_space();
    let (files_max, spared_min) =
        if is_short { (FILES_MAX_WHEN_SHORT, 1) } else { (keeper.files_max, CHECKPOINT_PAGES) };
    let is_full = journal.live_files() > files_max;
    let frees = keeper.spared() >= spared_min || is_full && frees_a_file(shared);
    if frees {
        checkpoint(shared, Spills::Nothing);
    } else if is_full && Instant::now() >= *spills_again {
        let spills = if is_short { Spills::Oldest } else { Spills::Half };
        if !checkpoint(shared, spills) {
            *spills_again = Instant::now() + SPILL_AGAIN;
        }
    }
}

/// Tells whether nobody needs anything of the oldest file, as far as that is known now.
fn frees_a_file(shared: &Shared) -> bool {
    let Some(oldest) = shared.journal.oldest_sealed() else { return false };
    let is_above = |floor: Option<Lsn>| floor.is_none_or(|floor| floor > oldest);
    let of_queue = |key| shared.queues.with(key, |queue| queue.floor()).flatten();
    is_above(shared.journal.first_definition())
        && queues(shared).into_iter().all(|key| is_above(of_queue(key)))
}

/// What was gathered from all queues.
#[derive(Default)]
struct Gathered {
    floor: Option<Lsn>,
    settled: Vec<(PagePlace, Ranges)>,
    gone: Vec<GonePage>,
}

/// Makes a checkpoint; false where what was to be copied first was not, and nothing goes.
fn checkpoint(shared: &Shared, spills: Spills) -> bool {
    let Some(next) = shared.journal.next_lsn() else { return false };
    pass(shared);
    if let Some(oldest) = shared.journal.oldest_sealed() {
        match spills {
            Spills::Nothing => {}
            Spills::Half => spill(shared, oldest.max(Lsn(oldest.0.midpoint(next.0)))),
            Spills::Oldest => exchange(shared, oldest),
        }
        if spills != Spills::Nothing && !frees_a_file(shared) {
            return false;
        }
    }
    let mut gathered = gather(shared);
    gathered.gone.append(&mut shared.keeper.gone());
    let floor =
        [gathered.floor, shared.journal.first_definition()].into_iter().flatten().fold(next, Lsn::min);
    renew_seen(shared, floor);
    pass(shared);
    let payload = payload(shared, &gathered).encode();
    let Some(lsn) = shared.journal.append_checkpoint(floor, &payload) else { return false };
    debug!(floor = floor.0, bytes = payload.len(), gone = gathered.gone.len(), "checkpoint");
    let begin = Instant::now();
    while shared.journal.waiters().progress().synced < lsn {
        // A disk without room may never have it; what it does not have the next start does without.
        let is_late = shared.keeper.is_ending() && begin.elapsed() > CHECKPOINT_AT_END_MAX;
        if shared.journal.has_failed() || is_late {
            return false;
        }
        // This thread has time, and nobody waits for it.
        std::thread::sleep(Duration::from_millis(1));
    }
    shared.pager.discard_now(&gathered.gone);
    if shared.journal.is_space_low() {
        shared.pager.give_back();
    }
    true
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
