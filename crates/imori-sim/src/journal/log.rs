//! The journal of one process: its appended records, and the steps that bring them to the disk.

use bytes::{BufMut, Bytes, BytesMut};
use imori_core::confirm::{Lsn, Progress};
use imori_core::record::{Appended, NewRecord, RecordKind};
use imori_server::Room;
use imori_store::disk::Disk;
use imori_store::folder::run_mark::RunMark;
use imori_store::journal::{self, Admitted, Batch, Intake, Job, Journal, Opened, Pool, Space, Watermark};
use imori_store::limits::BLOCK_BYTES;
use imori_store::records::RecordType;
use imori_store::recovery::{Messages, Recovered};
use imori_store::settings::Settings;

use super::definitions::Definitions;
use super::device::{Device, DeviceFile};
use crate::planted::Bug;

/// Bytes of a journal file that the records of a group cannot use: the headers of file and batch,
/// and the marks of the group. The server reserves more, as its files are larger.
const GROUP_SLACK_BYTES: usize = BLOCK_BYTES + 128;

/// The bytes of a file that has no room for a record: its header and the header of a batch.
const NO_RECORD_BYTES: usize = BLOCK_BYTES + 40;

/// Something that one of the journal's threads can do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// The committer takes, writes or syncs a batch.
    Commit,
    /// The pool prepares a file.
    Pool,
    /// Definitions are applied to their store.
    Define,
}

/// The state of the committer.
#[derive(Debug)]
enum Commit {
    Idle,
    Taken(Batch<DeviceFile>),
    Written(Batch<DeviceFile>),
}

/// The journal of one process.
#[derive(Debug)]
pub(crate) struct Log {
    pub(crate) device: Device,
    file_bytes: usize,
    intake: Intake,
    journal: Journal<DeviceFile>,
    pool: Pool<DeviceFile>,
    commit: Commit,
    job: Option<Job<DeviceFile>>,
    /// Whether no file is ready for the next batch.
    waits_for_file: bool,
    /// The last record that was appended at that time.
    waited_with: Lsn,
    pub(crate) progress: Progress,
    pub(crate) definitions: Definitions,
    bug: Option<Bug>,
    /// Whether a write or sync failed; nothing is confirmed any more.
    pub(crate) has_failed: bool,
    /// Whether a record was refused.
    has_refused: bool,
    space: Space,
    /// Whether publishers wait for room on the disk, as of the last look.
    pub(crate) is_space_low: bool,
    checkpoints_in_turn: Option<u64>,
    /// Number of checkpoints requested.
    checkpoints: u64,
    /// Whether the last checkpoint was refused.
    is_checkpoint_refused: bool,
    /// The mark by which the next start knows how this process ended.
    mark: RunMark<DeviceFile>,
}

impl Log {
    /// Opens the journal on the disk, or creates one; returns its content, too.
    pub(crate) fn open(
        (device, mark): (Device, RunMark<DeviceFile>),
        settings: &Settings,
        file_bytes: usize,
        definitions: Definitions,
        bug: Option<Bug>,
    ) -> Result<(Log, Recovered, Messages<DeviceFile>), String> {
        let settings = settings.keeping_free(reserve_bytes(file_bytes));
        let opened = journal::open_apart(&device, &settings).map_err(|error| error.to_string())?;
        let (opened, messages) = opened;
        let Opened { intake, journal, mut pool, recovered } = opened;
        let last = Lsn(recovered.next.0.saturating_sub(1));
        let job = pool.next_job();
        let log = Log {
            device,
            file_bytes,
            intake,
            journal,
            pool,
            commit: Commit::Idle,
            job,
            waits_for_file: false,
            waited_with: Lsn::NONE,
            progress: Progress { written: last, synced: last },
            definitions,
            bug,
            has_failed: false,
            has_refused: false,
            space: Space::new(reserve_bytes(file_bytes), file_bytes as u64),
            is_space_low: false,
            checkpoints_in_turn: None,
            checkpoints: 0,
            is_checkpoint_refused: false,
            mark,
        };
        Ok((log, recovered, messages))
    }

    /// Marks the end as clean, once all threads have ended. False if the mark may or may not be
    /// durable.
    pub(crate) fn end_clean(&mut self) -> bool {
        self.definitions.apply(self.progress.synced);
        let marked = self.mark.end_clean();
        self.has_failed |= marked.is_err();
        marked.is_ok()
    }

    /// Adds a recovered definition, unless it is applied already.
    pub(crate) fn note_recovered(&mut self, lsn: Lsn, payload: &[u8]) {
        if lsn > self.definitions.applied {
            self.definitions.note(lsn, payload.to_vec());
        }
    }

    /// The number of files with needed records.
    pub(crate) fn live_files(&self) -> usize {
        self.journal.live_files()
    }

