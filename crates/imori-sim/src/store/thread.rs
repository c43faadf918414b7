//! The store threads that call into the broker: the checkpointer, a page writer and a page reader.
//!
//! They run the server's own rounds and jobs. At each lock, and between the steps of a segment, the
//! scheduler decides which thread continues.

use std::cell::RefCell;
use std::collections::VecDeque;

use corosensei::Yielder;
use imori_server::{Job, Pauses, checkpoint_last, checkpoint_once, do_job};

use crate::broker_end::Phase;
use crate::machine::Lock;
use crate::machine::Shared;
use crate::machine::{CoroutineContext, Held};
use crate::machine::{Status, Wait};
use crate::planted::Bug;

/// A running store thread.
pub(crate) struct StoreThread<'a> {
    pub(crate) shared: &'a Shared,
    context: CoroutineContext<'a>,
    /// Its number among the store's threads.
    number: usize,
}

impl Shared {
    /// Whether the event that a store thread waits for has happened.
    pub(crate) fn is_store_due(&self, number: usize) -> bool {
        let (log, phase) = (self.log.borrow(), self.phase.get());
        match self.threads.thread(number).waits.get() {
            Wait::Round => {
                let is_short = self.paging.is_space_low || log.is_space_low || log.is_stalled();
                let files_max = if is_short { 1 } else { self.checkpointer.files_max };
                let is_full = log.live_files() > files_max && log.last() > self.threads.kept.get();
                let is_worth_it = is_short && self.checkpointer.spared() > self.threads.spared.get();
                !log.has_failed && (is_full || is_worth_it) || phase == Phase::Keeping
            }
            Wait::Writing => !self.jobs.writing.borrow().is_empty() || phase >= Phase::Closing,
            Wait::Reading => !self.jobs.reading.borrow().is_empty() || phase >= Phase::Closing,
            Wait::Passed(cell, count) => self.cell(cell).turns.has_passed(count),
            Wait::Synced(lsn) => log.progress.synced >= lsn || log.has_failed,
            // While the broker closes, the page threads do not wait for records that may never
            // become durable.
            Wait::Records(lsn) => {
                let is_over = log.has_failed || number > 0 && phase == Phase::Closing;
                log.progress.synced >= lsn || is_over || self.gives_up.get()
            }
        }
    }
}

impl<'a> StoreThread<'a> {
    pub(crate) fn new(number: usize, shared: &'a Shared, yielder: &'a Yielder<(), ()>) -> StoreThread<'a> {
        let context = CoroutineContext::new(shared.cells.len() + number, shared, yielder);
        StoreThread { shared, context, number }
    }

    /// Runs the thread. Never returns; the run drops the coroutine.
    pub(crate) fn run(&self) {
        let jobs = &self.shared.jobs;
        let mut pauses = Pauses::default();
        loop {
            match self.number {
                0 => {
                    self.wait(Wait::Round);
                    if self.shared.phase.get() == Phase::Keeping {
                        break;
                    }
                    self.shared.trace.note(&[], || String::from("the checkpointer begins a round"));
                    checkpoint_once(self, &mut pauses);
                    self.shared.threads.kept.set(self.shared.log.borrow().last());
                    // Until a refused checkpoint is retried, the pages that it would free stay.
                    self.shared.threads.spared.set(self.shared.checkpointer.spared());
                }
                1 if self.work(Wait::Writing, &jobs.writing) => {}
                2 if self.work(Wait::Reading, &jobs.reading) => {}
                _ => break,
            }
        }
        if self.number == 0 && !self.shared.has(Bug::CleanWithoutCheckpoint) {
            self.shared.trace.note(&[], || String::from("the checkpointer makes its last checkpoint"));
            checkpoint_last(self);
        }
        loop {
            self.context.stop(Status::Over);
        }
    }

    /// Does the next job; false if none is left.
    fn work(&self, wait: Wait, jobs: &RefCell<VecDeque<Job>>) -> bool {
        self.wait(wait);
        let job = jobs.borrow_mut().pop_front();
        job.map(|job| do_job(self, job)).is_some()
    }

    /// Waits for an event.
    pub(crate) fn wait(&self, wait: Wait) {
        self.shared.threads.thread(self.number).waits.set(wait);
        while !self.shared.is_store_due(self.number) {
            self.context.stop(Status::Idle);
        }
    }

    /// Yields at random, so that others may run first.
    pub(crate) fn pause(&self) {
        self.context.pause();
    }

    /// Locks a queue.
    pub(crate) fn lock_queue(&self, slot: u32) -> Held<'a> {
        self.context.lock(Lock::Queue(slot))
    }
}
