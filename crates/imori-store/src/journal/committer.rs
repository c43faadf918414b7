//! The threads of a journal: one commits records, one keeps files ready.
//!
//! The committer takes everything queued, writes it in one call, syncs once and releases it. There
//! is no timer while there is space: records that arrive meanwhile form the next batch. While space
//! is short, records are gathered for [`GATHER_TIME`] first. After a failed write or sync nothing is
//! ever released again and the file is not synced again; the listener ends the process. A disk
//! without space for a new file is not a failure: the committer waits for space.

use std::cell::{Cell, RefCell};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use bytes::{BufMut, BytesMut};

use super::intake::{Admitted, AppendError, Intake, NewRecord};
use super::journal::{Batch, Journal};
use super::open::Opened;
use super::pool::Pool;
use super::space::{Space, Watermark};
use crate::disk::{Disk, DiskFile};
use crate::limits::{BLOCK_BYTES, GATHER_TIME, MOVE_FILES_MIN, SHORT_FILES_MAX};
use crate::lsn::{Lsn, LsnRange};
use crate::planted::Fault;
use crate::records::RecordType;

/// Receives the progress of records. The store's threads call it, so it must not block.
pub trait Listener: Send + Sync + 'static {
    /// All records up to `through` have been written: they survive the end of this process.
    fn written(&self, through: Lsn);

    /// All records up to `through` are durable.
    fn released(&self, through: Lsn);

    /// A batch was released. Called after `released`, for statistics.
    fn committed(&self, _commit: &Commit) {}

    /// The disk failed: records that were not released never will be. Called once.
    fn poisoned(&self, cause: &io::Error);
}

/// The size and duration of one committed batch.
#[derive(Debug, Clone, Copy)]
pub struct Commit {
    /// The number of records.
    pub records: usize,
    /// The bytes of the records.
    pub bytes: usize,
    /// Duration of the write.
    pub write: Duration,
    /// Duration of the sync.
    pub sync: Duration,
}

/// A journal with its threads.
pub struct Committer<D: Disk> {
    shared: Arc<Shared<D>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

struct Shared<D: Disk> {
    disk: D,
    listener: Box<dyn Listener>,
    file_bytes: usize,
    state: Mutex<State<D::File>>,
    /// Signalled when a record is queued, a file is ready, or the journal ends.
    work: Condvar,
    /// Signalled when a file is free, a file was taken, or the journal ends.
    room: Condvar,
    queued_bytes: AtomicUsize,
    released: AtomicU64,
    is_stalled: AtomicBool,
    flush_since: Mutex<Option<Instant>>,
}

struct State<F> {
    intake: Intake,
    pool: Pool<F>,
    live_files: usize,
    oldest_sealed: Option<Lsn>,
    /// The bytes left in the active file.
    room: usize,
    /// Whether the committer waits for `work` and has not been woken yet.
    is_waiting: bool,
    is_ending: bool,
    /// Whether the last batch is committed, so that no further file is needed.
    is_committed: bool,
    is_poisoned: bool,
}

impl<D: Disk> Committer<D> {
    /// Starts the journal's threads, `journal` and `journal-pool`.
    pub fn start(disk: D, opened: Opened<D::File>, listener: Box<dyn Listener>) -> io::Result<Committer<D>> {
        let Opened { intake, journal, pool, recovered } = opened;
        let released = recovered.next.0.saturating_sub(1);
        let state = State {
            intake,
            pool,
            live_files: journal.live_files(),
            oldest_sealed: journal.oldest_sealed(),
            room: journal.room(),
            is_waiting: false,
            is_ending: false,
            is_committed: false,
            is_poisoned: false,
        };
        let shared = Arc::new(Shared {
            disk,
            listener,
            file_bytes: journal.file_bytes(),
            state: Mutex::new(state),
            work: Condvar::new(),
            room: Condvar::new(),
            queued_bytes: AtomicUsize::new(0),
            released: AtomicU64::new(released),
            is_stalled: AtomicBool::new(false),
            flush_since: Mutex::new(None),
        });
        let committer = Committer { shared, threads: Mutex::new(Vec::new()) };
        committer.spawn("journal", move |shared| shared.commit(journal))?;
        committer.spawn("journal-pool", Shared::fill)?;
        Ok(committer)
    }

