//! The journal without threads: records in, batches out, and what is released once they are synced.
//!
//! ```text
//! append -> queued -> take_batch -> taken -> batch_written -> written -> batch_synced -> released
//! ```
//! One batch is under way at a time, so that at most one is not synced after a crash.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::sync::Arc;

use bytes::Bytes;

use crate::batch::{self, batch_bytes};
use crate::disk::{self, DiskFile};
use crate::file_header::FileHeader;
use crate::limits::{BATCH_BYTES_GOAL, BLOCK_BYTES, QUEUED_BYTES_MAX};
use crate::lsn::{Lsn, LsnRange};
use crate::planted::Fault;
use crate::pool::{JournalFile, Pool};
use crate::record::{self, FLAG_IN_GROUP, Record, RecordType};
use crate::seal::Seal;
use crate::settings::Settings;

/// A record that has no number yet.
#[derive(Debug, Clone)]
pub struct NewRecord {
    /// What it is about.
    pub kind: RecordType,
    /// What it says.
    pub payload: Bytes,
}

/// Why records are not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AppendError {
    /// There are none.
    Nothing,
    /// They are larger than a journal file.
    TooLarge {
        /// What they would take.
        bytes: usize,
        /// What there is at most.
        bytes_max: usize,
    },
    /// Too much waits for the disk; some has to be released first.
    Full,
    /// A write or a sync failed, and this journal never promises anything again.
    Poisoned,
}

impl fmt::Display for AppendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AppendError::Nothing => f.write_str("no record is given; append at least one"),
            AppendError::TooLarge { bytes, bytes_max } => write!(
                f,
                "records of `{bytes}` bytes do not fit into a journal file; send at most {bytes_max} bytes, \
                 or use larger files"
            ),
            AppendError::Full => f.write_str("too much waits for the disk; repeat it later"),
            AppendError::Poisoned => f.write_str("the disk failed; restart to recover what is on it"),
        }
    }
}

impl std::error::Error for AppendError {}

/// What a synced batch sets free.
#[derive(Debug)]
pub struct Released<F> {
    /// All records up to this one are durable.
    pub through: Lsn,
    /// Files in which a durable checkpoint says that nothing is needed.
    pub freed: Vec<JournalFile<F>>,
}

/// What there is to write.
#[derive(Debug)]
pub enum Take<F> {
    /// Nothing, or a batch is under way.
    Nothing,
    /// Something, and no file is ready for it.
    NeedsFile,
    /// This.
    Batch(Batch<F>),
}

/// Records that are written by one write and made durable by one sync.
#[derive(Debug)]
pub struct Batch<F> {
    file: Arc<F>,
    at: usize,
    generation: u32,
    lsns: LsnRange,
    records: Vec<Record>,
    /// Goes before the first batch of a file, in the same write.
    header: Option<FileHeader>,
    seal: Seal,
}

/// The state of one shard's journal.
#[derive(Debug)]
pub struct Journal<F> {
    settings: Settings,
    next: Lsn,
    queue: VecDeque<Entry>,
    queued_bytes: usize,
    under_way: UnderWay,
    /// The file that is written to, last, and those before it in which something is needed.
    live: VecDeque<Live<F>>,
    has_active: bool,
    is_poisoned: bool,
}

/// A record that waits; one that stands for lost numbers accounts for more than its own.
#[derive(Debug)]
struct Entry {
    first: Lsn,
    record: Record,
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
    bytes: usize,
    floor: Option<Lsn>,
}

impl<F: DiskFile> Journal<F> {
    /// A journal that goes on at `next`; in `live` are files that are not written to any more, each with
    /// its highest number.
    pub(crate) fn new(settings: Settings, next: Lsn, live: Vec<(JournalFile<F>, Lsn)>) -> Journal<F> {
        let live = live.into_iter().map(|(file, last)| Live { file, last, end: 0 }).collect();
        Journal {
            settings,
            next,
            queue: VecDeque::new(),
            queued_bytes: 0,
            under_way: UnderWay::Nothing,
            live,
            has_active: false,
            is_poisoned: false,
        }
    }

    /// Queues records, each for itself, and gives their numbers.
    pub fn append(&mut self, records: &[NewRecord]) -> Result<LsnRange, AppendError> {
        let largest = records.iter().map(encoded_bytes).max().ok_or(AppendError::Nothing)?;
        self.admit(largest)?;
        let first = self.next;
        for record in records {
            self.queue_record(record.kind, 0, record.payload.clone());
        }
        Ok(LsnRange { first, last: Lsn(self.next.0 - 1) })
    }

    /// Queues records of which after a crash all are there or none, and gives their numbers, those of
    /// the group's begin and end included.
    pub fn append_group(&mut self, records: &[NewRecord]) -> Result<LsnRange, AppendError> {
        if records.is_empty() {
            return Err(AppendError::Nothing);
        }
        self.admit(2 * record::encoded_bytes(0) + records.iter().map(encoded_bytes).sum::<usize>())?;
        let first = self.next;
        self.queue_record(RecordType::GroupBegin, FLAG_IN_GROUP, Bytes::new());
        for record in records {
            self.queue_record(record.kind, FLAG_IN_GROUP, record.payload.clone());
        }
        self.queue_record(RecordType::GroupEnd, FLAG_IN_GROUP, Bytes::new());
        Ok(LsnRange { first, last: Lsn(self.next.0 - 1) })
    }

