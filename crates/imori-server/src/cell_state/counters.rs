//! Event counters of a cell.

use std::sync::atomic::{AtomicU64, Ordering};

use imori_core::world::Counter;

/// A cell's counters; only its own thread writes them.
#[derive(Debug, Default)]
pub(crate) struct Counters([AtomicU64; Counter::ALL.len()]);

impl Counters {
    /// Adds `times` to a counter.
    pub(crate) fn count(&self, counter: Counter, times: u64) {
        if let Some(counter) = self.0.get(counter as usize) {
            counter.store(counter.load(Ordering::Relaxed) + times, Ordering::Relaxed);
        }
    }

    /// Current value of a counter.
    pub(crate) fn get(&self, counter: Counter) -> u64 {
        self.0.get(counter as usize).map_or(0, |counter| counter.load(Ordering::Relaxed))
    }
}
