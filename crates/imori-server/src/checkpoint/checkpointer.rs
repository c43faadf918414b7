//! Frees journal files: copies the records still needed to segments, then appends a checkpoint that raises the floor.
//! The server runs this on a thread, the simulator in its rounds.
//!
//! A cell may append a record before or after it changes the queue, so the checkpointer twice waits until every cell
//! has ended its turn. The first time is before it reads the queues, which then reflect all records below the floor.
//! The second is before the checkpoint, when the journal has everything that the queues had.

use std::cell::Cell;
use std::sync::Arc;
use std::time::{Duration, Instant};

use imori_core::broker::renew_some_seen;
use imori_core::confirm::Lsn;
use imori_core::entries::{Entry, GonePage, JournalRead, PagePlace, Ranges};
use imori_core::id::{DurableQueueId, QueueId};
use imori_core::limits::RECORD_SLACK_BYTES;
use imori_core::paging::PageDraft;
use imori_core::queue::Queue;
use imori_core::record::{Checkpoint, ManifestPlace, NewRecord, annotation_records, count_records};
use imori_core::room::Room;
use imori_core::time::Time;
use imori_store::limits::SEGMENT_BYTES_GOAL;
use imori_store::manifest::{Manifest, ManifestMark};
use tracing::debug;

use crate::checkpoint::host::CheckpointHost;
use crate::checkpoint::spill::{exchange, spill};
use crate::limits::{
    CHECKPOINT_AGAIN, CHECKPOINT_AT_END_MAX, CHECKPOINT_PAGES, CHECKPOINTER_LOOK_EVERY, FILES_MAX_WHEN_SHORT,
    SPILL_AGAIN,
};
use crate::shared::{Shared, queue_key};
use crate::store::{Checkpointer, PageNews, Purpose};

/// Makes checkpoints until told to end, then makes the last one.
pub(crate) fn run_checkpointer(shared: &Arc<Shared>) {
    let checkpointer = &shared.checkpointer;
    let mut pauses = Pauses::default();
    while !checkpointer.is_ending() {
        checkpoint_once(&**shared, &mut pauses);
        shared.journal.looked_for_checkpoint();
        checkpointer.wait(CHECKPOINTER_LOOK_EVERY);
    }
    checkpoint_last(&**shared);
}

/// Makes the checkpoint of a clean shutdown.
pub fn checkpoint_last<H: CheckpointHost>(host: &H) {
    let _ = checkpoint(host, Spills::Nothing);
}

/// The part of the journal to copy to segments before a checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Spills {
    Nothing,
    /// The older half of the journal.
    Half,
    /// The needed records of the oldest file, in exchange for its space.
    Oldest,
}

/// Times before which a failed step is not retried.
#[derive(Debug, Default)]
pub struct Pauses {
    spills: Time,
    checkpoints: Time,
}

/// Why no checkpoint was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NotMade {
    /// The copy that had to come first failed, so no file would be freed.
    NothingGoes,
    /// The journal does not take it: it is larger than a file, or the disk has failed. Or the manifest could not be
    /// written before it.
    Refused,
    /// The journal accepted it but failed before it was durable.
    NotSynced,
}

/// Makes a checkpoint if that frees something; otherwise it would only fill the journal.
pub fn checkpoint_once<H: CheckpointHost>(host: &H, pauses: &mut Pauses) {
    let (checkpointer, now) = (host.checkpointer(), host.now());
    if now < pauses.checkpoints {
        return;
    }
    // If space is short, every freed file or page may let publishers continue.
    let is_short = host.is_space_low() || host.is_out_of_space();
    let (files_max, spared_min) =
        if is_short { (FILES_MAX_WHEN_SHORT, 1) } else { (checkpointer.files_max, CHECKPOINT_PAGES) };
    let is_full = host.live_files() > files_max && !are_ids_in_the_way(host);
    let made = if checkpointer.spared() >= spared_min || is_full && frees_a_file(host) {
        checkpoint(host, Spills::Nothing)
    } else if is_full && now >= pauses.spills {
        checkpoint(host, if is_short { Spills::Oldest } else { Spills::Half })
    } else {
        return;
    };
    match made {
        Ok(()) | Err(NotMade::NotSynced) => {}
        Err(NotMade::NothingGoes) => pauses.spills = host.now().after(SPILL_AGAIN),
        // A checkpoint shrinks only as consumers settle messages.
        Err(NotMade::Refused) => pauses.checkpoints = host.now().after(CHECKPOINT_AGAIN),
    }
}

/// Whether the oldest file holds nothing that is needed, as far as is known now.
fn frees_a_file<H: CheckpointHost>(host: &H) -> bool {
    let Some(oldest) = host.oldest_sealed() else { return false };
    let is_above = |floor: Option<Lsn>| floor.is_none_or(|floor| floor > oldest);
    let of_queue = |key| host.with_queue(key, |queue| queue.floor()).flatten();
    is_above(host.first_definition()) && host.queues().into_iter().all(|key| is_above(of_queue(key)))
}