    fn spawn(&self, name: &str, run: impl FnOnce(&Shared<D>) + Send + 'static) -> io::Result<()> {
        let (shared, builder) = (self.shared.clone(), std::thread::Builder::new());
        let thread = builder.name(name.to_string()).spawn(move || run(&shared))?;
        self.threads.lock().expect("nothing panics while it holds them").push(thread);
        Ok(())
    }

    /// Queues independent records, given as an array or a `Vec`.
    pub fn append<R>(&self, records: R) -> Result<LsnRange, AppendError>
    where
        R: AsRef<[NewRecord]> + IntoIterator<Item = NewRecord>,
    {
        self.shared.append(Admitted::each(records, self.shared.file_bytes)?)
    }

    /// Queues an atomic group: after a crash all of its records are present or none.
    pub fn append_group<R>(&self, records: R) -> Result<LsnRange, AppendError>
    where
        R: AsRef<[NewRecord]> + IntoIterator<Item = NewRecord>,
    {
        self.shared.append(Admitted::group(records, self.shared.file_bytes)?)
    }

    /// Queues a checkpoint. Once durable, it frees each file whose records are all below `floor`.
    pub fn append_checkpoint(&self, floor: Lsn, payload: &[u8]) -> Result<Lsn, AppendError> {
        let mut bytes = BytesMut::with_capacity(8 + payload.len());
        bytes.put_u64_le(floor.0);
        bytes.put_slice(payload);
        let record = NewRecord { kind: RecordType::Checkpoint, payload: bytes.freeze() };
        self.append([record]).map(|range| range.last)
    }

    /// The bytes of records that are not released yet. The journal never refuses a record for lack
    /// of room: its owner must stop publishers while this number is above a mark.
    #[must_use]
    pub fn queued_bytes(&self) -> usize {
        self.shared.queued_bytes.load(Ordering::Relaxed)
    }

    /// The LSN of the next record.
    #[must_use]
    pub fn next_lsn(&self) -> Lsn {
        self.shared.lock().intake.next_lsn()
    }

    /// The last durable record; all records before it are durable too.
    #[must_use]
    pub fn released_through(&self) -> Lsn {
        Lsn(self.shared.released.load(Ordering::Acquire))
    }

    /// The start of the current write or sync, if any, for detecting stalls.
    #[must_use]
    pub fn flush_since(&self) -> Option<Instant> {
        *self.shared.flush_since.lock().expect("nothing panics while it holds this")
    }

    /// Whether a file could not be created for lack of space.
    #[must_use]
    pub fn is_out_of_space(&self) -> bool {
        self.shared.is_stalled.load(Ordering::Relaxed)
    }

    /// Measures the free space, and resumes creating files if that failed before and there is space
    /// now. When the watermark turns high, less than one file should be queued: the file behind it
    /// is reserved for settles.
    pub fn check_space(&self, space: &mut Space) -> io::Result<Watermark> {
        let free_bytes = self.shared.disk.free_bytes()?;
        let mut state = self.shared.lock();
        let is_stalled = state.pool.is_stalled();
        let watermark = space.update(free_bytes, is_stalled);
        state.pool.set_short_of_space(watermark == Watermark::High);
        if is_stalled && space.has_room(free_bytes) {
            state.pool.retry();
            self.shared.note_stall(&state);
        }
        state.pool.retry_urgently();
        // The pool may now give up ready files beyond the reserve.
        self.shared.room.notify_one();
        Ok(watermark)
    }

    /// The bytes of records that move messages, such as dead letters, which may be appended now.
    /// The rest of the disk stays reserved for settles and for the checkpoint, which is queued
    /// behind all else.
    pub fn room_for_moves(&self) -> io::Result<usize> {
        let free_bytes = self.shared.disk.free_bytes()?;
        let (ready, room) = {
            let state = self.shared.lock();
            (state.pool.ready(), state.room)
        };
        Ok(room_for_moves(self.shared.file_bytes, (ready, free_bytes), room, self.queued_bytes()))
    }

    /// The bytes of records that still fit into existing files, behind everything queued. Free
    /// space on the disk is not counted.
    #[must_use]
    pub fn room_for_settles(&self) -> usize {
        let (ready, room) = {
            let state = self.shared.lock();
            (state.pool.ready_bytes(), state.room)
        };
        (room + ready).saturating_sub(self.queued_bytes())
    }

    /// The number of files that hold a needed record, including the active file.
    #[must_use]
    pub fn live_files(&self) -> usize {
        self.shared.lock().live_files
    }

