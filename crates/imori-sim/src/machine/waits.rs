//! What the threads of a run wait for, as the scheduler sees it, and the jobs of those of the store.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

use imori_core::confirm::Lsn;
use imori_server::Job;

use super::lock::Lock;

/// How many threads of the store know the broker: the checkpointer, one that writes pages, one that reads them.
pub(crate) const STORE_THREADS: usize = 3;

/// What a thread is doing, for the scheduler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Status {
    /// It goes on when it has work.
    Idle,
    /// It can go on.
    Ready,
    /// It waits for a lock.
    Waiting(Lock),
    /// It met a violation and never goes on.
    Failed,
    /// It has ended, as the broker ends.
    Over,
}

/// What the threads do, and wait for.
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

/// What a thread of the store waits for.
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
    /// The same, but not for ever.
    Records(Lsn),
}

/// What queues asked for and nobody has begun.
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
