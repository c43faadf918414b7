//! The broker's counters at one moment, and the rates between two of them.

use std::time::{Duration, Instant};

use imori_core::message::DeathReason;
use imori_core::world::{Counter, Latency};
use imori_server::broker::{Broker, LATENCY_BOUNDS_US, Times};

use super::quantiles::Buckets;
use super::sample::{Sample, Series};
use crate::metrics::memory_bytes;

/// Counters that are kept for the broker as a whole; reading them takes a few loads for each cell.
#[derive(Debug, Clone)]
pub struct Counts {
    /// When they were read.
    pub at: Instant,
    /// Messages that no queue or subscription received.
    pub returned: u64,
    /// Messages that expired.
    pub expired: u64,
    /// Messages sent to a dead-letter exchange.
    pub dead_lettered: u64,
    /// Bytes written to the journal.
    pub journal_bytes: u64,
    /// Times from publishes to their confirms.
    pub confirms: Times,
}

/// Messages of all connections since the start: by protocol, and those of the broker's own services.
#[derive(Debug, Clone, Copy)]
pub struct Traffic {
    /// When they were read.
    pub at: Instant,
    /// Published messages, in the order of [`Series::PUBLISHED`].
    pub published: [u64; Series::PUBLISHED.len()],
    /// Deliveries, in the order of [`Series::DELIVERED`].
    pub delivered: [u64; Series::DELIVERED.len()],
    /// Deliveries that a client has settled.
    pub settled: u64,
}

impl Counts {
    pub(super) fn of(broker: &Broker) -> Counts {
        Counts {
            at: Instant::now(),
            returned: broker.counted(Counter::Unroutable),
            expired: broker.counted(Counter::DiedExpired),
            dead_lettered: DeathReason::ALL
                .into_iter()
                .map(|reason| broker.counted(Counter::dead_lettered(reason)))
                .sum(),
            journal_bytes: broker.commit_figures().counts.bytes,
            confirms: broker.times(Latency::Confirm),
        }
    }

    /// Adds the rates since `before` to a sample.
    pub fn add_to(&self, sample: &mut Sample, before: &Counts) {
        let time = self.at.saturating_duration_since(before.at);
        sample.set(Series::Returned, rate(self.returned, before.returned, time));
        sample.set(Series::Expired, rate(self.expired, before.expired, time));
        sample.set(Series::DeadLettered, rate(self.dead_lettered, before.dead_lettered, time));
        sample.set(Series::JournalBytesRate, rate(self.journal_bytes, before.journal_bytes, time));
        let mut classes = self.confirms.classes;
        classes.iter_mut().zip(before.confirms.classes).for_each(|(now, before)| {
            *now = now.saturating_sub(before);
        });
        let latencies = Buckets { bounds_us: &LATENCY_BOUNDS_US, counts: &classes };
        sample.set(Series::ConfirmP50, latencies.quantile_us(0.5));
        sample.set(Series::ConfirmP99, latencies.quantile_us(0.99));
        sample.set(Series::ConfirmMax, latencies.max_us());
    }
}

impl Traffic {
    /// Adds the rates since `before` to a sample.
    pub fn add_to(&self, sample: &mut Sample, before: &Traffic) {
        let time = self.at.saturating_duration_since(before.at);
        for (series, (now, before)) in
            Series::PUBLISHED.into_iter().zip(self.published.into_iter().zip(before.published))
        {
            sample.set(series, rate(now, before, time));
        }
        for (series, (now, before)) in
            Series::DELIVERED.into_iter().zip(self.delivered.into_iter().zip(before.delivered))
        {
            sample.set(series, rate(now, before, time));
        }
        sample.set(Series::Settled, rate(self.settled, before.settled, time));
    }
}

/// Adds the present state of the broker to a sample.
pub(super) fn add_state(sample: &mut Sample, broker: &Broker) {
    sample.set(Series::Connections, Some(broker.socket_connections() as f64));
    sample.set(Series::Queues, Some(broker.queue_count() as f64));
    sample.set(Series::MemoryBytes, memory_bytes().map(|bytes| bytes as f64));
    sample.set(Series::DiskFreeBytes, broker.journal_figures().free_bytes.map(|bytes| bytes as f64));
}

/// Growth per second; `None` without time between.
pub(super) fn rate(now: u64, before: u64, time: Duration) -> Option<f64> {
    (!time.is_zero()).then(|| now.saturating_sub(before) as f64 / time.as_secs_f64())
}

/// Growth per second as a row shows it, to a tenth; 0 without a count before.
pub(super) fn shown_rate(now: u64, before: Option<u64>, time: Duration) -> f64 {
    let per_second = before.and_then(|before| rate(now, before, time)).unwrap_or(0.0);
    (per_second * 10.0).round() / 10.0
}
