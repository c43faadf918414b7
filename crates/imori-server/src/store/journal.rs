//! The journal as cells use it: they append without waiting, and learn of progress before they answer clients.

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

/// The journal, from opening to closing.
pub(crate) struct Journal {
    observers: Arc<Observers>,
    committer: OnceLock<Committer<RealDisk>>,
    file_bytes: usize,
    /// The last LSN handed out; `Lsn::NEVER` once a failed disk refused a record, so that waits on it never end.
    appended: AtomicU64,
    report: OnceLock<Report>,
    is_space_low: AtomicBool,
    settle_mark: SettleMark,
    reserve: Reserve,
    /// Whether the last checkpoint was too large, so that a series of these is logged once.
    is_checkpoint_too_large: AtomicBool,
    free_bytes: AtomicU64,
    failures_log: RateLimitedLog,
}

/// Free space on the disk at one moment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SpaceSample {
    pub(crate) watermark: Watermark,
    pub(crate) free_bytes: u64,
}

/// Receivers of the journal's progress, shared with its threads.
pub(crate) struct Observers {
    pub(crate) waiters: Arc<Waiters>,
    pub(crate) commits: Commits,
    failure: Arc<Failure>,
    definitions: DefinitionsThread,
}

impl Journal {
    /// Wraps a recovered journal; it takes records after [`Journal::start`].
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

    /// Starts the journal's threads; `end` ends the broker if the disk fails.
    pub(crate) fn start(&self, opened: Opened<File>, end: EndOfBroker) -> io::Result<()> {
        self.observers.failure.ends(end);
        let _ = self.report.set(opened.recovered.report.clone());
        let listener = Box::new(CommitListener(Arc::clone(&self.observers)));
        let committer = Committer::start(self.observers.failure.folder().journal(), opened, listener)?;
        let _ = self.committer.set(committer);
        Ok(())
    }

    /// Appends records.
    pub(crate) fn append(&self, records: Vec<NewRecord>) -> Appended {
        self.hand_over(records, false)
    }

    /// Appends records that survive a crash all together or not at all.
    pub(crate) fn append_group(&self, records: Vec<NewRecord>) -> Appended {
        self.hand_over(records, true)
    }

    /// Largest group, counting 64 bytes of overhead per record.
    pub(crate) fn group_bytes_max(&self) -> usize {
        self.file_bytes.saturating_sub(JOURNAL_GROUP_SLACK_BYTES)
    }

    /// The last LSN handed out: a caller that waits for it waits for all records so far.
    pub(crate) fn appended(&self) -> Lsn {
        Lsn(self.appended.load(Ordering::Acquire))
    }

    /// The waiters that learn of its progress.
    pub(crate) fn waiters(&self) -> &Waiters {
        &self.observers.waiters
    }

    /// Durations of its commits.
    pub(crate) fn commits(&self) -> &Commits {
        &self.observers.commits
    }

    /// Elapsed time of the write or sync in flight, if any.
    pub(crate) fn flushing_for(&self) -> Option<Duration> {
        Some(self.committer.get()?.flush_since()?.elapsed())
    }

    /// Bytes waiting to be written.
    pub(crate) fn queued_bytes(&self) -> usize {
        self.committer.get().map_or(0, Committer::queued_bytes)
    }

    /// Whether publishers have to wait because too much is queued for the disk. Settles still fit into the file that
    /// is kept for them.
    pub(crate) fn is_behind(&self) -> bool {
        self.queued_bytes() > self.mark_bytes() || self.is_out_of_space()
    }

    /// Whether the disk has no space for another file; the prepared files are left to settles.
    pub(crate) fn is_out_of_space(&self) -> bool {
        self.committer.get().is_some_and(Committer::is_out_of_space)
    }

    /// Whether publishers may continue: little is queued and the disk has space.
    pub(crate) fn has_caught_up(&self) -> bool {
        self.queued_bytes() < self.mark_bytes() / 2 && !self.is_space_low() && !self.is_out_of_space()
    }

    /// Whether the disk has room for another declaration. Definitions not applied yet count four times: they are
    /// written twice more, into half-full pages.
    pub(crate) fn has_room_to_declare(&self) -> bool {
        let kept = self.file_bytes()
            + DEFINITIONS_ROOM_BYTES
            + 4 * self.observers.definitions.waiting_bytes() as u64;
        // A disk that cannot report its free space counts as having some.
        self.observers.failure.folder().journal().free_bytes().is_ok_and(|free| free < kept).not()
    }

    /// Whether dead letters have to reserve room, because the disk is nearly full or behind.
    pub(crate) fn is_room_scarce(&self) -> bool {
        // Unknown free space counts as scarce.
        self.free_bytes().is_none() || self.is_space_low() || self.is_behind()
    }

    /// Rate-limits a frequent log line: `Some` with the number of lines suppressed before if it may be logged now.
    pub(crate) fn admit(&self, what: &str) -> Option<u64> {
        self.failures_log.admit(what, Instant::now())
    }

