//! How much memory the messages that wait take, and how many queues have too much of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A count of bytes that many share. What it says may be a moment old.
#[derive(Debug, Default, Clone)]
pub struct Gauge(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    bytes: AtomicUsize,
    throttling: Apart,
}

/// Queues that have their publishers wait. Every publish looks at it, and nearly nobody changes it: it is not to go
/// from cell to cell with the bytes, which everybody changes.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Apart(AtomicUsize);

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
        self.0.throttling.0.load(Ordering::Relaxed)
    }

    /// Notes that a queue has its publishers wait from now on, or not any more.
    pub(crate) fn note_throttle(&self, is_on: bool) {
        let count = &self.0.throttling.0;
        if is_on {
            count.fetch_add(1, Ordering::Relaxed)
        } else {
            count.fetch_sub(1, Ordering::Relaxed)
        };
    }
}
