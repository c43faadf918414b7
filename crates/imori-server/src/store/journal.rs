//! The journal as cells see it: they append and go on; what they may tell their clients is told to them.

use std::fs::File;
use std::io;
use std::ops::Not as _;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use bytes::Bytes;
use imori_core::confirm::Lsn;
use imori_core::record::{Appended, NewRecord, RecordKind};
use imori_core::room::Reserve;
use imori_store::disk::{Disk, RealDisk};
use imori_store::folder::StoreFolder;
use imori_store::journal::{AppendError, Commit, Committer, Listener, Opened, Space, Watermark};
use imori_store::records::RecordType;
use imori_store::recovery::Report;
use tracing::{error, warn};

use super::definitions::DefinitionsThread;
use super::failure::{EndOfBroker, Failure};
use super::rate_limited_log::RateLimitedLog;
use super::settle_mark::SettleMark;
use super::{Commits, Waiters};
use crate::limits::{DEFINITIONS_ROOM_BYTES, JOURNAL_GROUP_SLACK_BYTES, QUEUED_BYTES_MARK};

/// The journal, from opened to closed.
pub(crate) struct Journal {
    observers: Arc<Observers>,
    committer: OnceLock<Committer<RealDisk>>,
    file_bytes: usize,
    /// The last number that was given out; none comes to it once a record was not taken.
    appended: AtomicU64,
    report: OnceLock<Report>,
    is_space_low: AtomicBool,
    settle_mark: SettleMark,
    reserve: Reserve,
    /// Of the last checkpoint; one line of the log tells of all that follow each other.
    is_checkpoint_too_large: AtomicBool,
    free_bytes: AtomicU64,
    failures_log: RateLimitedLog,
}

/// The space on the disk at one moment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SpaceSample {
    pub(crate) watermark: Watermark,
    pub(crate) free_bytes: u64,
}

/// The parts that the journal's threads tell of their progress.
pub(crate) struct Observers {
    pub(crate) waiters: Arc<Waiters>,
    pub(crate) commits: Commits,
    failure: Arc<Failure>,
    definitions: DefinitionsThread,
}

impl Journal {
    /// A journal that was opened and recovered; it takes records once it is started.
    pub(super) fn new(
        failure: Arc<Failure>,
        definitions: DefinitionsThread,
        waiters: Arc<Waiters>,
        file_bytes: usize,
    ) -> Journal {
        let appended = AtomicU64::new(waiters.progress().synced.0);
        let observers = Observers { waiters, commits: Commits::new(), failure, definitions };
        Journal {
            observers: Arc::new(observers),
            committer: OnceLock::new(),
            file_bytes,
            appended,
            report: OnceLock::new(),
            is_space_low: AtomicBool::new(false),
            settle_mark: SettleMark::new(file_bytes),
            reserve: Reserve::default(),
            is_checkpoint_too_large: AtomicBool::new(false),
            free_bytes: AtomicU64::new(u64::MAX),
            failures_log: RateLimitedLog::default(),
        }
    }

    /// Starts its threads; `end` ends the broker when the disk fails.
    pub(crate) fn start(&self, opened: Opened<File>, end: EndOfBroker) -> io::Result<()> {
        self.observers.failure.ends(end);
        let _ = self.report.set(opened.recovered.report.clone());
        let listener = Box::new(CommitListener(Arc::clone(&self.observers)));
        let committer = Committer::start(self.observers.failure.folder().journal(), opened, listener)?;
        let _ = self.committer.set(committer);
        Ok(())
    }

    /// Hands records to the journal.
    pub(crate) fn append(&self, records: Vec<NewRecord>) -> Appended {
        self.hand_over(records, false)
    }

    /// Hands records to the journal of which all survive or none.
    pub(crate) fn append_group(&self, records: Vec<NewRecord>) -> Appended {
        self.hand_over(records, true)
    }

    /// Bytes that records of a group may have, each with 64 bytes more.
    pub(crate) fn group_bytes_max(&self) -> usize {
        self.file_bytes.saturating_sub(JOURNAL_GROUP_SLACK_BYTES)
    }