/// Whether queues remember ids recorded in the oldest file and there is no room to record them again.
fn are_ids_in_the_way<H: CheckpointHost>(host: &H) -> bool {
    let Some(oldest) = host.oldest_sealed() else { return false };
    host.with_room_for_ids(|bytes| bytes == 0) && ids_floor(host).is_some_and(|floor| floor <= oldest)
}

/// The lowest LSN of an id that queues remember for de-duplication.
fn ids_floor<H: CheckpointHost>(host: &H) -> Option<Lsn> {
    let now = host.now();
    let of_queue = |key| host.with_queue(key, |queue| queue.dedup_floor(now)).flatten();
    host.queues().into_iter().filter_map(of_queue).min()
}

/// The part of a checkpoint that is gathered from all queues.
#[derive(Default)]
struct Gathered {
    floor: Option<Lsn>,
    settled: Vec<(PagePlace, Ranges)>,
    gone: Vec<GonePage>,
}

/// Makes a checkpoint, after copying what `spills` says.
fn checkpoint<H: CheckpointHost>(host: &H, spills: Spills) -> Result<(), NotMade> {
    let Some(next) = host.next_lsn() else { return Err(NotMade::NothingGoes) };
    host.pass();
    if let Some(oldest) = host.oldest_sealed() {
        match spills {
            Spills::Nothing => {}
            Spills::Half => spill(host, oldest.max(Lsn(oldest.0.midpoint(next.0)))),
            Spills::Oldest => exchange(host, oldest),
        }
        if spills != Spills::Nothing && !frees_a_file(host) {
            return Err(NotMade::NothingGoes);
        }
    }
    let mut gathered = gather(host);
    gathered.gone.append(&mut host.checkpointer().gone());
    let floor = [gathered.floor, host.first_definition()].into_iter().flatten().fold(next, Lsn::min);
    let floor = host.with_room_for_ids(|bytes| renew_seen(host, floor, bytes));
    host.pass();
    // The manifest is durable before the checkpoint that names it.
    let mark = host.write_manifest(&manifest(host, &gathered.gone));
    let payload = mark.map(|mark| payload(host, mark, &gathered).encode()).unwrap_or_default();
    let lsn = mark.and_then(|_| host.append_checkpoint(floor, &payload));
    let Some(lsn) = lsn else {
        host.checkpointer().keep_gone(gathered.gone);
        return Err(NotMade::Refused);
    };
    debug!(floor = floor.0, bytes = payload.len(), gone = gathered.gone.len(), "checkpoint");
    // A full disk may never take it; the next start then does without it.
    if !host.await_synced(lsn) {
        return Err(NotMade::NotSynced);
    }
    host.forget_manifests();
    host.forget_below(floor);
    host.discard_pages(&gathered.gone);
    if host.is_space_low() {
        host.give_back_space();
    }
    Ok(())
}

fn gather<H: CheckpointHost>(host: &H) -> Gathered {
    let mut gathered = Gathered::default();
    for key in host.queues() {
        let tally = host.with_queue(key, |queue| {
            let tally = queue.tally();
            // Appended under the queue's lock, so that no newer record comes before them.
            let annotations = annotation_records(&tally.annotations);
            count_records(&tally.counts).into_iter().chain(annotations).for_each(|record| {
                host.append(record);
            });
            tally
        });
        let Some(tally) = tally else { continue };
        gathered.floor = [gathered.floor, tally.floor].into_iter().flatten().min();
        gathered.settled.extend(tally.settled);
        gathered.gone.extend(tally.gone);
    }
    gathered
}

/// Records remembered ids below the floor again, in about `bytes_max` bytes. Returns the lower floor needed for the
/// ids that are left.
fn renew_seen<H: CheckpointHost>(host: &H, floor: Lsn, bytes_max: usize) -> Lsn {
    let (now, left) = (host.now(), Cell::new(bytes_max));
    let append = |record: NewRecord| {
        left.set(left.get().saturating_sub(record.payload.len() + RECORD_SLACK_BYTES));
        host.append(record)
    };
    let mut lowest = floor;
    for key in host.queues() {
        let renew = |queue: &mut Queue| {
            let has_more = left.get() > 0 && renew_some_seen(queue, floor, now, append);
            (has_more, queue.dedup_floor(now))
        };
        // Releases the queue's lock between two records.
        while let Some((has_more, needed)) = host.with_queue(key, renew) {
            if !has_more {
                lowest = needed.map_or(lowest, |needed| needed.min(lowest));
                break;
            }
        }
    }
    lowest
}

