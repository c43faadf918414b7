//! Latencies, and the percentiles for which there are enough samples.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use crate::limits::SAMPLES_ABOVE_MIN;

/// The longest time that a histogram distinguishes: one hour in nanoseconds.
const NANOS_MAX: u64 = 3_600_000_000_000;

/// The interval that a latency measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LatencyKind {
    /// Completion minus the scheduled time: what a user waits.
    Response,
    /// Completion minus actual send, with one operation in flight: the broker's own time.
    Service,
    /// Completion minus actual send, with many in flight: mostly time spent queueing.
    Queueing,
}

/// Percentiles in microseconds; one with fewer than ten samples above it is absent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// The interval that was measured.
    pub kind: LatencyKind,
    /// Number of operations timed.
    pub samples: u64,
    /// Median.
    pub p50_us: Option<f64>,
    /// 99 of 100 took at most this.
    pub p99_us: Option<f64>,
    /// 999 of 1000 took at most this.
    pub p999_us: Option<f64>,
    /// 9,999 of 10,000 took at most this.
    #[serde(default)]
    pub p9999_us: Option<f64>,
    /// The longest.
    pub max_us: Option<f64>,
}

/// A histogram of times.
#[derive(Debug)]
pub struct Recorder {
    histogram: Histogram<u64>,
}

impl Default for Recorder {
    fn default() -> Recorder {
        Recorder::new()
    }
}

impl Recorder {
    /// Creates an empty histogram: 1 ns to 1 h, three significant digits.
    pub fn new() -> Recorder {
        let histogram = Histogram::new_with_bounds(1, NANOS_MAX, 3)
            .expect("the bounds are constants that the crate accepts");
        Recorder { histogram }
    }

    /// Adds one time; anything longer than an hour counts as an hour.
    pub fn record(&mut self, nanos: u64) {
        self.histogram.saturating_record(nanos);
    }

    /// Adds the times of another recorder.
    pub(crate) fn add(&mut self, other: &Recorder) {
        self.histogram.add(&other.histogram).expect("all recorders have the same bounds");
    }

    /// Removes all times, at the end of the warm-up.
    pub(crate) fn clear(&mut self) {
        self.histogram.reset();
    }

    /// The percentiles that have enough samples above them.
    pub fn summary(&self, kind: LatencyKind) -> Latency {
        let samples = self.histogram.len();
        Latency {
            kind,
            samples,
            p50_us: self.quantile_us(0.5),
            p99_us: self.quantile_us(0.99),
            p999_us: self.quantile_us(0.999),
            p9999_us: self.quantile_us(0.9999),
            max_us: self.max_us(),
        }
    }

    /// The longest time in microseconds; `None` without samples.
    pub(crate) fn max_us(&self) -> Option<f64> {
        (self.samples() > 0).then(|| micros(self.histogram.max()))
    }

    /// A quantile in microseconds; `None` if too few samples lie above it.
    pub fn quantile_us(&self, quantile: f64) -> Option<f64> {
        let above = (self.histogram.len() as f64 * (1.0 - quantile) + 1e-6) as u64;
        (above >= SAMPLES_ABOVE_MIN).then(|| micros(self.histogram.value_at_quantile(quantile)))
    }

    /// Pairs of quantile and microseconds; each step shrinks the share above the quantile by a fifth.
    pub(crate) fn curve(&self) -> Vec<(f64, f64)> {
        let steps = (0..=60).map(|step| 1.0 - 10f64.powf(-f64::from(step) / 10.0));
        steps.map_while(|quantile| Some((quantile, self.quantile_us(quantile)?))).collect()
    }

    /// Number of recorded times.
    pub fn samples(&self) -> u64 {
        self.histogram.len()
    }

    /// Share of the times that are at most this long; `None` without samples.
    pub(crate) fn share_within(&self, nanos: u64) -> Option<f64> {
        let samples = self.histogram.len();
        (samples > 0).then(|| self.histogram.count_between(0, nanos) as f64 / samples as f64)
    }

    /// The recorded times and their counts; times equal to three digits are one entry.
    pub(crate) fn counts(&self) -> Vec<(u64, u32)> {
        self.histogram
            .iter_recorded()
            .map(|step| {
                (
                    step.value_iterated_to(),
                    u32::try_from(step.count_since_last_iteration()).unwrap_or(u32::MAX),
                )
            })
            .collect()
    }

    /// Adds the result of [`Recorder::counts`].
    pub(crate) fn add_counts(&mut self, counts: &[(u64, u32)]) {
        for (nanos, count) in counts {
            self.histogram.saturating_record_n(*nanos, u64::from(*count));
        }
    }
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
    fn counts_make_the_same_histogram_again() {
        let (mut recorder, mut again) = (Recorder::new(), Recorder::new());
        for nanos in (1..1_000u64).map(|number| number * number * number) {
            recorder.record(nanos);
        }
        again.add_counts(&recorder.counts());
        assert_eq!(again.curve(), recorder.curve());
        assert_eq!(again.share_within(1_000_000), recorder.share_within(1_000_000));
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
