//! The threads of a journal: one that commits, and one that keeps files ready.
//!
//! The committer takes everything queued, writes it by one call, syncs once and releases it. There is
//! no timer: what comes meanwhile is the next batch. After a failed write or sync nothing is ever
//! released again and that file is not synced again; whoever listens ends the process.

use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;

use crate::disk::{Disk, DiskFile};
use crate::journal::{AppendError, Batch, Journal, NewRecord, Take};
use crate::lsn::{Lsn, LsnRange};
use crate::open::Opened;
use crate::pool::Pool;

/// Who is told what became of records; called on the store's threads, and does not block them.
pub trait Listener: Send + Sync + 'static {
    /// All records up to this one are durable.
    fn released(&self, through: Lsn);

    /// The disk failed: what was not released will never be. Comes once.
    fn poisoned(&self, cause: &io::Error);
}

/// A journal with its threads.
pub struct Committer<D: Disk> {
    shared: Arc<Shared<D>>,
    threads: Vec<JoinHandle<()>>,
}

struct Shared<D: Disk> {
    disk: D,
    listener: Box<dyn Listener>,
    state: Mutex<State<D::File>>,
    /// Something is queued, a file is ready, or it ends.
    work: Condvar,
    /// A file is free, one was taken, or it ends.
    room: Condvar,
}

struct State<F> {
    journal: Journal<F>,
    pool: Pool<F>,
    /// The committer waits for `work`, and is not merely on its way to it.
    is_waiting: bool,
    is_ending: bool,
    /// All is committed that ever will be, and no file is needed any more.
    is_committed: bool,
    is_poisoned: bool,
}

impl<D: Disk> Committer<D> {
    /// Starts the threads of a journal.
    pub fn start(disk: D, opened: Opened<D::File>, listener: Box<dyn Listener>) -> io::Result<Committer<D>> {
        let Opened { journal, pool, .. } = opened;
        let (is_waiting, is_ending, is_committed, is_poisoned) = (false, false, false, false);
        let state = State { journal, pool, is_waiting, is_ending, is_committed, is_poisoned };
        let (work, room) = (Condvar::new(), Condvar::new());
        let shared = Arc::new(Shared { disk, listener, state: Mutex::new(state), work, room });
        let mut committer = Committer { shared, threads: Vec::new() };
        committer.spawn("journal", Shared::commit)?;
        committer.spawn("journal-pool", Shared::fill)?;
        Ok(committer)
    }

    fn spawn(&mut self, name: &str, run: fn(&Shared<D>)) -> io::Result<()> {
        let (shared, builder) = (self.shared.clone(), std::thread::Builder::new());
        self.threads.push(builder.name(name.to_string()).spawn(move || run(&shared))?);
        Ok(())
    }

    /// Queues records, each for itself.
    pub fn append(&self, records: &[NewRecord]) -> Result<LsnRange, AppendError> {
        self.shared.append(|journal| journal.append(records))
    }

    /// Queues records of which after a crash all are there or none.
    pub fn append_group(&self, records: &[NewRecord]) -> Result<LsnRange, AppendError> {
        self.shared.append(|journal| journal.append_group(records))
    }
}

/// Commits what is queued and ends the threads.
impl<D: Disk> Drop for Committer<D> {
    fn drop(&mut self) {
        self.shared.lock().is_ending = true;
        self.shared.work.notify_all();
        self.shared.room.notify_all();
        for thread in self.threads.drain(..) {
            // A thread that panicked has nothing left to say.
            let _ = thread.join();
        }
    }
}

impl<D: Disk> Shared<D> {
    fn lock(&self) -> MutexGuard<'_, State<D::File>> {
        self.state.lock().expect("nothing panics while it holds the state")
    }

    fn append(
        &self,
        append: impl FnOnce(&mut Journal<D::File>) -> Result<LsnRange, AppendError>,
    ) -> Result<LsnRange, AppendError> {
        let mut state = self.lock();
        let appended = append(&mut state.journal);
        let is_waiting = state.is_waiting;
        drop(state);
        if is_waiting {
            self.work.notify_one();
        }
        appended
    }

    /// The committer's thread.
    fn commit(&self) {
        let mut buffer = Vec::new();
        while let Some(batch) = self.next_batch() {
            if let Err(error) = commit(&batch, &mut buffer, || self.written(), || self.release()) {
                return self.poison(&error);
            }
        }
        self.lock().is_committed = true;
        self.room.notify_one();
    }

    fn next_batch(&self) -> Option<Batch<D::File>> {
        let mut guard = self.lock();
        loop {
            let State { journal, pool, is_ending, is_poisoned, .. } = &mut *guard;
            if *is_poisoned {
                return None;
            }
            match journal.take_batch(pool) {
                Take::Batch(batch) => {
                    self.room.notify_one();
                    return Some(batch);
                }
                Take::Nothing if *is_ending => return None,
                Take::Nothing | Take::NeedsFile => {}
            }
            guard.is_waiting = true;
            guard = self.work.wait(guard).expect("nothing panics while it holds the state");
            guard.is_waiting = false;
        }
    }

    fn written(&self) {
        self.lock().journal.batch_written();
    }

    fn release(&self) {
        let mut state = self.lock();
        let Some(released) = state.journal.batch_synced() else { return };
        let has_freed = !released.freed.is_empty();
        released.freed.into_iter().for_each(|file| state.pool.free(file));
        drop(state);
        if has_freed {
            self.room.notify_one();
        }
        self.listener.released(released.through);
    }

    /// The thread that makes files ready.
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
            let made = match job.run(&self.disk) {
                Ok(made) => made,
                Err(error) => return self.poison(&error),
            };
            guard = self.lock();
            guard.pool.done(made);
            self.work.notify_one();
        }
    }

    fn poison(&self, error: &io::Error) {
        let mut state = self.lock();
        let is_first = !state.is_poisoned;
        state.is_poisoned = true;
        state.journal.poison();
        drop(state);
        self.work.notify_all();
        self.room.notify_all();
        if is_first {
            self.listener.poisoned(error);
        }
    }
}