    /// Takes from the queue what the next write holds; `pool` gives a file where the last is full.
    pub fn take_batch(&mut self, pool: &mut Pool<F>) -> Take<F> {
        if self.is_poisoned || self.queue.is_empty() || !matches!(self.under_way, UnderWay::Nothing) {
            return Take::Nothing;
        }
        let room = self.active().map_or(0, |live| self.settings.file_bytes.saturating_sub(live.end));
        let (mut count, mut bytes) = self.fit(room);
        let is_roll = count == 0;
        if is_roll {
            if self.settings.seal.planted.has(Fault::ReuseNotFree) && self.live.len() > 1 {
                pool.free(self.live.pop_front().expect("there are two").file);
            }
            let Some(file) = pool.take() else { return Take::NeedsFile };
            self.live.push_back(Live { file, last: Lsn(0), end: BLOCK_BYTES });
            self.has_active = true;
            (count, bytes) = self.fit(self.settings.file_bytes - BLOCK_BYTES);
        }
        let entries: Vec<Entry> = self.queue.drain(..count).collect();
        let (Some(first), Some(last)) = (entries.first(), entries.last()) else { return Take::Nothing };
        let lsns = LsnRange { first: first.first, last: last.record.lsn };
        let records: Vec<Record> = entries.into_iter().map(|entry| entry.record).collect();
        let floor = records.iter().filter_map(Record::floor).max();
        let flight = Flight { last: lsns.last, bytes, floor };
        self.under_way = UnderWay::Taken(flight);
        let live = self.live.back_mut().expect("one was there or was just taken");
        let (file, generation) = (live.file.file.clone(), live.file.generation);
        let at = live.end;
        live.end += batch_bytes(bytes);
        live.last = lsns.last;
        let header = is_roll.then(|| self.settings.header(generation, Some(lsns.first)));
        Take::Batch(Batch { file, at, generation, lsns, records, header, seal: self.settings.seal })
    }

    /// Notes that the batch under way is written; nothing is released by that.
    pub fn batch_written(&mut self) {
        if let UnderWay::Taken(flight) = self.under_way {
            self.under_way = UnderWay::Written(flight);
        }
    }

    /// Releases the batch under way, which is synced; nothing if none is written.
    pub fn batch_synced(&mut self) -> Option<Released<F>> {
        let UnderWay::Written(flight) = self.under_way else { return None };
        if self.is_poisoned {
            return None;
        }
        self.under_way = UnderWay::Nothing;
        self.queued_bytes = self.queued_bytes.saturating_sub(flight.bytes);
        let freed = flight.floor.map(|floor| self.free_below(floor)).unwrap_or_default();
        Some(Released { through: flight.last, freed })
    }

    /// Ends it: nothing is taken, written or released any more.
    pub fn poison(&mut self) {
        self.is_poisoned = true;
        self.queue.clear();
    }

    /// Tells whether something waits to be written.
    #[must_use]
    pub fn has_queued(&self) -> bool {
        !self.queue.is_empty()
    }

    /// Queues again what recovery found; `first` is below the record's own number where those between
    /// are lost.
    pub(crate) fn queue_again(&mut self, first: Lsn, record: Record) {
        self.queued_bytes += record::encoded_bytes(record.payload.len());
        self.queue.push_back(Entry { first, record });
    }

    fn queue_record(&mut self, kind: RecordType, flags: u8, payload: Bytes) {
        let lsn = self.next;
        self.next = lsn.next();
        let record = Record { lsn, kind, flags, payload };
        self.queue_again(lsn, record);
    }

    fn admit(&self, unit_bytes: usize) -> Result<(), AppendError> {
        let bytes_max = self.settings.file_bytes - BLOCK_BYTES - batch::HEADER_BYTES;
        if self.is_poisoned {
            return Err(AppendError::Poisoned);
        }
        if unit_bytes > bytes_max {
            return Err(AppendError::TooLarge { bytes: unit_bytes, bytes_max });
        }
        if self.queued_bytes > QUEUED_BYTES_MAX {
            return Err(AppendError::Full);
        }
        Ok(())
    }

    fn active(&self) -> Option<&Live<F>> {
        self.live.back().filter(|_| self.has_active)
    }

    /// How many records fit into `room` bytes of a file, groups whole and numbers without a gap, and
    /// the bytes they take.
    fn fit(&self, room: usize) -> (usize, usize) {
        let (mut count, mut bytes) = (0, 0);
        let (mut unit, mut all) = (0, 0);
        let mut before: Option<Lsn> = None;
        for Entry { first, record } in &self.queue {
            if before.is_some_and(|before| *first != before.next()) {
                break;
            }
            before = Some(record.lsn);
            unit += 1;
            all += record::encoded_bytes(record.payload.len());
            if batch_bytes(all) > room || (count > 0 && all > BATCH_BYTES_GOAL) {
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
    /// The numbers that it accounts for.
    #[must_use]
    pub fn lsns(&self) -> LsnRange {
        self.lsns
    }

    /// Writes it whole; `buffer` is used for that and kept for the next.
    pub fn write(&self, buffer: &mut Vec<u8>) -> io::Result<()> {
        buffer.clear();
        let mut at = self.at;
        if let Some(header) = &self.header {
            at = 0;
            buffer.extend_from_slice(&header.encode());
        }
        batch::push(buffer, self.seal, self.generation, self.lsns, &self.records);
        if self.seal.planted.has(Fault::ShortWriteIgnored) {
            return self.file.write_at(buffer, at as u64).map(drop);
        }
        disk::write_all(&*self.file, buffer, at as u64)
    }

    /// Makes it durable. After an error it is never called again: the pages may be gone, and another
    /// sync that succeeds would say nothing of them.
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

    pub(crate) fn is_early(&self) -> bool {
        self.seal.planted.has(Fault::ConfirmBeforeSync)
    }
}

fn encoded_bytes(record: &NewRecord) -> usize {
    record::encoded_bytes(record.payload.len())
}