    /// The highest number in the oldest sealed file, that is, one no longer written to. A
    /// checkpoint with a floor above this number frees that file.
    #[must_use]
    pub fn oldest_sealed(&self) -> Option<Lsn> {
        self.shared.lock().oldest_sealed
    }
}

impl<F: DiskFile> State<F> {
    /// Copies the figures that other threads ask for, because the journal belongs to the
    /// committer's thread.
    fn note(&mut self, journal: &Journal<F>) {
        (self.live_files, self.oldest_sealed) = (journal.live_files(), journal.oldest_sealed());
        self.room = journal.room();
    }
}

impl<D: Disk> Committer<D> {
    /// Commits all queued records, unless there is no space for them, and ends the threads. Records
    /// appended later are never released.
    pub fn finish(&self) {
        self.shared.lock().is_ending = true;
        self.shared.work.notify_all();
        self.shared.room.notify_all();
        let threads = std::mem::take(&mut *self.threads.lock().expect("nothing panics while it holds them"));
        for thread in threads {
            // The result of a panicked thread is of no use here.
            let _ = thread.join();
        }
    }
}

/// Ends the threads like [`Committer::finish`].
impl<D: Disk> Drop for Committer<D> {
    fn drop(&mut self) {
        self.finish();
    }
}

impl<D: Disk> Shared<D> {
    fn lock(&self) -> MutexGuard<'_, State<D::File>> {
        self.state.lock().expect("nothing panics while it holds the state")
    }

    fn append<R>(&self, admitted: Admitted<R>) -> Result<LsnRange, AppendError>
    where
        R: AsRef<[NewRecord]> + IntoIterator<Item = NewRecord>,
    {
        let bytes = admitted.bytes();
        // Count before appending: a release in between would make the sum underflow.
        self.queued_bytes.fetch_add(bytes, Ordering::Relaxed);
        let mut state = self.lock();
        let appended = state.intake.append(admitted);
        let is_waiting = std::mem::take(&mut state.is_waiting);
        drop(state);
        if is_waiting {
            self.work.notify_one();
        }
        if appended.is_err() {
            self.queued_bytes.fetch_sub(bytes, Ordering::Relaxed);
        }
        appended
    }

    /// Runs the committer's thread.
    fn commit(&self, mut journal: Journal<D::File>) {
        while let Some(batch) = self.next_batch(&mut journal) {
            match self.commit_batch(&mut journal, &batch) {
                Ok(commit) => self.listener.committed(&commit),
                Err(error) => {
                    self.mark_flush(None);
                    return self.poison(&error);
                }
            }
            journal.recycle(batch);
        }
        self.lock().is_committed = true;
        self.room.notify_one();
    }

    fn next_batch(&self, journal: &mut Journal<D::File>) -> Option<Batch<D::File>> {
        if !journal.has_staged() {
            self.stage(journal)?;
        }
        if journal.needs_file() {
            self.wait(|state| {
                let is_hopeless = state.is_ending && state.pool.is_hopeless();
                let has_rolled = journal.roll_for(&mut state.intake, &mut state.pool);
                if !has_rolled {
                    // The pool may have stopped making files for lack of space, which a smaller
                    // request may find.
                    self.room.notify_one();
                }
                state.note(journal);
                has_rolled || is_hopeless
            })?;
            self.room.notify_one();
        }
        journal.take_batch()
    }

    /// Waits for records, or for the end, and stages what is queued.
    fn stage(&self, journal: &mut Journal<D::File>) -> Option<()> {
        let mut must_gather = false;
        self.wait(|state| {
            must_gather = state.pool.is_short_of_space() && !state.is_ending;
            if !must_gather {
                journal.stage(&mut state.intake);
            }
            journal.has_staged() || state.is_ending || must_gather && state.intake.has_records()
        })?;
        if must_gather {
            std::thread::sleep(GATHER_TIME);
            journal.stage(&mut self.lock().intake);
        }
        Some(())
    }

    /// Waits until `is_so` holds; `None` if the journal is poisoned.
    fn wait(&self, mut is_so: impl FnMut(&mut State<D::File>) -> bool) -> Option<()> {
        let mut state = self.lock();
        loop {
            if state.is_poisoned {
                return None;
            }
            if is_so(&mut state) {
                return Some(());
            }
            state.is_waiting = true;
            state = self.work.wait(state).expect("nothing panics while it holds the state");
            state.is_waiting = false;
        }
    }