    /// The highest number in the oldest file that is no longer written.
    pub(crate) fn oldest_sealed(&self) -> Option<Lsn> {
        Some(Lsn(self.journal.oldest_sealed()?.0))
    }

    /// Appends a checkpoint, which frees everything below `floor`. Returns its number; `None` if it
    /// is refused or the journal has failed.
    pub(crate) fn append_checkpoint(&mut self, floor: Lsn, payload: &[u8]) -> Option<Lsn> {
        if self.has_failed {
            return None;
        }
        let mut bytes = BytesMut::with_capacity(8 + payload.len());
        bytes.put_u64_le(floor.0);
        bytes.put_slice(payload);
        let record = journal::NewRecord { kind: RecordType::Checkpoint, payload: bytes.freeze() };
        let is_refused = self.checkpoints_in_turn.is_some_and(|turn| !self.checkpoints.is_multiple_of(turn));
        self.checkpoints += 1;
        let file_bytes = if is_refused { NO_RECORD_BYTES } else { self.file_bytes };
        let admitted = Admitted::each([record], file_bytes);
        self.is_checkpoint_refused = admitted.is_err();
        match self.bug {
            Some(Bug::RefusedFrees) if self.is_checkpoint_refused => Some(self.progress.synced),
            _ => Some(Lsn(self.intake.append(admitted.ok()?).ok()?.last.0)),
        }
    }

    /// Tells whether the journal refused the last checkpoint: then an end is not clean.
    pub(crate) fn is_checkpoint_refused(&self) -> bool {
        self.is_checkpoint_refused
    }

    /// Has the journal take the first of this many checkpoints, and refuse the others.
    pub(crate) fn taking_checkpoints(self, checkpoints_in_turn: Option<u64>) -> Log {
        Log { checkpoints_in_turn, ..self }
    }

    /// The most bytes of the records of a group.
    pub(crate) fn group_bytes_max(&self) -> usize {
        self.file_bytes - GROUP_SLACK_BYTES
    }

    /// The last assigned number.
    pub(crate) fn last(&self) -> Lsn {
        Lsn(self.intake.next_lsn().0 - 1)
    }

    /// The number to wait for until all records so far are durable.
    pub(crate) fn appended(&self) -> Lsn {
        if self.has_refused { Lsn::NEVER } else { self.last() }
    }

    /// The number of records that are not durable yet.
    pub(crate) fn queued(&self) -> u64 {
        self.last().0.saturating_sub(self.progress.synced.0)
    }

    /// Appends records.
    pub(crate) fn append(&mut self, records: &[NewRecord], is_group: bool) -> Appended {
        const NEVER: Appended = Appended { first: Lsn::NEVER, through: Lsn::NEVER };
        if self.has_failed && self.bug != Some(Bug::ConfirmAfterFailure) {
            self.has_refused = true;
            return NEVER;
        }
        let of_store: Vec<_> = records.iter().map(of_store).collect();
        let admitted = match is_group {
            true => Admitted::group(of_store, self.file_bytes),
            false => Admitted::each(of_store, self.file_bytes),
        };
        let Some(range) = admitted.ok().and_then(|admitted| self.intake.append(admitted).ok()) else {
            self.has_refused = true;
            return NEVER;
        };
        let first = Lsn(range.first.0 + u64::from(is_group));
        for (index, record) in records.iter().enumerate() {
            let lsn = first.plus(index);
            if record.kind == RecordKind::Definition {
                self.definitions.note(lsn, record.payload.clone());
            }
        }
        if self.bug == Some(Bug::ConfirmBeforeCommit) {
            self.progress = Progress { written: Lsn(range.last.0), synced: Lsn(range.last.0) };
        }
        Appended { first, through: Lsn(range.last.0) }
    }

    /// Whether everything appended is durable, and nothing was refused.
    pub(crate) fn is_settled(&self) -> bool {
        !self.has_failed && !self.has_refused && self.progress.synced >= self.last()
    }

    /// The steps that are possible now.
    pub(crate) fn steps(&self) -> Vec<Step> {
        let mut steps = Vec::new();
        if self.has_failed {
            return steps;
        }
        let is_idle = matches!(self.commit, Commit::Idle);
        // A checkpoint appended since then may free a file.
        let may_go_on = !self.waits_for_file || self.last() > self.waited_with;
        if !is_idle || may_go_on && self.last() > self.progress.synced && self.has_queued() {
            steps.push(Step::Commit);
        }
        if self.job.is_some() {
            steps.push(Step::Pool);
        }
        let synced = match self.bug {
            Some(Bug::DefinedBeforeDurable) => self.last(),
            _ => self.progress.synced,
        };
        if self.definitions.is_due(synced) {
            steps.push(Step::Define);
        }
        steps
    }

    /// Whether the disk has no room for another file.
    pub(crate) fn is_stalled(&self) -> bool {
        self.pool.is_stalled()
    }

