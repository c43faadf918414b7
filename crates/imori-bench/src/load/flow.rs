//! How many messages are on their way, and how many more may be sent.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What publishers and consumers tell each other, also across threads.
#[derive(Debug)]
pub(crate) struct Flow {
    /// Messages handed to the sockets.
    pub(crate) published: AtomicU64,
    /// Deliveries that are over: arrived, or overtaken by a later one.
    pub(crate) passed: AtomicU64,
    /// Deliveries of one message.
    pub(crate) fan_out: u64,
    /// Messages that may be on their way.
    pub(crate) window: u64,
    /// What the publishers may send.
    phase: Mutex<Phase>,
    /// Set by a publisher that the window has stopped and that waits to be woken.
    pub(crate) is_waiting: AtomicBool,
}

/// What the publishers may send now.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Phase {
    pub(crate) number: u64,
    /// Messages of each publisher in this phase.
    pub(crate) share: u64,
}

impl Flow {
    /// Nothing to send yet.
    pub(crate) fn new(fan_out: u64, window: u64) -> Flow {
        Flow {
            published: AtomicU64::new(0),
            passed: AtomicU64::new(0),
            fan_out,
            window,
            phase: Mutex::new(Phase::default()),
            is_waiting: AtomicBool::new(false),
        }
    }

    /// Lets each publisher send so many more.
    pub(crate) fn begin(&self, share: u64) {
        let mut phase = self.phase();
        *phase = Phase { number: phase.number + 1, share };
    }

    /// Lets no publisher send any more; when this returns, `published` is final.
    pub(crate) fn stop(&self) {
        self.phase().share = 0;
    }

    /// A publisher holds it while it sends.
    pub(crate) fn phase(&self) -> MutexGuard<'_, Phase> {
        self.phase.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Messages that may be sent now.
    pub(crate) fn room(&self) -> u64 {
        let passed = self.passed.load(Ordering::SeqCst) / self.fan_out;
        let under_way = self.published.load(Ordering::SeqCst).saturating_sub(passed);
        self.window.saturating_sub(under_way)
    }

    /// Whether a publisher waits and the window is open far enough to wake it; says so once.
    pub(crate) fn takes_waiting(&self) -> bool {
        self.is_waiting.load(Ordering::SeqCst)
            && self.room() >= self.window / 4
            && self.is_waiting.swap(false, Ordering::SeqCst)
    }

    /// Deliveries that are due for what was published so far.
    pub(crate) fn due(&self) -> u64 {
        self.published.load(Ordering::SeqCst).saturating_mul(self.fan_out)
    }
}