/// The durable segments, without the pages that go with this checkpoint.
fn manifest<H: CheckpointHost>(host: &H, gone: &[GonePage]) -> Manifest {
    let mut gone: Vec<PagePlace> = gone.iter().map(|page| page.place).collect();
    gone.sort_unstable();
    let mut manifest = host.manifest();
    for entry in &mut manifest.segments {
        let first = gone.partition_point(|place| place.segment < entry.segment);
        let of_segment = gone.iter().skip(first).take_while(|place| place.segment == entry.segment);
        entry.gone.extend(of_segment.map(|place| place.index));
        entry.gone.sort_unstable();
        entry.gone.dedup();
    }
    manifest
}

fn payload<H: CheckpointHost>(host: &H, mark: ManifestMark, gathered: &Gathered) -> Checkpoint {
    let ManifestMark { next_segment, generation, end, sum } = mark;
    Checkpoint {
        next_segment,
        manifest: ManifestPlace { generation, end, sum },
        doubtful_below: host.checkpointer().doubtful_below,
        doubtful_records_below: host.checkpointer().doubtful_records_below,
        settled: gathered.settled.clone(),
    }
}

impl CheckpointHost for Shared {
    fn checkpointer(&self) -> &Checkpointer {
        &self.checkpointer
    }

    fn now(&self) -> Time {
        self.clock.now()
    }

    fn pass(&self) {
        let cells = || self.cells.get().into_iter().flatten();
        let before: Vec<u64> = cells().map(|cell| cell.turns.count()).collect();
        for (cell, before) in cells().zip(before) {
            while !cell.turns.has_passed(before) && !self.checkpointer.is_ending() {
                self.checkpointer.wait(Duration::from_millis(1));
            }
        }
    }

    fn queues(&self) -> Vec<QueueId> {
        let keys = self.queues.keys().into_iter();
        keys.map(|key| QueueId { slot: key.slot, generation: key.generation }).collect()
    }

    fn with_queue<R>(&self, id: QueueId, f: impl FnOnce(&mut Queue) -> R) -> Option<R> {
        self.queues.with(queue_key(id), f)
    }

    fn live_files(&self) -> usize {
        self.journal.live_files()
    }

    fn is_space_low(&self) -> bool {
        self.journal.is_space_low()
    }

    fn next_lsn(&self) -> Option<Lsn> {
        self.journal.next_lsn()
    }

    fn oldest_sealed(&self) -> Option<Lsn> {
        self.journal.oldest_sealed()
    }

    fn first_definition(&self) -> Option<Lsn> {
        self.journal.first_definition()
    }

    fn append(&self, record: NewRecord) -> Lsn {
        self.journal.append(vec![record]).first
    }

    fn with_room_for_ids<R>(&self, renew: impl FnOnce(usize) -> R) -> R {
        // The allowance is held until the records that use it are appended.
        let allowance = self.allow();
        renew(allowance.bytes())
    }

    fn append_checkpoint(&self, floor: Lsn, payload: &[u8]) -> Option<Lsn> {
        self.journal.append_checkpoint(floor, payload)
    }

    fn await_synced(&self, lsn: Lsn) -> bool {
        let begin = Instant::now();
        while self.journal.waiters().progress().synced < lsn {
            let is_late = self.checkpointer.is_ending() && begin.elapsed() > CHECKPOINT_AT_END_MAX;
            if self.journal.has_failed() || is_late {
                return false;
            }
            // Polls, because nothing waits for this thread.
            std::thread::sleep(Duration::from_millis(1));
        }
        true
    }

    fn is_out_of_space(&self) -> bool {
        self.journal.is_out_of_space()
    }

    fn segment_bytes_goal(&self) -> usize {
        SEGMENT_BYTES_GOAL.min(usize::try_from(self.journal.file_bytes()).unwrap_or(usize::MAX))
    }

    fn exchange_bytes_max(&self) -> Option<usize> {
        let room = self.pager.room().ok()?;
        Some(usize::try_from(room.exchange_bytes_max()).unwrap_or(usize::MAX))
    }

    fn write_pages(
        &self,
        drafts: &[(QueueId, DurableQueueId, PageDraft)],
        purpose: Purpose,
    ) -> Option<Vec<PagePlace>> {
        self.pager.write_now(drafts.iter().map(|(_, owner, draft)| (owner.0, draft)), purpose)
    }

    fn weigh(&self, id: QueueId) {
        self.pager.tell(id, PageNews::Copied(id));
    }

    fn read_journal(&self, read: &JournalRead) -> Option<Vec<Entry>> {
        self.pager.read_journal(read)
    }

    fn forget_below(&self, floor: Lsn) {
        self.pager.forget_below(floor);
    }

    fn give_back_space(&self) {
        self.pager.punch_holes();
    }

    fn discard_pages(&self, pages: &[GonePage]) {
        self.pager.discard_now(pages);
    }

    fn manifest(&self) -> Manifest {
        self.pager.manifest()
    }

    fn write_manifest(&self, manifest: &Manifest) -> Option<ManifestMark> {
        self.pager.write_manifest(manifest)
    }

    fn forget_manifests(&self) {
        self.pager.forget_manifests();
    }
}

#[cfg(test)]
mod tests;