    /// Looks at the room on the disk, as the server's watch does.
    pub(crate) fn check_space(&mut self) -> Watermark {
        let free_bytes = self.free_bytes();
        let is_stalled = self.is_stalled();
        let watermark = self.space.update(free_bytes, is_stalled);
        self.pool.set_short_of_space(watermark == Watermark::High);
        if is_stalled && self.space.has_room(free_bytes) && self.bug != Some(Bug::RoomUnseen) {
            self.pool.retry();
        }
        self.pool.retry_urgently();
        self.job = self.job.take().or_else(|| self.pool.next_job());
        self.is_space_low = watermark == Watermark::High;
        watermark
    }

    /// The room that segments have now.
    pub(crate) fn room(&self) -> Room {
        Room::new(self.free_bytes(), self.space)
    }

    /// Free bytes needed for `files` journal files plus the reserve.
    pub(crate) fn mark(&self, files: u64) -> u64 {
        self.space.mark(files)
    }

    fn free_bytes(&self) -> u64 {
        self.device.free_bytes().expect("the simulated disk has a size")
    }

    /// Takes a step; notes a failure of the disk.
    pub(crate) fn step(&mut self, step: Step) {
        let done = match step {
            Step::Commit => self.commit(),
            Step::Pool => self.work(),
            Step::Define => {
                let synced = match self.bug {
                    Some(Bug::DefinedBeforeDurable) => self.last(),
                    _ => self.progress.synced,
                };
                self.definitions.apply(synced);
                Ok(())
            }
        };
        if done.is_err() {
            self.has_failed = true;
        }
    }

    fn has_queued(&self) -> bool {
        // Records that are confirmed before their commit must still be committed.
        self.bug != Some(Bug::ConfirmBeforeCommit) || self.journal.has_staged() || self.queued() > 0
    }

    fn commit(&mut self) -> std::io::Result<()> {
        self.commit = match std::mem::replace(&mut self.commit, Commit::Idle) {
            Commit::Idle => {
                self.journal.stage(&mut self.intake);
                if self.journal.needs_file() {
                    let has_rolled = self.journal.roll_for(&mut self.intake, &mut self.pool);
                    (self.waits_for_file, self.waited_with) = (!has_rolled, self.last());
                }
                self.job = self.job.take().or_else(|| self.pool.next_job());
                match self.journal.take_batch() {
                    Some(batch) => {
                        if self.bug == Some(Bug::ConfirmBeforeWrite) {
                            self.progress.written = Lsn(batch.lsns().last.0);
                        }
                        Commit::Taken(batch)
                    }
                    None => Commit::Idle,
                }
            }
            Commit::Taken(batch) => {
                batch.write()?;
                self.journal.batch_written();
                self.progress.written = Lsn(batch.lsns().last.0).max(self.progress.written);
                if self.bug == Some(Bug::ConfirmAtWritten) {
                    self.progress.synced = self.progress.written;
                }
                Commit::Written(batch)
            }
            Commit::Written(batch) => {
                if self.bug != Some(Bug::SyncSkipped) {
                    let synced = batch.sync();
                    if self.bug != Some(Bug::ConfirmAfterFailure) {
                        synced?;
                    }
                }
                if let Some(released) = self.journal.batch_synced() {
                    self.progress.synced = Lsn(released.through.0).max(self.progress.synced);
                    let freed = released.freed.into_iter().filter(|_| self.bug != Some(Bug::FreedFilesStay));
                    freed.for_each(|file| self.pool.free(file));
                }
                self.journal.recycle(batch);
                self.job = self.job.take().or_else(|| self.pool.next_job());
                Commit::Idle
            }
        };
        Ok(())
    }

    fn work(&mut self) -> std::io::Result<()> {
        let Some(job) = self.job.take() else { return Ok(()) };
        let made = job.run(&self.device, &|| true)?;
        self.pool.done(made);
        self.waits_for_file &= !self.pool.has_ready();
        self.job = self.pool.next_job();
        Ok(())
    }
}

/// Bytes of the disk reserved for its other users.
fn reserve_bytes(file_bytes: usize) -> u64 {
    file_bytes as u64 / 2
}

fn of_store(record: &NewRecord) -> journal::NewRecord {
    let kind = match record.kind {
        RecordKind::Message => RecordType::Message,
        RecordKind::Settle => RecordType::Settle,
        RecordKind::Purge => RecordType::Purge,
        RecordKind::Count => RecordType::Count,
        RecordKind::Annotations => RecordType::Annotations,
        RecordKind::Seen => RecordType::Seen,
        RecordKind::Stream => RecordType::Stream,
        RecordKind::Definition => RecordType::Definition,
    };
    journal::NewRecord { kind, payload: Bytes::from(record.payload.clone()) }
}
