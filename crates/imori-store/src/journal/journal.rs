//! The committing side of the journal, without threads: produces batches, and releases them when
//! synced.
//!
//! ```text
//! intake -> staged -> take_batch -> taken -> batch_written -> written -> batch_synced -> released
//! ```
//! Only one batch is under way at a time, so that a crash leaves at most one unsynced.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use super::intake::{Entry, Intake};
use super::pool::{FileRequest, Pool};
use crate::disk::{self, DiskFile};
use crate::limits::{BATCH_BYTES_GOAL, BLOCK_BYTES};
use crate::lsn::{Lsn, LsnRange};
use crate::planted::Fault;
use crate::records::JournalFile;
use crate::records::batch::{self, batch_bytes};
use crate::records::record::{self, Record, RecordType};
use crate::seal::Seal;
use crate::settings::Settings;

/// The result of syncing a batch.
#[derive(Debug)]
pub struct Released<F> {
    /// All records through this LSN are durable.
    pub through: Lsn,
    /// Files that a durable checkpoint no longer needs.
    pub freed: Vec<JournalFile<F>>,
}

/// Records that are stored by one write and made durable by one sync.
#[derive(Debug)]
pub struct Batch<F> {
    file: Arc<F>,
    at: usize,
    lsns: LsnRange,
    record_count: usize,
    record_bytes: usize,
    /// The bytes to write: the records, preceded by the file header in the first batch of a file.
    bytes: Vec<u8>,
    seal: Seal,
}

/// The state of the journal's committing side.
#[derive(Debug)]
pub struct Journal<F> {
    settings: Settings,
    staged: VecDeque<Entry>,
    under_way: UnderWay,
    /// Live files, oldest first; the last one is the active file.
    live: VecDeque<Live<F>>,
    has_active: bool,
    /// Whether recovered records are still being rewritten: until then no file can be freed.
    is_opening: bool,
    /// The buffer of the last batch, to be reused.
    buffer: Vec<u8>,
}

#[derive(Debug)]
struct Live<F> {
    file: JournalFile<F>,
    last: Lsn,
    end: usize,
}

#[derive(Debug, Clone, Copy)]
enum UnderWay {
    Nothing,
    Taken(Flight),
    Written(Flight),
}

#[derive(Debug, Clone, Copy)]
struct Flight {
    last: Lsn,
    floor: Option<Lsn>,
}

impl<F: DiskFile> Journal<F> {
    /// A journal with nothing to write; `live` has the sealed files with the highest LSN of each.
    pub(crate) fn new(settings: Settings, live: Vec<(JournalFile<F>, Lsn)>) -> Journal<F> {
        let live = live.into_iter().map(|(file, last)| Live { file, last, end: 0 }).collect();
        let (staged, under_way, buffer) = (VecDeque::new(), UnderWay::Nothing, Vec::new());
        Journal { settings, staged, under_way, live, has_active: false, is_opening: true, buffer }
    }

    /// Stages all appended records, unless some are still staged.
    pub fn stage(&mut self, intake: &mut Intake) {
        if self.staged.is_empty() {
            intake.hand_over(&mut self.staged);
        }
    }

    /// Rolls as [`Journal::roll`] does. If no file is available, newly appended records are staged
    /// too: a checkpoint among them may justify one.
    pub fn roll_for(&mut self, intake: &mut Intake, pool: &mut Pool<F>) -> bool {
        self.roll(pool) || self.stage_more(intake) && self.roll(pool)
    }

    /// Stages newly appended records behind the present ones; returns whether there were any.
    fn stage_more(&mut self, intake: &mut Intake) -> bool {
        let mut more = VecDeque::new();
        intake.hand_over(&mut more);
        let has_more = !more.is_empty();
        self.staged.append(&mut more);
        has_more
    }

    /// Stages a recovered record; `first` is below its own number if the numbers between are lost.
    pub(crate) fn stage_again(&mut self, first: Lsn, record: Record) {
        self.staged.push_back(Entry { first, record });
    }

    /// Whether staged records wait to be written.
    #[must_use]
    pub fn has_staged(&self) -> bool {
        !self.staged.is_empty()
    }

