//! The keeper, which lets journal files go: it copies what outlives them to segments, then says in a checkpoint
//! from where on the journal is needed. The server has a thread for it; the simulator runs its rounds too.
//!
//! A cell appends a record first and changes its queue afterwards, or the other way round. So the keeper waits twice
//! until every cell has ended what it was at: before it looks at the queues, so that they have all that the
//! journal has below the floor, and before the checkpoint, so that the journal has all that they have.

use std::sync::Arc;
use std::time::{Duration, Instant};

use imori_core::broker::renew_some_seen;
use imori_core::confirm::Lsn;
use imori_core::id::{DurableQueueId, QueueId};
use imori_core::queue::{GonePage, PageDraft, PagePlace, Queue, Ranges};
use imori_core::record::{Checkpoint, NewRecord, RecordKind, SegmentState, encode_counts};
use imori_core::time::Time;
use imori_store::segment::Census;
use tracing::debug;

use crate::keeper_host::KeeperHost;
use crate::limits::{CHECKPOINT_AT_END_MAX, CHECKPOINT_PAGES, KEEPER_LOOK_EVERY};
use crate::shared::{Shared, queue_key};
use crate::store::Keeper;

/// Runs the keeper until it is told to end.
pub(crate) fn keep(shared: &Arc<Shared>) {
    let keeper = &shared.keeper;
    loop {
        let is_ending = keeper.is_ending();
        keep_once(&**shared, is_ending);
        if is_ending {
            return;
        }
        keeper.wait(KEEPER_LOOK_EVERY);
    }
}

/// Makes a checkpoint if one is due, as the last one at the end is in any case.
pub fn keep_once<H: KeeperHost>(host: &H, is_ending: bool) {
    let is_full = host.live_files() > host.keeper().files_max;
    if is_ending || is_full || is_worth_it(host) {
        checkpoint(host, is_full && !is_ending);
    }
}

/// Tells whether so many pages would go that they alone are worth a checkpoint.
fn is_worth_it<H: KeeperHost>(host: &H) -> bool {
    // Where space is short each page that goes may be what publishers wait for.
    let spared_min = if host.is_space_low() { 1 } else { CHECKPOINT_PAGES };
    host.keeper().spared() >= spared_min
}

/// What was gathered from all queues.
#[derive(Default)]
struct Gathered {
    floor: Option<Lsn>,
    settled: Vec<(PagePlace, Ranges)>,
    gone: Vec<GonePage>,
}

/// Makes a checkpoint; with `spills` the older half of what the journal has is copied first.
fn checkpoint<H: KeeperHost>(host: &H, spills: bool) {
    let Some(next) = host.next_lsn() else { return };
    host.pass();
    if spills && let Some(oldest) = host.oldest_sealed() {
        spill(host, oldest.max(Lsn(oldest.0.midpoint(next.0))));
    }
    let mut gathered = gather(host);
    gathered.gone.append(&mut host.keeper().gone());
    let floor = [gathered.floor, host.first_definition()].into_iter().flatten().fold(next, Lsn::min);
    renew_seen(host, floor);
    host.pass();
    let payload = payload(host, &gathered).encode();
    let Some(lsn) = host.append_checkpoint(floor, &payload) else { return };
    debug!(floor = floor.0, bytes = payload.len(), gone = gathered.gone.len(), "checkpoint");
    // A disk without room may never have it; what it does not have the next start does without.
    if host.await_synced(lsn) {
        host.discard_pages(&gathered.gone);
    }
}

/// Copies messages whose records are up to `through` to segments, those of several queues to one.
fn spill<H: KeeperHost>(host: &H, through: Lsn) {
    let mut drafts: Vec<(QueueId, DurableQueueId, PageDraft)> = Vec::new();
    let goal = host.segment_bytes_goal();
    let mut bytes = 0;
    for key in host.queues() {
        loop {
            let room = goal.saturating_sub(bytes).max(1);
            let spilled = host.with_queue(key, |queue| {
                let owner = queue.durability()?.id;
                Some((owner, queue.spill(through, room)))
            });
            let Some(Some((owner, spilled))) = spilled else { break };
            if spilled.is_empty() {
                break;
            }
            bytes += spilled.iter().map(PageDraft::bytes).sum::<usize>();
            drafts.extend(spilled.into_iter().map(|draft| (key, owner, draft)));
            if bytes >= goal {
                if !write(host, std::mem::take(&mut drafts)) {
                    return;
                }
                bytes = 0;
            }
        }
    }
    write(host, drafts);
}

