//! Low-priority threads that compute handshakes for the cells.
//!
//! A signature costs as much CPU time as about a hundred messages, and strangers can cause any number of them. The
//! low priority lets cells run first, so that handshakes delay no message.

use std::fmt;
use std::io;
use std::net::IpAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{Builder, available_parallelism};

use rustix::process::nice;
use tracing::{debug, error, warn};

use super::fair_queue::FairQueue;
use super::step::Step;
use crate::limits::{HANDSHAKER_IDLE_MAX, HANDSHAKES_WAITING_MAX, LOGIN_NICENESS};
use crate::slots::unpoisoned;

/// The threads and their queue of handshake steps. A thread starts with the first step that needs it, and ends after
/// some idle time.
pub(crate) struct Handshakers(Arc<Queue>);

struct Queue {
    /// Held only to push or pop a step. While a cell waits for this lock, its core is free for the thread that holds
    /// it.
    state: Mutex<State>,
    has_more: Condvar,
    threads_max: usize,
}

struct State {
    waiting: FairQueue<Step>,
    threads: usize,
    idle: usize,
    is_closed: bool,
}

impl fmt::Debug for Handshakers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handshakers").finish_non_exhaustive()
    }
}

impl Handshakers {
    /// Creates the queue without threads; there may be one thread for every two cores.
    pub(crate) fn new() -> Handshakers {
        let state =
            State { waiting: FairQueue::new(HANDSHAKES_WAITING_MAX), threads: 0, idle: 0, is_closed: false };
        let threads_max = available_parallelism().map_or(1, |cores| cores.get().div_ceil(2));
        Handshakers(Arc::new(Queue { state: Mutex::new(state), has_more: Condvar::new(), threads_max }))
    }

    /// Queues a step. If too many wait, one is dropped, and its connection learns of that from its closed channel.
    pub(super) fn submit(&self, source: IpAddr, step: Step) {
        match self.0.enqueue(source, step) {
            Ok(gave_way) => drop(gave_way),
            Err((error, step)) => {
                warn!(%error, "no thread can be started for handshakes, so that a cell does one");
                step.run();
            }
        }
    }

    /// Ends the threads and drops the waiting steps.
    pub(crate) fn close(&self) {
        let mut state = unpoisoned(self.0.state.lock());
        state.is_closed = true;
        state.waiting.clear();
        self.0.has_more.notify_all();
    }
}

impl Queue {
    /// Queues a step; returns the one that had to give way.
    fn enqueue(self: &Arc<Queue>, source: IpAddr, step: Step) -> Result<Option<Step>, (io::Error, Step)> {
        let mut state = unpoisoned(self.state.lock());
        if state.is_closed {
            return Ok(Some(step));
        }
        if state.idle <= state.waiting.len() && state.threads < self.threads_max {
            let queue = Arc::clone(self);
            match Builder::new().name(String::from("handshaker")).spawn(move || queue.run()) {
                Ok(_) => state.threads += 1,
                Err(error) if state.threads == 0 => return Err((error, step)),
                // An existing thread will take the step.
                Err(_) => {}
            }
        }
        let gave_way = state.waiting.push(source, step);
        self.has_more.notify_one();
        Ok(gave_way)
    }

    /// Runs steps until idle for a while.
    fn run(&self) {
        if let Err(error) = nice(LOGIN_NICENESS) {
            debug!(%error, "a thread for handshakes keeps the priority of cells");
        }
        while let Some(step) = self.next() {
            if !step.is_awaited() {
                continue;
            }
            // A panic in one handshake ends its connection; the other handshakes go on.
            if catch_unwind(AssertUnwindSafe(|| step.run())).is_err() {
                error!("a fault ended a handshake of TLS; see the panic before");
            }
        }
    }

    /// Waits for a step; `None` if the thread has to end and has been uncounted.
    fn next(&self) -> Option<Step> {
        let mut state = unpoisoned(self.state.lock());
        loop {
            if state.is_closed {
                state.threads -= 1;
                return None;
            }
            if let Some(step) = state.waiting.pop() {
                return Some(step);
            }
            state.idle += 1;
            let waited = self.has_more.wait_timeout(state, HANDSHAKER_IDLE_MAX);
            let (woken, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
            state = woken;
            state.idle -= 1;
            if timeout.timed_out() && state.waiting.len() == 0 {
                state.threads -= 1;
                return None;
            }
        }
    }
}