    /// The reservation of the room kept for dead letters.
    pub(crate) fn reserve(&self) -> &Reserve {
        &self.reserve
    }

    /// Bytes that dead letters may take now.
    pub(crate) fn reserve_bytes(&self) -> usize {
        // If the disk cannot report its free space, dead letters wait.
        self.committer.get().and_then(|committer| committer.room_for_moves().ok()).unwrap_or(0)
    }

    /// Whether publishers wait for disk space.
    pub(crate) fn is_space_low(&self) -> bool {
        self.is_space_low.load(Ordering::SeqCst)
    }

    /// Whether clients have to wait before they settle, until the checkpointer has tried again to free a file. A
    /// checkpoint needs room too.
    #[inline]
    pub(crate) fn must_settle_wait(&self) -> bool {
        self.is_space_low() && self.settle_mark.is_above(self.settle_room())
    }

    /// Lets settles continue after the checkpointer has checked for a file to free.
    pub(crate) fn looked_for_checkpoint(&self) {
        if self.is_space_low() {
            self.settle_mark.looked(self.settle_room());
        }
    }

    /// Bytes of records that fit into the existing files.
    fn settle_room(&self) -> usize {
        self.committer.get().map_or(usize::MAX, Committer::room_for_settles)
    }

    /// Samples the free space and retries files that could not be created for lack of it. Returns `None` before the
    /// journal is started.
    pub(crate) fn sample_space(&self, space: &mut Space) -> io::Result<Option<SpaceSample>> {
        let Some(committer) = self.committer.get() else { return Ok(None) };
        let watermark = committer.check_space(space)?;
        let free_bytes = self.observers.failure.folder().journal().free_bytes()?;
        self.is_space_low.store(watermark == Watermark::High, Ordering::SeqCst);
        self.free_bytes.store(free_bytes, Ordering::Relaxed);
        Ok(Some(SpaceSample { watermark, free_bytes }))
    }

    /// Free bytes in the last sample, if there was one.
    pub(crate) fn free_bytes(&self) -> Option<u64> {
        Some(self.free_bytes.load(Ordering::Relaxed)).filter(|bytes| *bytes < u64::MAX)
    }

    /// The store's folder: its identity, its path and how its last process ended.
    pub(crate) fn folder(&self) -> &StoreFolder {
        self.observers.failure.folder()
    }

    /// Report of the recovery that opened the journal.
    pub(crate) fn report(&self) -> Option<&Report> {
        self.report.get()
    }

    /// Size of each journal file in bytes.
    pub(crate) fn file_bytes(&self) -> u64 {
        self.file_bytes as u64
    }

    /// Journal files that still hold needed records.
    pub(crate) fn live_files(&self) -> usize {
        self.committer.get().map_or(0, Committer::live_files)
    }

    /// LSN of the next record; `None` before the threads run.
    pub(crate) fn next_lsn(&self) -> Option<Lsn> {
        self.committer.get().map(|committer| Lsn(committer.next_lsn().0))
    }

    /// Highest LSN in the oldest sealed file, which is not written to any more.
    pub(crate) fn oldest_sealed(&self) -> Option<Lsn> {
        Some(Lsn(self.committer.get()?.oldest_sealed()?.0))
    }

    /// LSN of the oldest definition that only the journal has.
    pub(crate) fn first_definition(&self) -> Option<Lsn> {
        self.observers.definitions.first()
    }

    /// Appends a checkpoint: once it is durable, no record below `floor` is needed. Returns its LSN, or `None` if it
    /// was not taken.
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

    /// Whether the disk failed.
    pub(crate) fn has_failed(&self) -> bool {
        self.observers.failure.has_failed()
    }

    /// Commits everything appended, stores the definitions and, if nothing is missing, marks a clean end. Called once
    /// no cell appends.
    pub(crate) fn close(&self) {
        if let Some(committer) = self.committer.get() {
            committer.finish();
        }
        let through = self.observers.waiters.progress().synced;
        if !self.observers.definitions.close(through) {
            return;
        }
        // Records that are missing may be delivery counts, or the checkpoint that says which counts are unknown.
        if self.appended() > through || self.is_checkpoint_too_large.load(Ordering::Relaxed) {
            warn!("not all was written; the next start takes all messages for redelivered");
            return;
        }
        self.observers.failure.end_clean();
    }

    /// Queued bytes above which the journal is behind; also the most bytes of dead letters that one command creates.
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
            // A failed disk confirms nothing more, and the broker ends.
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

/// Payloads of the definitions among `records`, with their indexes.
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
        RecordKind::Stream => RecordType::Stream,
        RecordKind::Definition => RecordType::Definition,
    };
    imori_store::journal::NewRecord { kind, payload: Bytes::from(payload) }
}

/// Forwards the journal's progress to the observers.
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