    /// Gives the latest number that was given out, which a caller awaits to have all records up to now.
    pub(crate) fn appended(&self) -> Lsn {
        Lsn(self.appended.load(Ordering::Acquire))
    }

    /// Gives the waiters that are told of its progress.
    pub(crate) fn waiters(&self) -> &Waiters {
        &self.observers.waiters
    }

    /// How long its commits take.
    pub(crate) fn commits(&self) -> &Commits {
        &self.observers.commits
    }

    /// How long the write or sync that is under way has taken, if one is.
    pub(crate) fn flushing_for(&self) -> Option<Duration> {
        Some(self.committer.get()?.flush_since()?.elapsed())
    }

    /// Bytes that wait for the disk.
    pub(crate) fn queued_bytes(&self) -> usize {
        self.committer.get().map_or(0, Committer::queued_bytes)
    }

    /// Tells whether so much waits for the disk that publishers have to wait too. What settles then still finds
    /// room in the file that is kept for it.
    pub(crate) fn is_behind(&self) -> bool {
        self.queued_bytes() > self.mark_bytes() || self.is_out_of_space()
    }

    /// Tells whether there is no space for another file: those that are ready are for what settles.
    pub(crate) fn is_out_of_space(&self) -> bool {
        self.committer.get().is_some_and(Committer::is_out_of_space)
    }

    /// Tells whether so little waits for the disk, and there is so much space on it, that publishers
    /// may go on.
    pub(crate) fn has_caught_up(&self) -> bool {
        self.queued_bytes() < self.mark_bytes() / 2 && !self.is_space_low() && !self.is_out_of_space()
    }

    /// Tells whether more may be declared: what is not applied yet is written twice more, in pages that are half full.
    pub(crate) fn has_room_to_declare(&self) -> bool {
        let kept = self.file_bytes()
            + DEFINITIONS_ROOM_BYTES
            + 4 * self.observers.definitions.waiting_bytes() as u64;
        // Where the disk cannot be asked it is not known to be full.
        self.observers.failure.folder().journal().free_bytes().is_ok_and(|free| free < kept).not()
    }

    /// Tells whether dead letters have to ask for room: there is little on the disk, or much waits for it.
    pub(crate) fn is_room_scarce(&self) -> bool {
        // Where the disk cannot be asked nobody knows.
        self.free_bytes().is_none() || self.is_space_low() || self.is_behind()
    }

    /// Tells whether something is told of now that may come many times a second, and how often it was not.
    pub(crate) fn admit(&self, what: &str) -> Option<u64> {
        self.failures_log.admit(what, Instant::now())
    }

    /// The right to the room that is kept for dead letters.
    pub(crate) fn reserve(&self) -> &Reserve {
        &self.reserve
    }

    /// Bytes that dead letters may fill now.
    pub(crate) fn reserve_bytes(&self) -> usize {
        // Where the disk cannot be asked they wait for a better moment.
        self.committer.get().and_then(|committer| committer.room_for_moves().ok()).unwrap_or(0)
    }

    /// Tells whether publishers wait for space on the disk.
    pub(crate) fn is_space_low(&self) -> bool {
        self.is_space_low.load(Ordering::SeqCst)
    }

    /// Tells whether clients have to wait with what they settle, until the checkpointer has looked once more whether
    /// it can free a file: a checkpoint needs room too.
    #[inline]
    pub(crate) fn must_settle_wait(&self) -> bool {
        self.is_space_low() && self.settle_mark.is_above(self.settle_room())
    }

    /// Lets settles go on after the checkpointer has looked, and made a checkpoint if one frees something.
    pub(crate) fn looked_for_checkpoint(&self) {
        if self.is_space_low() {
            self.settle_mark.looked(self.settle_room());
        }
    }

    /// Bytes of records that the files take which are there.
    fn settle_room(&self) -> usize {
        self.committer.get().map_or(usize::MAX, Committer::room_for_settles)
    }

