//! Recovers the records of a journal, however the last process ended: reads everything, changes
//! nothing.
//!
//! A batch header names the numbers of its batch. Only one batch is under way at a time, so numbers
//! without a whole batch are the torn end if they lie behind all whole batches. Otherwise they are
//! damage.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;

use super::damage;
use super::messages::{Messages, RecordLocation};
use super::read_files::{ScannedFile, read_files};
use super::report::Report;
use super::scan::Scanned;
use crate::disk::{Disk, DiskFile, ReadFrom};
use crate::lsn::{self, Lsn, LsnRange};
use crate::planted::Fault;
use crate::records::journal_file::{self, JournalFile};
use crate::records::{HeaderError, Record, RecordType};
use crate::settings::{OnDamage, Settings};

/// The reason why a journal cannot be read.
#[derive(Debug)]
pub enum RecoverError {
    /// The disk returned an error.
    Disk(io::Error),
    /// A file belongs to another store or shard.
    Foreign {
        /// The name of the file.
        name: String,
    },
    /// A file has an unknown version.
    Version {
        /// The name of the file.
        name: String,
        /// The version of the file.
        version: u32,
    },
    /// The journal is damaged, and the settings refuse to open it then.
    Damaged(Box<Report>),
}

impl fmt::Display for RecoverError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RecoverError::Disk(error) => write!(f, "the journal cannot be read: {error}; check the disk"),
            RecoverError::Foreign { name } => {
                write!(f, "`{name}` belongs to another store; take it out of the folder")
            }
            RecoverError::Version { name, version } => {
                write!(f, "`{name}` has version `{version}`; open it with the release that wrote it")
            }
            RecoverError::Damaged(report) => {
                write!(
                    f,
                    "the journal is damaged; restore the whole folder from a copy, or {}\n{report}",
                    OnDamage::TO_GO_ON
                )
            }
        }
    }
}

impl std::error::Error for RecoverError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            RecoverError::Disk(error) => Some(error),
            _ => None,
        }
    }
}

impl From<io::Error> for RecoverError {
    fn from(error: io::Error) -> RecoverError {
        RecoverError::Disk(error)
    }
}

/// The content of a journal.
#[derive(Debug)]
pub struct Recovered {
    /// All needed records, in ascending order of number.
    pub records: Vec<Record>,
    /// The report for people.
    pub report: Report,
    /// The first number that was never used for a record that is kept.
    pub next: Lsn,
}

/// The action of an opening on a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileAction {
    /// The file is clean and stays; its highest number is given.
    Stay(Lsn),
    /// The file is clean and stays, but must be synced, because its end may be in the page cache
    /// only.
    Sync(Lsn),
    /// Needed records are rewritten, and the file is reused.
    Rewrite,
    /// Needed records are rewritten, and the file is set aside.
    SetAside,
    /// The file was never written to.
    Ready,
}

/// Everything that an opening needs to continue.
pub(crate) struct RecoveryPlan<F> {
    /// The recovered records, without messages.
    pub(crate) recovered: Recovered,
    pub(crate) messages: Messages<F>,
    pub(crate) files: Vec<(JournalFile<F>, FileAction)>,
    /// Records to rewrite, each with the first number that it accounts for.
    pub(crate) rewrites: Vec<(Lsn, Record)>,
    pub(crate) next_generation: u32,
    pub(crate) next_number: u32,
}

/// Reads a journal into memory without changing it, for inspection.
pub fn recover<D: Disk>(disk: &D, settings: &Settings) -> Result<Recovered, RecoverError> {
    let (recovered, messages) = recover_apart(disk, settings)?;
    Ok(recovered.with(&messages)?)
}

/// Recovers a journal but leaves messages in its files, because they may exceed memory.
pub fn recover_apart<D: Disk>(
    disk: &D,
    settings: &Settings,
) -> Result<(Recovered, Messages<D::File>), RecoverError> {
    find(disk, settings).map(|findings| (findings.recovered, findings.messages))
}

impl Recovered {
    /// Adds the messages, loaded into memory.
    pub(crate) fn with<F: DiskFile>(mut self, messages: &Messages<F>) -> io::Result<Recovered> {
        self.records.extend(messages.load(messages.places().iter().copied())?);
        self.records.sort_by_key(|record| record.lsn);
        Ok(self)
    }
}