fn write<H: KeeperHost>(host: &H, drafts: Vec<(QueueId, DurableQueueId, PageDraft)>) -> bool {
    if drafts.is_empty() {
        return true;
    }
    let places = host.write_pages(&drafts);
    let now = host.now();
    let is_written = places.is_some();
    let mut places = places.unwrap_or_default().into_iter();
    for (key, _, draft) in drafts {
        let place = places.next();
        let told = host.with_queue(key, |queue| match place {
            Some(place) => {
                queue.page_written(&draft, place);
                None
            }
            None => Some(draft),
        });
        if let Some(Some(draft)) = told {
            host.with_queue(key, |queue| queue.page_failed(draft, now));
        } else if let (None, Some(place)) = (told, place) {
            // The queue went meanwhile.
            host.keeper().take_gone(vec![GonePage { place, is_durable: true }]);
        }
    }
    is_written
}

fn gather<H: KeeperHost>(host: &H) -> Gathered {
    let mut gathered = Gathered::default();
    for key in host.queues() {
        let tally = host.with_queue(key, |queue| {
            let tally = queue.tally();
            if !tally.counts.is_empty() {
                // Under the lock, so that nothing that is newer comes before it.
                let counts = NewRecord::new(RecordKind::Count, encode_counts(&tally.counts));
                host.append(counts);
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
fn renew_seen<H: KeeperHost>(host: &H, floor: Lsn) {
    let now = host.now();
    for key in host.queues() {
        let append = |record| host.append(record);
        // Others have the queue between two records.
        while host.with_queue(key, |queue| renew_some_seen(queue, floor, now, append)) == Some(true) {}
    }
}

fn payload<H: KeeperHost>(host: &H, gathered: &Gathered) -> Checkpoint {
    let mut gone: Vec<PagePlace> = gathered.gone.iter().map(|page| page.place).collect();
    gone.sort_unstable();
    let census = host.census();
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
        doubtful_below: host.keeper().doubtful_below,
        segments: segments.collect(),
        settled: gathered.settled.clone(),
    }
}

impl KeeperHost for Shared {
    fn keeper(&self) -> &Keeper {
        &self.keeper
    }

    fn now(&self) -> Time {
        self.clock.now()
    }

    fn pass(&self) {
        let cells = || self.cells.get().into_iter().flatten();
        let before: Vec<u64> = cells().map(|cell| cell.turns.count()).collect();
        for (cell, before) in cells().zip(before) {
            while !cell.turns.has_passed(before) && !self.keeper.is_ending() {
                self.keeper.wait(Duration::from_millis(1));
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

    fn append_checkpoint(&self, floor: Lsn, payload: &[u8]) -> Option<Lsn> {
        self.journal.append_checkpoint(floor, payload)
    }

    fn await_synced(&self, lsn: Lsn) -> bool {
        let begin = Instant::now();
        while self.journal.waiters().progress().synced < lsn {
            let is_late = self.keeper.is_ending() && begin.elapsed() > CHECKPOINT_AT_END_MAX;
            if self.journal.has_failed() || is_late {
                return false;
            }
            // This thread has time, and nobody waits for it.
            std::thread::sleep(Duration::from_millis(1));
        }
        true
    }

    fn write_pages(&self, drafts: &[(QueueId, DurableQueueId, PageDraft)]) -> Option<Vec<PagePlace>> {
        self.pager.write_now(drafts.iter().map(|(_, owner, draft)| (owner.0, draft)))
    }

    fn discard_pages(&self, pages: &[GonePage]) {
        self.pager.discard_now(pages);
    }

    fn census(&self) -> Census {
        self.pager.census()
    }
}