    /// Looks at the space that is left, and makes files again that could not be made for want of it; nothing
    /// before it is started.
    pub(crate) fn sample_space(&self, space: &mut Space) -> io::Result<Option<SpaceSample>> {
        let Some(committer) = self.committer.get() else { return Ok(None) };
        let watermark = committer.check_space(space)?;
        let free_bytes = self.observers.failure.folder().journal().free_bytes()?;
        self.is_space_low.store(watermark == Watermark::High, Ordering::SeqCst);
        self.free_bytes.store(free_bytes, Ordering::Relaxed);
        Ok(Some(SpaceSample { watermark, free_bytes }))
    }

    /// The space that was left at the last look, if there was one.
    pub(crate) fn free_bytes(&self) -> Option<u64> {
        Some(self.free_bytes.load(Ordering::Relaxed)).filter(|bytes| *bytes < u64::MAX)
    }

    /// Whose store it is, where it is, and how its last process ended.
    pub(crate) fn folder(&self) -> &StoreFolder {
        self.observers.failure.folder()
    }

    /// Gives the report of the recovery with which the journal was opened.
    pub(crate) fn report(&self) -> Option<&Report> {
        self.report.get()
    }

    /// Bytes of each of its files.
    pub(crate) fn file_bytes(&self) -> u64 {
        self.file_bytes as u64
    }

    /// Files in which something is needed.
    pub(crate) fn live_files(&self) -> usize {
        self.committer.get().map_or(0, Committer::live_files)
    }

    /// The number of the next record; none before the threads run.
    pub(crate) fn next_lsn(&self) -> Option<Lsn> {
        self.committer.get().map(|committer| Lsn(committer.next_lsn().0))
    }

    /// The highest number in the oldest file that is not written to any more.
    pub(crate) fn oldest_sealed(&self) -> Option<Lsn> {
        Some(Lsn(self.committer.get()?.oldest_sealed()?.0))
    }

    /// The first definition that only the journal has.
    pub(crate) fn first_definition(&self) -> Option<Lsn> {
        self.observers.definitions.first()
    }

    /// Says that nothing below `floor` is needed once this is durable; gives its number.
    pub(crate) fn append_checkpoint(&self, floor: Lsn, payload: &[u8]) -> Option<Lsn> {
        let appended = self.committer.get()?.append_checkpoint(imori_store::lsn::Lsn(floor.0), payload);
        let is_too_large = matches!(appended, Err(AppendError::TooLarge { .. }));
        let was_too_large = self.is_checkpoint_too_large.swap(is_too_large, Ordering::Relaxed);
        let lsn = match appended {
            Ok(lsn) => lsn,
            Err(error) => {
                if is_too_large && !was_too_large {
                    error!(%error, "no journal file can be used again; raise `journal.file_bytes`");
                }
                return None;
            }
        };
        self.appended.fetch_max(lsn.0, Ordering::AcqRel);
        Some(Lsn(lsn.0))
    }

    /// Tells whether the disk failed.
    pub(crate) fn has_failed(&self) -> bool {
        self.observers.failure.has_failed()
    }

    /// Commits what was appended, makes the definitions and, if that was all, the end durable. Nobody appends any more.
    pub(crate) fn close(&self) {
        if let Some(committer) = self.committer.get() {
            committer.finish();
        }
        let through = self.observers.waiters.progress().synced;
        if !self.observers.definitions.close(through) {
            return;
        }
        // What is not written may say which messages were given out, or of which that is not known.
        if self.appended() > through || self.is_checkpoint_too_large.load(Ordering::Relaxed) {
            warn!("not all was written; the next start takes all messages for redelivered");
            return;
        }
        self.observers.failure.end_clean();
    }

    /// Bytes that may wait for the disk before it is behind; dead letters of one command are no more either.
    pub(crate) fn mark_bytes(&self) -> usize {
        QUEUED_BYTES_MARK.min(self.file_bytes / 2)
    }