pub(crate) fn find<D: Disk>(disk: &D, settings: &Settings) -> Result<RecoveryPlan<D::File>, RecoverError> {
    let begin = Instant::now();
    let (mut names, mut report, mut next_number) = (Vec::new(), Report::default(), 1);
    for name in disk.list()? {
        let Some((number, is_plain)) = journal_file::parse_name(&name) else { continue };
        next_number = next_number.max(number.saturating_add(1));
        match is_plain {
            true => names.push((name, number)),
            false if !journal_file::is_unfinished(&name) => report.set_aside.push(name),
            false => {}
        }
    }
    let mut found = read_files(disk, settings, names)?;
    found.iter().try_for_each(|found| check_owner(found, settings))?;
    found.sort_by_key(|found| (found.scan.generation, found.number));
    let next_generation =
        found.iter().filter_map(|found| found.scan.generation).max().unwrap_or(0).saturating_add(1);

    let mut records = merged(&mut found);
    let whole = lsn::join(found.iter().flat_map(|found| found.scan.whole.iter().copied()).collect());
    let last_durable = damage::last_durable(&whole, settings);
    // A checkpoint salvaged from the torn end has freed nothing yet, and records that it relies on,
    // such as a move just before it, may be torn away.
    let is_torn = |lsn: Lsn| last_durable.is_none_or(|last| lsn > last);
    records.retain(|(_, record)| {
        record.kind != RecordType::Checkpoint || record.is_in_group() || !is_torn(record.lsn)
    });
    let floor = records.iter().filter_map(|(_, record)| record.floor()).max();
    let accounted = accounted(&whole, &found);
    records.retain(|(_, record)| {
        floor.is_none_or(|floor| record.lsn >= floor) && record.kind != RecordType::Pad
    });

    let judged = damage::judge(&found, &whole, &accounted, floor, settings);
    (report.torn, report.damaged, report.absent) = (judged.torn, judged.damaged, judged.absent);
    let next = judged.next;
    report.file_count = found.len();
    report.record_count = records.len();
    report.floor = floor;
    let ends = records.first().zip(records.last());
    report.records = ends.map(|((_, first), (_, last))| LsnRange { first: first.lsn, last: last.lsn });
    report.took = begin.elapsed();
    if settings.on_damage == OnDamage::Refuse && report.is_damaged() {
        return Err(RecoverError::Damaged(Box::new(report)));
    }

    let fates: Vec<FileAction> = found.iter().map(|found| fate(found, &report, next, settings)).collect();
    let (records, mut messages) = parted(&found, records, settings);
    messages.stay(fates.iter().map(|fate| matches!(fate, FileAction::Stay(_) | FileAction::Sync(_))));
    let rewrites = rewrites(&found, &fates, (&records, &messages), (floor, next))?;
    let files = found.into_iter().zip(fates).map(|(found, fate)| {
        let generation = found.scan.generation.unwrap_or(0);
        // The length is not used before the file is renewed, which measures it.
        (JournalFile { file: found.file, number: found.number, generation, bytes: 0 }, fate)
    });
    let files = files.collect();
    let recovered = Recovered { records, report, next };
    Ok(RecoveryPlan { recovered, messages, files, rewrites, next_generation, next_number })
}

fn check_owner<F>(found: &ScannedFile<F>, settings: &Settings) -> Result<(), RecoverError> {
    let name = found.name.clone();
    match &found.scan.header {
        Ok(header) if header.store != settings.store || header.shard != settings.shard => {
            Err(RecoverError::Foreign { name })
        }
        Err(HeaderError::Version(version)) => Err(RecoverError::Version { name, version: *version }),
        Ok(_) | Err(HeaderError::Damaged) => Ok(()),
    }
}

/// The records of all files in ascending order of number, each with its file. If two files have the
/// same record, the later copy counts.
fn merged<F>(found: &mut [ScannedFile<F>]) -> Vec<(u32, Scanned)> {
    let mut records: Vec<(u32, Scanned)> = Vec::new();
    for (file, found) in (0..).zip(found) {
        records.extend(found.scan.salvaged.iter().map(|record| (file, record.clone())));
        records.extend(found.scan.records.drain(..).map(|record| (file, record)));
    }
    // Files are mostly in order already, which the sort exploits; it is stable.
    records.sort_by_key(|(_, record)| record.lsn);
    records.dedup_by(|later, kept| {
        let is_same = later.1.lsn == kept.1.lsn;
        if is_same {
            std::mem::swap(later, kept);
        }
        is_same
    });
    records
}

