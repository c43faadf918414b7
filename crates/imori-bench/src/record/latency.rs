//! How long operations took, and which percentiles the samples can carry.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use crate::limits::SAMPLES_ABOVE_MIN;

/// The longest time a histogram tells apart: one hour in nanoseconds.
const NANOS_MAX: u64 = 3_600_000_000_000;

/// What the times stand for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LatencyKind {
    /// Completion minus actual send, one operation in flight: what the broker took.
    Service,
    /// Completion minus actual send, many in flight: mostly the wait behind one another.
    Queueing,
}

/// Percentiles in microseconds; one with fewer than ten samples above it is absent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// What the times stand for.
    pub kind: LatencyKind,
    /// How many operations were timed.
    pub samples: u64,
    /// Median.
    pub p50_us: Option<f64>,
    /// 99 of 100 took at most this.
    pub p99_us: Option<f64>,
    /// 999 of 1000 took at most this.
    pub p999_us: Option<f64>,
    /// The longest.
    pub max_us: Option<f64>,
}

/// Collects times.
#[derive(Debug)]
pub(crate) struct Recorder {
    histogram: Histogram<u64>,
}

impl Recorder {
    /// An empty one: 1 ns to 1 h, three significant digits.
    pub(crate) fn new() -> Recorder {
        let histogram = Histogram::new_with_bounds(1, NANOS_MAX, 3)
            .expect("the bounds are constants that the crate accepts");
        Recorder { histogram }
    }

    /// Adds one time; what is longer than an hour counts as an hour.
    pub(crate) fn record(&mut self, nanos: u64) {
        self.histogram.saturating_record(nanos);
    }

    /// Adds the times of another one.
    pub(crate) fn add(&mut self, other: &Recorder) {
        self.histogram.add(&other.histogram).expect("all recorders have the same bounds");
    }

    /// Forgets everything, when the warm-up is over.
    pub(crate) fn clear(&mut self) {
        self.histogram.reset();
    }

    /// What may be said about the times.
    pub(crate) fn summary(&self, kind: LatencyKind) -> Latency {
        let samples = self.histogram.len();
        let at = |per_mille: u64| {
            is_carried(samples, per_mille)
                .then(|| micros(self.histogram.value_at_quantile(per_mille as f64 / 1_000.0)))
        };
        Latency {
            kind,
            samples,
            p50_us: at(500),
            p99_us: at(990),
            p999_us: at(999),
            max_us: (samples > 0).then(|| micros(self.histogram.max())),
        }
    }
}

/// Whether at least ten samples lie above the percentile.
fn is_carried(samples: u64, per_mille: u64) -> bool {
    let above = samples.saturating_mul(1_000u64.saturating_sub(per_mille)) / 1_000;
    above >= SAMPLES_ABOVE_MIN
}

fn micros(nanos: u64) -> f64 {
    nanos as f64 / 1_000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_needs_ten_samples_above_it() {
        for (samples, p50, p99, p999, max) in [
            (0, false, false, false, false),
            (19, false, false, false, true),
            (20, true, false, false, true),
            (999, true, false, false, true),
            (1_000, true, true, false, true),
            (9_999, true, true, false, true),
            (10_000, true, true, true, true),
        ] {
            let mut recorder = Recorder::new();
            for nanos in 1..=samples {
                recorder.record(nanos * 1_000);
            }
            let latency = recorder.summary(LatencyKind::Service);
            let printed =
                [latency.p50_us, latency.p99_us, latency.p999_us, latency.max_us].map(|p| p.is_some());
            assert_eq!(printed, [p50, p99, p999, max], "{samples} samples");
        }
    }

    #[test]
    fn times_are_kept_to_three_digits() {
        let mut recorder = Recorder::new();
        for micros in 1..=10_000u64 {
            recorder.record(micros * 1_000);
        }
        let latency = recorder.summary(LatencyKind::Service);
        for (found, expected) in [
            (latency.p50_us, 5_000.0),
            (latency.p99_us, 9_900.0),
            (latency.p999_us, 9_990.0),
            (latency.max_us, 10_000.0),
        ] {
            let found = found.unwrap();
            assert!((found - expected).abs() <= expected * 0.002, "{found} is not {expected}");
        }
        recorder.clear();
        assert_eq!(recorder.summary(LatencyKind::Service).samples, 0);
    }
}