    /// Whether the active file has no room for the next record.
    #[must_use]
    pub fn needs_file(&self) -> bool {
        self.has_staged() && self.fit(self.room(), 0).0 == 0
    }

    /// Makes a ready file the active one; false if none is ready.
    pub fn roll(&mut self, pool: &mut Pool<F>) -> bool {
        if self.settings.seal.planted.has(Fault::ReuseNotFree) && self.live.len() > 1 {
            pool.free(self.live.pop_front().expect("there are two").file);
        }
        if self.settings.seal.planted.has(Fault::FreeBeforeDurable) {
            let floor = self.staged.iter().filter_map(|entry| entry.record.floor()).max();
            let freed = floor.map(|floor| self.free_below(floor)).unwrap_or_default();
            freed.into_iter().for_each(|file| pool.free(file));
        }
        let Some(file) = pool.take(|| self.wanted()) else { return false };
        self.live.push_back(Live { file, last: Lsn(0), end: BLOCK_BYTES });
        self.has_active = true;
        true
    }

    /// Takes and encodes the next batch. `None` if nothing is staged, the file has no room, or a batch is in flight.
    pub fn take_batch(&mut self) -> Option<Batch<F>> {
        let (count, record_bytes) = self.fit(self.room(), BATCH_BYTES_GOAL);
        if count == 0 || !matches!(self.under_way, UnderWay::Nothing) {
            return None;
        }
        let live = self.live.back_mut().filter(|_| self.has_active)?;
        let (first, last) = (self.staged.front()?, self.staged.get(count - 1)?);
        let lsns = LsnRange { first: first.first, last: last.record.lsn };
        let (generation, seal) = (live.file.generation, self.settings.seal);
        let mut bytes = std::mem::take(&mut self.buffer);
        bytes.clear();
        let is_first = live.end == BLOCK_BYTES;
        if is_first {
            bytes.extend_from_slice(
                &self.settings.header(live.file.bytes, generation, Some(lsns.first)).encode(),
            );
        }
        let at = if is_first { 0 } else { live.end };
        batch::push(
            &mut bytes,
            seal,
            generation,
            lsns,
            self.staged.iter().take(count).map(|entry| &entry.record),
        );
        live.end += batch_bytes(record_bytes);
        live.last = lsns.last;
        let file = live.file.file.clone();
        let floor = self.staged.drain(..count).filter_map(|entry| entry.record.floor()).max();
        self.under_way = UnderWay::Taken(Flight { last: lsns.last, floor });
        Some(Batch { file, at, lsns, record_count: count, record_bytes, bytes, seal })
    }

    /// Notes that the current batch has been written. This frees no file.
    pub fn batch_written(&mut self) {
        if let UnderWay::Taken(flight) = self.under_way {
            self.under_way = UnderWay::Written(flight);
        }
    }

    /// Releases the current batch after its sync; `None` if no batch was written.
    pub fn batch_synced(&mut self) -> Option<Released<F>> {
        let UnderWay::Written(flight) = self.under_way else { return None };
        self.under_way = UnderWay::Nothing;
        let freed = flight.floor.map(|floor| self.free_below(floor)).unwrap_or_default();
        Some(Released { through: flight.last, freed })
    }

    /// Takes back the buffer of a batch, to reuse it.
    pub fn recycle(&mut self, batch: Batch<F>) {
        self.buffer = batch.bytes;
        // A single huge record must not hold its memory for ever.
        self.buffer.clear();
        self.buffer.shrink_to(2 * BATCH_BYTES_GOAL);
    }

    /// The number of files that hold a needed record, including the active file.
    #[must_use]
    pub fn live_files(&self) -> usize {
        self.live.len()
    }

    /// The highest LSN in the oldest sealed file, if there is one.
    #[must_use]
    pub fn oldest_sealed(&self) -> Option<Lsn> {
        let is_sealed = self.live.len() > usize::from(self.has_active);
        self.live.front().filter(|_| is_sealed).map(|live| live.last)
    }