    fn hand_over(&self, records: Vec<NewRecord>, is_group: bool) -> Appended {
        const NEVER: Appended = Appended { first: Lsn::NEVER, through: Lsn::NEVER };
        let Some(committer) = self.committer.get() else { return NEVER };
        let definitions = definitions_in(&records);
        let records: Vec<_> = records.into_iter().map(of_store).collect();
        let range = if is_group { committer.append_group(records) } else { committer.append(records) };
        let range = match range {
            Ok(range) => range,
            // Nothing follows a disk that failed: no confirm comes any more, and the broker ends.
            Err(AppendError::Poisoned) => {
                self.appended.store(Lsn::NEVER.0, Ordering::Release);
                return NEVER;
            }
            Err(error) => {
                error!(%error, "a record cannot be kept, and what it is about is not confirmed");
                return NEVER;
            }
        };
        self.appended.fetch_max(range.last.0, Ordering::AcqRel);
        let first = Lsn(range.first.0 + u64::from(is_group));
        for (index, payload) in definitions {
            self.observers.definitions.note(first.plus(index), payload);
        }
        Appended { first, through: Lsn(range.last.0) }
    }
}

/// The payloads of definitions among records, with their places.
fn definitions_in(records: &[NewRecord]) -> Vec<(usize, Vec<u8>)> {
    let is_definition = |(_, record): &(usize, &NewRecord)| record.kind == RecordKind::Definition;
    let found = records.iter().enumerate().filter(is_definition);
    found.map(|(index, record)| (index, record.payload.clone())).collect()
}

fn of_store(NewRecord { kind, payload }: NewRecord) -> imori_store::journal::NewRecord {
    let kind = match kind {
        RecordKind::Message => RecordType::Message,
        RecordKind::Settle => RecordType::Settle,
        RecordKind::Purge => RecordType::Purge,
        RecordKind::Count => RecordType::Count,
        RecordKind::Annotations => RecordType::Annotations,
        RecordKind::Seen => RecordType::Seen,
        RecordKind::Definition => RecordType::Definition,
    };
    imori_store::journal::NewRecord { kind, payload: Bytes::from(payload) }
}

/// The journal's listener.
struct CommitListener(Arc<Observers>);

impl Listener for CommitListener {
    fn written(&self, through: imori_store::lsn::Lsn) {
        self.0.waiters.written(Lsn(through.0));
    }

    fn released(&self, through: imori_store::lsn::Lsn) {
        self.0.waiters.synced(Lsn(through.0));
        self.0.definitions.release(Lsn(through.0));
    }

    fn committed(&self, commit: &Commit) {
        self.0.commits.count(commit.records, commit.bytes, commit.write + commit.sync);
    }

    fn poisoned(&self, cause: &io::Error) {
        self.0.failure.tell("journal", cause);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use imori_store::definitions::{Definitions, PriorContent};
    use imori_store::folder::run_mark::LastEnd;
    use imori_store::settings::OnDamage;

    use super::*;

    #[test]
    fn an_end_is_clean_when_all_that_was_appended_is_durable() {
        for (appended, expected) in [(7, LastEnd::Clean), (8, LastEnd::Killed), (u64::MAX, LastEnd::Killed)] {
            let data = tempfile::tempdir().expect("there is a folder for temporary files");
            let folder = StoreFolder::open(data.path(), OnDamage::Quarantine).expect("it is empty");
            let definitions =
                Definitions::open(&folder.root(), folder.store(), PriorContent::Nothing, OnDamage::Refuse);
            let failure = Arc::new(Failure::new(folder));
            let thread = DefinitionsThread::start(
                definitions.expect("there are none"),
                BTreeSet::new(),
                Arc::clone(&failure),
            );
            let thread = thread.expect("there is room for a thread");
            let journal = Journal::new(failure, thread, Arc::new(Waiters::new(1, Lsn(7))), 1 << 20);
            journal.appended.store(appended, Ordering::Release);
            journal.close();
            drop(journal);
            let folder = StoreFolder::open(data.path(), OnDamage::Quarantine).expect("nobody has it");
            assert_eq!(folder.last_end(), expected, "{appended} of 7");
        }
    }
}