/// One batch: written, synced, released, in this order.
pub(crate) fn commit<F: DiskFile>(
    batch: &Batch<F>,
    buffer: &mut Vec<u8>,
    written: impl FnOnce(),
    release: impl FnOnce(),
) -> io::Result<()> {
    batch.write(buffer)?;
    written();
    if batch.is_early() {
        release();
        return batch.sync();
    }
    batch.sync()?;
    release();
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Sender, channel};

    use bytes::Bytes;

    use super::*;
    use crate::crash::settings;
    use crate::open;
    use crate::record::RecordType;
    use crate::recover;
    use crate::sim_disk::{Call, EIO, ENOSPC, Random, SimDisk, Trouble};

    #[derive(Debug, PartialEq, Eq)]
    enum Told {
        Released(u64),
        Poisoned(Option<i32>),
    }

    struct Teller(Sender<Told>);

    impl Listener for Teller {
        fn released(&self, through: Lsn) {
            let _ = self.0.send(Told::Released(through.0));
        }

        fn poisoned(&self, cause: &io::Error) {
            let _ = self.0.send(Told::Poisoned(cause.raw_os_error()));
        }
    }

    fn message(len: usize) -> NewRecord {
        NewRecord { kind: RecordType::Message, payload: Bytes::from(vec![7; len]) }
    }

    fn start(disk: &SimDisk) -> (Committer<SimDisk>, std::sync::mpsc::Receiver<Told>) {
        let opened = open::open(disk, &settings(None)).expect("the disk is well");
        let (sender, told) = channel();
        let committer = Committer::start(disk.clone(), opened, Box::new(Teller(sender)));
        (committer.expect("a thread can be made"), told)
    }

    #[test]
    fn what_is_released_survives_a_crash() {
        let disk = SimDisk::default();
        let (committer, told) = start(&disk);
        let mut released = 0;
        for number in 1..=200u64 {
            let range = committer.append(&[message(number as usize * 7)]).expect("there is room");
            assert_eq!(range, LsnRange::one(Lsn(number)));
            if number % 3 == 0 {
                match told.recv().expect("it answers") {
                    Told::Released(through) => released = released.max(through),
                    Told::Poisoned(_) => panic!("the disk is well"),
                }
            }
        }
        let state = disk.state();
        drop(committer);
        for seed in 0..20 {
            let crashed = SimDisk::new(state.crash(&mut Random(seed)));
            let recovered = recover::recover(&crashed, &settings(None)).expect("it can be read");
            let lsns: Vec<u64> = recovered.records.iter().map(|record| record.lsn.0).collect();
            assert!(lsns.len() as u64 >= released, "{} of {released}", lsns.len());
            assert!(recovered.report.damaged.is_empty(), "{}", recovered.report);
        }
    }

    #[test]
    fn what_is_queued_at_the_end_is_committed() {
        let disk = SimDisk::default();
        let (committer, told) = start(&disk);
        for _ in 0..50 {
            committer.append_group(&[message(100), message(200)]).expect("there is room");
        }
        drop(committer);
        assert_eq!(told.iter().last(), Some(Told::Released(200)));
    }

    #[test]
    fn after_a_failure_nothing_is_released_and_nothing_synced() {
        for (call, trouble, code) in [
            (Call::Sync, EIO, EIO),
            (Call::Write, EIO, EIO),
            (Call::Write, ENOSPC, ENOSPC),
            (Call::Sync, 30, 30),
        ] {
            let disk = SimDisk::default();
            let opened = open::open(&disk, &settings(None)).expect("the disk is well");
            let Opened { journal, mut pool, recovered } = opened;
            while let Some(job) = pool.next_job() {
                pool.done(job.run(&disk).expect("the disk is well"));
            }
            let (sender, told) = channel();
            disk.trouble(call, 0, Trouble::Error(trouble));
            let opened = Opened { journal, pool, recovered };
            let committer = Committer::start(disk.clone(), opened, Box::new(Teller(sender)));
            let committer = committer.expect("a thread can be made");
            committer.append(&[message(10)]).expect("nothing has failed yet");
            assert_eq!(told.recv(), Ok(Told::Poisoned(Some(code))));
            let calls = disk.trace().len();
            assert_eq!(committer.append(&[message(10)]), Err(AppendError::Poisoned));
            drop(committer);
            assert_eq!((disk.trace().len(), told.iter().next()), (calls, None), "{call:?} {trouble}");
        }
    }
}
