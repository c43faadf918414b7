//! Sorted measurements of time.

use std::time::Duration;

/// A series of measured times.
pub(crate) struct Figures {
    micros: Vec<u32>,
}

impl Figures {
    /// Sorts the times; there must be at least one.
    pub(crate) fn new(times: &[Duration]) -> Figures {
        let micros = times.iter().map(|time| u32::try_from(time.as_micros()).unwrap_or(u32::MAX));
        let mut micros: Vec<u32> = micros.collect();
        micros.sort_unstable();
        Figures { micros }
    }

    /// The quantile `share` of the times, in microseconds.
    pub(crate) fn at(&self, share: f64) -> i64 {
        let last = self.micros.len().saturating_sub(1);
        let index = (share * last as f64) as usize;
        self.micros.get(index).copied().map_or(0, i64::from)
    }

    pub(crate) fn mean_seconds(&self) -> f64 {
        let sum: u64 = self.micros.iter().map(|micros| u64::from(*micros)).sum();
        sum as f64 / 1e6 / self.micros.len().max(1) as f64
    }
}
