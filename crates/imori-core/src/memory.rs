//! How much memory the messages that wait take, and whether publishes have to ask for more than room: how many queues
//! have too much of it, and how many limits of an operator's there are to look at.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A count of bytes that many share. What it says may be a moment old.
#[derive(Debug, Default, Clone)]
pub struct Gauge(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    bytes: AtomicUsize,
    apart: Apart,
}

/// Counts that every publish looks at and nearly nobody changes: they are not to go from cell to cell with the bytes,
/// which everybody changes.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Apart {
    /// Queues that have their publishers wait.
    throttling: AtomicUsize,
    /// Users and vhosts with a limit on how much is published a second.
    rates: AtomicUsize,
    /// Vhosts whose messages take as many bytes as they may.
    full: AtomicUsize,
}

impl Gauge {
    /// Charges `bytes`.
    pub fn add(&self, bytes: usize) {
        self.0.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Gives back `bytes` that were charged before.
    pub fn sub(&self, bytes: usize) {
        self.0.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Bytes charged now.
    pub fn bytes(&self) -> usize {
        self.0.bytes.load(Ordering::Relaxed)
    }

    /// How many queues have their publishers wait.
    pub fn throttling(&self) -> usize {
        self.0.apart.throttling.load(Ordering::Relaxed)
    }

    /// How many users and vhosts have a limit on how much is published a second.
    pub fn rates(&self) -> usize {
        self.0.apart.rates.load(Ordering::Relaxed)
    }

    /// Notes how many users and vhosts have such a limit from now on.
    pub fn note_rates(&self, count: usize) {
        self.0.apart.rates.store(count, Ordering::Relaxed);
    }

    /// Tells whether a publish may have to wait for a queue or a rate. Whether it does is asked only then.
    #[inline]
    pub fn may_have_to_wait(&self) -> bool {
        self.throttling() + self.rates() > 0
    }

    /// How many vhosts have messages of as many bytes as they may.
    pub fn full_vhosts(&self) -> usize {
        self.0.apart.full.load(Ordering::Relaxed)
    }

    /// Notes how many vhosts are so from now on.
    pub fn note_full_vhosts(&self, count: usize) {
        self.0.apart.full.store(count, Ordering::Relaxed);
    }

    /// Notes that a queue has its publishers wait from now on, or not any more.
    pub(crate) fn note_throttle(&self, is_on: bool) {
        let count = &self.0.apart.throttling;
        if is_on {
            count.fetch_add(1, Ordering::Relaxed)
        } else {
            count.fetch_sub(1, Ordering::Relaxed)
        };
    }
}
