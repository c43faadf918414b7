//! The cost of a phase of a run.

use std::time::{Duration, Instant};

use anyhow::Result;

use crate::probe::process::{Usage, own_usage, usage};

/// Resources used during a phase, measured from outside of broker and client.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Cost {
    /// Length of the phase.
    pub(crate) elapsed: Duration,
    /// The broker at its start.
    pub(crate) broker_before: Usage,
    /// The broker at its end.
    pub(crate) broker_after: Usage,
    /// Whether the broker had ended by then, so that its usage is unknown.
    pub(crate) is_broker_gone: bool,
    /// The highest resident memory of the broker in the samples.
    pub(crate) broker_rss_peak: u64,
    /// This process at its start.
    pub(crate) client_before: Usage,
    /// This process at its end.
    pub(crate) client_after: Usage,
}

/// A measurement in progress.
#[derive(Debug)]
pub(crate) struct Measure {
    start: Instant,
    /// Start of the phase, in nanoseconds of the run's clock.
    pub(crate) at: u64,
    broker_before: Usage,
    client_before: Usage,
}

impl Measure {
    /// Starts measuring.
    pub(crate) fn start(pids: &[u32], at: u64) -> Result<Measure> {
        let (broker_before, client_before) = (usage(pids)?, own_usage()?);
        Ok(Measure { start: Instant::now(), at, broker_before, client_before })
    }

    /// Ends the measurement; `rss_seen` is the highest resident memory of the broker in the meantime.
    pub(crate) fn stop(self, pids: &[u32], rss_seen: u64) -> Result<Cost> {
        let elapsed = self.start.elapsed();
        let client_after = own_usage()?;
        let seen = usage(pids);
        let is_broker_gone = seen.is_err();
        let broker_after = seen.unwrap_or(self.broker_before);
        Ok(Cost {
            elapsed,
            broker_before: self.broker_before,
            broker_after,
            is_broker_gone,
            broker_rss_peak: rss_seen.max(self.broker_before.rss_bytes).max(broker_after.rss_bytes),
            client_before: self.client_before,
            client_after,
        })
    }
}