    pub(crate) fn file_bytes(&self) -> usize {
        self.settings.file_bytes
    }

    /// The number of bytes left in the active file.
    pub(crate) fn room(&self) -> usize {
        let active = self.live.back().filter(|_| self.has_active);
        active.map_or(0, |live| live.file.bytes.saturating_sub(live.end))
    }

    /// The size required of the next file.
    fn wanted(&self) -> FileRequest {
        let unit_bytes = batch_bytes(self.fit(usize::MAX, 0).1);
        let is_checkpoint = |entry: &Entry| entry.record.floor().is_some();
        let is_last = |entry: &Entry| is_checkpoint(entry) || self.is_opening;
        let through = self.staged.iter().rposition(is_last).map(|last| {
            let records = self.staged.iter().take(last + 1).map(|entry| &entry.record);
            let bytes: usize = records.map(|record| record::encoded_bytes(record.payload.len())).sum();
            // Slack: a gap in the numbers ends a batch, and each batch is padded to whole blocks.
            batch_bytes(bytes) + 4 * BLOCK_BYTES
        });
        FileRequest { unit_bytes, freeing_bytes: through.map(|bytes| bytes.max(unit_bytes)) }
    }

    /// Notes that all recovered records are staged.
    pub(crate) fn opened(&mut self) {
        self.is_opening = false;
    }

    /// The number of records that fit into `room` bytes of a file, and their size. Groups stay
    /// whole, and numbers have no gaps. Beyond `goal` bytes at most one more record or group is
    /// taken.
    fn fit(&self, room: usize, goal: usize) -> (usize, usize) {
        let (mut count, mut bytes) = (0, 0);
        let (mut unit, mut all) = (0, 0);
        let mut before: Option<Lsn> = None;
        for Entry { first, record } in &self.staged {
            if before.is_some_and(|before| *first != before.next()) {
                break;
            }
            before = Some(record.lsn);
            unit += 1;
            all += record::encoded_bytes(record.payload.len());
            if batch_bytes(all) > room || (count > 0 && all > goal) {
                break;
            }
            if !record.is_in_group() || record.kind == RecordType::GroupEnd {
                (count, bytes) = (unit, all);
            }
        }
        (count, bytes)
    }

    fn free_below(&mut self, floor: Lsn) -> Vec<JournalFile<F>> {
        let sealed = self.live.len() - usize::from(self.has_active);
        let (mut freed, mut kept) = (Vec::new(), VecDeque::new());
        for (index, live) in self.live.drain(..).enumerate() {
            match index < sealed && live.last < floor {
                true => freed.push(live.file),
                false => kept.push_back(live),
            }
        }
        self.live = kept;
        freed
    }
}

impl<F: DiskFile> Batch<F> {
    /// The LSNs that the batch accounts for.
    #[must_use]
    pub fn lsns(&self) -> LsnRange {
        self.lsns
    }

    /// The number of records in the batch.
    #[must_use]
    pub fn record_count(&self) -> usize {
        self.record_count
    }

    /// The bytes of those records.
    #[must_use]
    pub fn record_bytes(&self) -> usize {
        self.record_bytes
    }

    /// Writes the whole batch.
    pub fn write(&self) -> io::Result<()> {
        if self.seal.planted.has(Fault::ShortWriteIgnored) {
            return self.file.write_at(&self.bytes, self.at as u64).map(drop);
        }
        disk::write_all(&*self.file, &self.bytes, self.at as u64)
    }

    /// Makes the batch durable. There is no retry after an error: the kernel may have dropped the
    /// pages, so a later success would prove nothing.
    pub fn sync(&self) -> io::Result<()> {
        let synced = match self.seal.planted.has(Fault::SkipSync) {
            true => Ok(()),
            false => self.file.sync_data(),
        };
        match self.seal.planted.has(Fault::RetrySync) {
            true => synced.or_else(|_| self.file.sync_data()),
            false => synced,
        }
    }

    pub(crate) fn has(&self, fault: Fault) -> bool {
        self.seal.planted.has(fault)
    }
}

#[cfg(test)]
mod tests;
