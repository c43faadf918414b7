//! The waits of a run's threads, as the scheduler sees them, and the jobs of the store's threads.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

use imori_core::confirm::Lsn;
use imori_server::Job;

use super::lock::Lock;

/// How many threads of the store know the broker: the checkpointer, one that writes pages, one that reads them.
pub(crate) const STORE_THREADS: usize = 3;

/// The state of a thread, for the scheduler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Status {
    /// The thread goes on when it has work.
    Idle,
    /// The thread can go on.
    Ready,
    /// The thread waits for a lock.
    Waiting(Lock),
    /// The thread met a violation and never goes on.
    Failed,
    /// The thread has ended, as the broker ends.
    Over,
}

/// The states of the store's threads.
#[derive(Debug)]
pub(crate) struct StoreThreads {
    threads: [ThreadState; STORE_THREADS],
    /// The journal went so far when the checkpointer looked last.
    pub(crate) kept: Cell<Lsn>,
    /// So many pages would have gone after that.
    pub(crate) spared: Cell<usize>,
}

/// One of them.
#[derive(Debug)]
pub(crate) struct ThreadState {
    pub(crate) status: Cell<Status>,
    pub(crate) waits: Cell<Wait>,
}

/// The event that a thread of the store waits for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Wait {
    /// A reason for another round.
    Round,
    /// Pages to write.
    Writing,
    /// Pages to read.
    Reading,
    /// The end of the turn that this cell was in at this count.
    Passed(usize, u64),
    /// The journal is durable up to here.
    Synced(Lsn),
    /// The journal is durable up to here; the thread gives up at some time.
    Records(Lsn),
}

/// Page jobs that nobody has begun.
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
    /// The thread of this number.
    pub(crate) fn thread(&self, number: usize) -> &ThreadState {
        self.threads.get(number).expect("they are numbered from 0")
    }
}

impl Jobs {
    /// Has pages written, or given up.
    pub(crate) fn write(&self, job: Job) {
        self.writing.borrow_mut().push_back(job);
    }

    /// Has pages read.
    pub(crate) fn read(&self, job: Job) {
        self.reading.borrow_mut().push_back(job);
    }
}