    fn commit_batch(&self, journal: &mut Journal<D::File>, batch: &Batch<D::File>) -> io::Result<Commit> {
        let (begin, write, journal) = (Instant::now(), Cell::new(Duration::ZERO), RefCell::new(journal));
        let sync = Cell::new(Duration::ZERO);
        self.mark_flush(Some(begin));
        let written = || {
            write.set(begin.elapsed());
            journal.borrow_mut().batch_written();
            self.listener.written(batch.lsns().last);
        };
        let release = || {
            sync.set(begin.elapsed().saturating_sub(write.get()));
            self.mark_flush(None);
            self.release(&mut journal.borrow_mut(), batch);
        };
        commit(batch, written, release)?;
        let (records, bytes) = (batch.record_count(), batch.record_bytes());
        Ok(Commit { records, bytes, write: write.get(), sync: sync.get() })
    }

    /// Publishes whether files are missing, so that appenders can ask without the lock.
    fn note_stall(&self, state: &State<D::File>) {
        self.is_stalled.store(state.pool.is_stalled(), Ordering::Relaxed);
    }

    fn mark_flush(&self, since: Option<Instant>) {
        *self.flush_since.lock().expect("nothing panics while it holds this") = since;
    }

    fn release(&self, journal: &mut Journal<D::File>, batch: &Batch<D::File>) {
        let Some(released) = journal.batch_synced() else { return };
        let has_freed = !released.freed.is_empty();
        let mut state = self.lock();
        if state.is_poisoned {
            return;
        }
        released.freed.into_iter().for_each(|file| state.pool.free(file));
        state.note(journal);
        drop(state);
        if has_freed {
            self.room.notify_one();
        }
        self.queued_bytes.fetch_sub(batch.record_bytes(), Ordering::Relaxed);
        self.released.store(released.through.0, Ordering::Release);
        self.listener.released(released.through);
    }

    /// Runs the thread that keeps files ready.
    fn fill(&self) {
        let mut guard = self.lock();
        loop {
            if guard.is_poisoned || guard.is_committed {
                return;
            }
            let Some(job) = guard.pool.next_job() else {
                guard = self.room.wait(guard).expect("nothing panics while it holds the state");
                continue;
            };
            drop(guard);
            // Once everything is committed, do not delay the end by filling a file that is not
            // needed.
            let is_wanted = || !self.lock().is_committed;
            let made = match job.run(&self.disk, &is_wanted) {
                Ok(made) => made,
                Err(error) => return self.poison(&error),
            };
            guard = self.lock();
            guard.pool.done(made);
            self.note_stall(&guard);
            self.work.notify_one();
        }
    }

    fn poison(&self, error: &io::Error) {
        let mut state = self.lock();
        let is_first = !state.is_poisoned;
        state.is_poisoned = true;
        state.intake.poison();
        drop(state);
        self.work.notify_all();
        self.room.notify_all();
        if is_first {
            self.listener.poisoned(error);
        }
    }
}

/// Commits one batch: write, sync, release, in this order.
pub(crate) fn commit<F: DiskFile>(
    batch: &Batch<F>,
    written: impl Fn(),
    release: impl FnOnce(),
) -> io::Result<()> {
    if batch.has(Fault::WrittenBeforeWrite) {
        written();
    }
    batch.write()?;
    written();
    if batch.has(Fault::ConfirmBeforeSync) {
        release();
        return batch.sync();
    }
    batch.sync()?;
    release();
    Ok(())
}

/// Computes [`Committer::room_for_moves`] from the ready files, free space, the `room` in the
/// active file and the bytes queued ahead.
fn room_for_moves(file_bytes: usize, (ready, free_bytes): (usize, u64), room: usize, queued: usize) -> usize {
    let more_files = free_bytes / file_bytes as u64;
    let may_begin = ready >= SHORT_FILES_MAX || ready as u64 + more_files >= MOVE_FILES_MIN;
    // The last file is reserved.
    let may_go_on = ready > 0 || more_files >= MOVE_FILES_MIN - 1;
    let here = if may_go_on { room.saturating_sub(queued) } else { 0 };
    let next = (file_bytes - BLOCK_BYTES).saturating_sub(queued.saturating_sub(room));
    let bytes = if may_begin { here.max(next) } else { here };
    // Subtract the padding of batches.
    bytes.saturating_sub(2 * BLOCK_BYTES)
}

#[cfg(test)]
mod tests;
