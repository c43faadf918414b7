//! The threads of the store that know the broker: the keeper, and those that write and read pages.
//!
//! They run the server's own rounds and jobs, and the scheduler decides at each lock and between the steps of each
//! segment who goes on.

use std::cell::RefCell;
use std::collections::VecDeque;

use corosensei::Yielder;
use imori_server::{Job, do_job, keep_once};

use crate::lock::Lock;
use crate::shared::Shared;
use crate::strand::{Held, Strand};
use crate::waits::{Status, Wait};

/// A thread of the store while it runs.
pub(crate) struct StoreThread<'a> {
    pub(crate) shared: &'a Shared,
    strand: Strand<'a>,
    /// Which of them it is.
    number: usize,
}

impl Shared {
    /// Tells whether what a thread of the store waits for is there.
    pub(crate) fn is_store_due(&self, number: usize) -> bool {
        let log = self.log.borrow();
        match self.threads.thread(number).waits.get() {
            Wait::Round => {
                let is_short = self.paging.is_space_low || log.is_stalled();
                let files_max = if is_short { 1 } else { self.keeper.files_max };
                let is_full = log.live_files() > files_max && log.last() > self.threads.kept.get();
                let is_worth_it = is_short && self.keeper.spared() > 0;
                !log.has_failed && (is_full || is_worth_it)
            }
            Wait::Writing => !self.jobs.writing.borrow().is_empty(),
            Wait::Reading => !self.jobs.reading.borrow().is_empty(),
            Wait::Passed(cell, count) => self.cell(cell).turns.has_passed(count),
            Wait::Synced(lsn) => log.progress.synced >= lsn || log.has_failed,
        }
    }
}

impl<'a> StoreThread<'a> {
    pub(crate) fn new(number: usize, shared: &'a Shared, yielder: &'a Yielder<(), ()>) -> StoreThread<'a> {
        let strand = Strand::new(shared.cells.len() + number, shared, yielder);
        StoreThread { shared, strand, number }
    }

    /// Runs the thread; it never returns, the run ends it.
    pub(crate) fn run(&self) {
        let jobs = &self.shared.jobs;
        let mut spills_again = self.shared.clock.get();
        loop {
            match self.number {
                0 => {
                    self.wait(Wait::Round);
                    self.shared.trace.note(&[], || String::from("the keeper begins a round"));
                    keep_once(self, &mut spills_again);
                    self.shared.threads.kept.set(self.shared.log.borrow().last());
                }
                1 => self.work(Wait::Writing, &jobs.writing),
                _ => self.work(Wait::Reading, &jobs.reading),
            }
        }
    }

    fn work(&self, wait: Wait, jobs: &RefCell<VecDeque<Job>>) {
        self.wait(wait);
        let job = jobs.borrow_mut().pop_front();
        if let Some(job) = job {
            do_job(self, job);
        }
    }

    /// Waits until this is so.
    pub(crate) fn wait(&self, wait: Wait) {
        self.shared.threads.thread(self.number).waits.set(wait);
        while !self.shared.is_store_due(self.number) {
            self.strand.stop(Status::Idle);
        }
    }

    /// Lets others go first, or not.
    pub(crate) fn pause(&self) {
        self.strand.pause();
    }

    /// Takes the lock of a queue.
    pub(crate) fn lock_queue(&self, slot: u32) -> Held<'a> {
        self.strand.lock(Lock::Queue(slot))
    }
}
