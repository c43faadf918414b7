//! The memory gauge of waiting messages, and the counters by which a publish decides whether it
//! must look at throttling queues, rate limits or full vhosts.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A shared gauge of bytes. Its readings may be slightly outdated.
#[derive(Debug, Default, Clone)]
pub struct Gauge(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    bytes: AtomicUsize,
    apart: Apart,
}

/// Counters that every publish reads and that rarely change. They have a cache line apart from the
/// byte count, which all cells change.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Apart {
    /// Queues that throttle their publishers.
    throttling: AtomicUsize,
    /// Users and vhosts with a rate limit for publishing.
    rates: AtomicUsize,
    /// Vhosts that have reached their limit of bytes.
    full: AtomicUsize,
}

impl Gauge {
    /// Charges `bytes`.
    pub fn add(&self, bytes: usize) {
        self.0.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Releases `bytes` that were charged before.
    pub fn sub(&self, bytes: usize) {
        self.0.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// The number of bytes charged.
    pub fn bytes(&self) -> usize {
        self.0.bytes.load(Ordering::Relaxed)
    }

    /// The number of queues that throttle their publishers.
    pub fn throttling(&self) -> usize {
        self.0.apart.throttling.load(Ordering::Relaxed)
    }

    /// The number of users and vhosts with a rate limit for publishing.
    pub fn rates(&self) -> usize {
        self.0.apart.rates.load(Ordering::Relaxed)
    }

    /// Sets the number of users and vhosts with a rate limit.
    pub fn note_rates(&self, count: usize) {
        self.0.apart.rates.store(count, Ordering::Relaxed);
    }

    /// Whether a publish may have to wait for a queue or a rate, so that a closer look is needed.
    #[inline]
    pub fn may_have_to_wait(&self) -> bool {
        self.throttling() + self.rates() > 0
    }

    /// The number of vhosts that have reached their limit of bytes.
    pub fn full_vhosts(&self) -> usize {
        self.0.apart.full.load(Ordering::Relaxed)
    }

    /// Sets the number of vhosts that have reached their limit of bytes.
    pub fn note_full_vhosts(&self, count: usize) {
        self.0.apart.full.store(count, Ordering::Relaxed);
    }

    /// Notes that a queue starts or stops throttling its publishers.
    pub(crate) fn note_throttle(&self, is_on: bool) {
        let count = &self.0.apart.throttling;
        if is_on {
            count.fetch_add(1, Ordering::Relaxed)
        } else {
            count.fetch_sub(1, Ordering::Relaxed)
        };
    }
}
