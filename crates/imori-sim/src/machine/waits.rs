//! The states of threads, as the scheduler sees them, and the jobs of the store's threads.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

use imori_core::confirm::Lsn;
use imori_server::Job;

use super::lock::Lock;

/// The store threads that call into the broker: the checkpointer, a page writer, a page reader.
pub(crate) const STORE_THREADS: usize = 3;

/// The state of a thread, for the scheduler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Status {
    /// The thread continues when it has work.
    Idle,
    /// The thread can continue.
    Ready,
    /// The thread waits for a lock.
    Waiting(Lock),
    /// The thread found a violation and never continues.
    Failed,
    /// The thread has ended, because the broker ends.
    Over,
}

/// The states of the store's threads.
#[derive(Debug)]
pub(crate) struct StoreThreads {
    threads: [ThreadState; STORE_THREADS],
    /// The journal's position at the checkpointer's last look.
    pub(crate) kept: Cell<Lsn>,
    /// Number of pages that a checkpoint could have freed after that look.
    pub(crate) spared: Cell<usize>,
}

/// The state of one thread.
#[derive(Debug)]
pub(crate) struct ThreadState {
    pub(crate) status: Cell<Status>,
    pub(crate) waits: Cell<Wait>,
}

/// The event that a store thread waits for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Wait {
    /// A reason for another round of the checkpointer.
    Round,
    /// Pages to write.
    Writing,
    /// Pages to read.
    Reading,
    /// The end of the turn with this count in this cell.
    Passed(usize, u64),
    /// The journal is durable up to this record.
    Synced(Lsn),
    /// The journal is durable up to this record, or the thread gives up.
    Records(Lsn),
}

/// Page jobs that no thread has begun.
#[derive(Debug, Default)]
pub(crate) struct Jobs {
    pub(crate) writing: RefCell<VecDeque<Job>>,
    pub(crate) reading: RefCell<VecDeque<Job>>,
}

impl Default for StoreThreads {
    fn default() -> StoreThreads {
        let threads = [Wait::Round, Wait::Writing, Wait::Reading];
        let threads =
            threads.map(|waits| ThreadState { status: Cell::new(Status::Idle), waits: Cell::new(waits) });
        StoreThreads { threads, kept: Cell::new(Lsn::NONE), spared: Cell::new(0) }
    }
}

impl StoreThreads {
    /// The thread with this number.
    pub(crate) fn thread(&self, number: usize) -> &ThreadState {
        self.threads.get(number).expect("they are numbered from 0")
    }
}

impl Jobs {
    /// Queues a job that writes pages or gives them up.
    pub(crate) fn write(&self, job: Job) {
        self.writing.borrow_mut().push_back(job);
    }

    /// Queues a job that reads pages.
    pub(crate) fn read(&self, job: Job) {
        self.reading.borrow_mut().push_back(job);
    }
}
