//! Latency histograms of a cell.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use imori_core::world::Latency;

/// Upper bounds of the buckets, in microseconds; longer times fall into one more bucket.
pub const BOUNDS_US: [u64; 18] = [
    100,
    250,
    500,
    1_000,
    2_500,
    5_000,
    10_000,
    25_000,
    50_000,
    100_000,
    250_000,
    1_000_000,
    3_000_000,
    10_000_000,
    60_000_000,
    600_000_000,
    3_600_000_000,
    86_400_000_000,
];

/// A latency histogram; only its cell's thread writes it.
#[derive(Debug, Default)]
struct Histogram {
    classes: [AtomicU64; BOUNDS_US.len() + 1],
    sum_us: AtomicU64,
}

/// The histograms of one cell.
#[derive(Debug, Default)]
pub(crate) struct Latencies([Histogram; Latency::ALL.len()]);

impl Latencies {
    /// Adds a measurement.
    pub(crate) fn count(&self, latency: Latency, took: Duration) {
        if let Some(histogram) = self.0.get(latency as usize) {
            histogram.count(took);
        }
    }

    /// Adds the histogram of `latency` to `times`.
    pub(crate) fn add_to(&self, latency: Latency, times: &mut Times) {
        if let Some(histogram) = self.0.get(latency as usize) {
            histogram.add_to(times);
        }
    }
}

/// Sum of histograms.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Times {
    /// Measurements per bucket.
    pub classes: [u64; BOUNDS_US.len() + 1],
    /// Total time.
    pub sum: Duration,
}

impl Histogram {
    /// Adds a measurement.
    fn count(&self, took: Duration) {
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let class = BOUNDS_US.partition_point(|bound| *bound < micros);
        if let Some(class) = self.classes.get(class) {
            class.store(class.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        }
        self.sum_us.store(self.sum_us.load(Ordering::Relaxed).saturating_add(micros), Ordering::Relaxed);
    }

    /// Adds this histogram to `times`.
    fn add_to(&self, times: &mut Times) {
        for (sum, class) in times.classes.iter_mut().zip(&self.classes) {
            *sum += class.load(Ordering::Relaxed);
        }
        times.sum += Duration::from_micros(self.sum_us.load(Ordering::Relaxed));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_fall_into_classes() {
        let (histogram, mut times) = (Histogram::default(), Times::default());
        for micros in [0, 100, 101, 1_000_000, 86_400_000_001] {
            histogram.count(Duration::from_micros(micros));
        }
        histogram.add_to(&mut times);
        let last = times.classes.len() - 1;
        assert_eq!(
            (times.classes[0], times.classes[1], times.classes[11], times.classes[last]),
            (2, 1, 1, 1)
        );
        assert_eq!(times.sum, Duration::from_micros(86_401_000_202));
    }
}