/// Separates messages, which stay in their files, from other records.
fn parted<F: DiskFile>(
    found: &[ScannedFile<F>],
    all: Vec<(u32, Scanned)>,
    settings: &Settings,
) -> (Vec<Record>, Messages<F>) {
    let (mut records, mut places) = (Vec::new(), Vec::new());
    for (file, Scanned { lsn, kind, flags, at, payload }) in all {
        match kind {
            RecordType::Message => places.push(RecordLocation { lsn, file, at }),
            _ => records.push(Record { lsn, kind, flags, payload: Bytes::from(payload) }),
        }
    }
    let files = found.iter().map(|found| Arc::clone(&found.reading)).collect();
    (records, Messages::new(files, places, settings.seal))
}

/// The numbers of whole batches and of single verified records.
fn accounted<F>(whole: &[LsnRange], found: &[ScannedFile<F>]) -> Vec<LsnRange> {
    let salvaged = found.iter().flat_map(|found| &found.scan.salvaged);
    lsn::join(whole.iter().copied().chain(salvaged.map(|record| LsnRange::one(record.lsn))).collect())
}

fn fate<F>(found: &ScannedFile<F>, report: &Report, next: Lsn, settings: &Settings) -> FileAction {
    let scan = &found.scan;
    if report.damaged.iter().any(|damaged| damaged.name == journal_file::name(found.number)) {
        return FileAction::SetAside;
    }
    let is_clean = scan.salvaged.is_empty() && scan.broken.is_empty();
    match scan.whole.iter().map(|range| range.last).max() {
        None if scan.lowest().is_none() => FileAction::Ready,
        Some(highest) if is_clean && highest.next() < next => FileAction::Stay(highest),
        Some(highest) if is_clean && settings.seal.planted.has(Fault::TailStays) => FileAction::Stay(highest),
        // After a failure or power loss, what the device shows at the end is rewritten rather than
        // trusted.
        Some(highest) if is_clean && settings.read_from == ReadFrom::Cache => FileAction::Sync(highest),
        _ => FileAction::Rewrite,
    }
}

/// The records of files that do not stay, and a pad for each range of lost numbers. A pad keeps the
/// numbers from being reported as missing again, and from being reused.
fn rewrites<F: DiskFile>(
    found: &[ScannedFile<F>],
    fates: &[FileAction],
    (records, messages): (&[Record], &Messages<F>),
    (floor, next): (Option<Lsn>, Lsn),
) -> io::Result<Vec<(Lsn, Record)>> {
    let staying =
        found.iter().zip(fates).filter(|(_, fate)| matches!(fate, FileAction::Stay(_) | FileAction::Sync(_)));
    let staying = lsn::join(staying.flat_map(|(found, _)| found.scan.whole.iter().copied()).collect());
    let stays = |lsn: Lsn| staying.iter().any(|range| (range.first..=range.last).contains(&lsn));
    let mut moving = messages.load(messages.places().iter().filter(|place| !stays(place.lsn)).copied())?;
    moving.extend(records.iter().filter(|record| !stays(record.lsn)).cloned());
    let mut taken: Vec<LsnRange> = moving.iter().map(|record| LsnRange::one(record.lsn)).collect();
    let mut rewrites: Vec<(Lsn, Record)> = moving.into_iter().map(|record| (record.lsn, record)).collect();
    taken.extend(staying);
    let all = LsnRange { first: floor.unwrap_or(Lsn::FIRST).max(Lsn::FIRST), last: Lsn(next.0 - 1) };
    for hole in lsn::holes(all, &lsn::join(taken)) {
        let pad = Record { lsn: hole.last, kind: RecordType::Pad, flags: 0, payload: Bytes::new() };
        rewrites.push((hole.first, pad));
    }
    rewrites.sort_by_key(|(_, record)| record.lsn);
    Ok(rewrites)
}

#[cfg(test)]
mod tests;
