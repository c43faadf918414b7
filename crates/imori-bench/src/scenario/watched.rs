//! One run of a scenario, with an eye on what it runs on.

use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Result;

use crate::clock::Clock;
use crate::options::{BrokerOptions, LoadOptions};
use crate::record::report::Report;
use crate::scenario::summary::Ran;

/// A scenario with its options.
pub(crate) trait Measurable: Clone {
    /// Where the broker is and whom to account.
    fn broker(&mut self) -> &mut BrokerOptions;

    /// How load is made.
    fn load(&mut self) -> &mut LoadOptions;

    /// Refuses what cannot be run as asked.
    fn check(&self) -> Result<()>;

    /// Runs it; times are those of this clock.
    fn run(&self, clock: Clock) -> Result<Ran>;
}

/// Runs a scenario once, with an eye on what it runs on.
pub(super) fn once<M: Measurable>(options: &M) -> Result<Report> {
    let clock = Clock::start();
    let started = SystemTime::now();
    let Ran { mut report, timeline } = options.run(clock)?;
    let began = started.duration_since(UNIX_EPOCH).unwrap_or_default();
    report.started_at = began.as_nanos() as f64 / 1e9 + timeline.begin() as f64 / 1e9;
    Ok(report)
}
