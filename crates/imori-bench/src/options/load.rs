//! How load is generated: open loop, by a schedule that waits for no reply, or closed loop.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use anyhow::{Result, bail, ensure};
use clap::Args;

use crate::amount::{Amount, count, duration};
use crate::limits::{FIND_RATE_FIRST, SAMPLES_ABOVE_MIN};
use crate::options::slo::{Objective, Slo};

/// Default measured time of an open loop.
const OPEN_TIME: Duration = Duration::from_secs(10);
/// The shortest step of a search, which compares operations done with operations due second by second.
const FIND_STEP_MIN: Duration = Duration::from_secs(1);
/// Default warm-up by time.
const WARMUP_TIME: Duration = Duration::from_secs(2);

/// The rate of the schedule, in operations a second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Rate {
    /// This rate, over all connections.
    Of(f64),
    /// The highest rate that keeps the objectives, found by a search.
    Find,
}

impl FromStr for Rate {
    type Err = anyhow::Error;

    /// Reads `5000`, `0.5`, `20k`, `1M` or `find`.
    fn from_str(text: &str) -> Result<Rate> {
        if text == "find" {
            return Ok(Rate::Find);
        }
        let (digits, factor) = match text.strip_suffix('k') {
            Some(digits) => (digits, 1e3),
            None => text.strip_suffix('M').map_or((text, 1.0), |digits| (digits, 1e6)),
        };
        match digits.parse::<f64>().map(|rate| rate * factor) {
            Ok(rate) if rate > 0.0 && rate <= 1e9 => Ok(Rate::Of(rate)),
            _ => bail!("`{text}` is no rate; write operations a second as `5000`, `20k` or `1M`, or `find`"),
        }
    }
}

/// Distribution of the schedule's operations over time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrival {
    /// Independent arrivals, like those of many users: exponentially distributed gaps.
    Poisson,
    /// Equal gaps.
    Fixed,
    /// Bursts of this many operations, with equal gaps between bursts.
    Burst(u32),
}

impl FromStr for Arrival {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Arrival> {
        match (text, text.strip_prefix("burst:").map(str::parse)) {
            ("poisson", _) => Ok(Arrival::Poisson),
            ("fixed", _) => Ok(Arrival::Fixed),
            (_, Some(Ok(size))) if size > 0 => Ok(Arrival::Burst(size)),
            _ => bail!("`{text}` is no way to arrive; use `poisson`, `fixed` or `burst:100`"),
        }
    }
}

impl fmt::Display for Arrival {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Arrival::Poisson => f.write_str("poisson"),
            Arrival::Fixed => f.write_str("fixed"),
            Arrival::Burst(size) => write!(f, "burst:{size}"),
        }
    }
}

/// How load is made and how long.
#[derive(Debug, Clone, Args)]
pub struct LoadOptions {
    /// Operations a second, all connections together, sent when they are due, even if earlier ones are not done (open
    /// loop); `find` searches the highest rate that keeps `--slo`.
    #[arg(long, value_name = "RATE")]
    pub rate: Option<Rate>,
    /// Send each operation as soon as the previous one is done (closed loop). The load then pauses during a stall of
    /// the broker, which hides latency, so the report says that it was a closed loop.
    #[arg(long, conflicts_with = "rate")]
    pub closed: bool,
    /// Distribution of operations over time: `poisson`, `fixed` or `burst:N`.
    #[arg(long, default_value = "poisson")]
    pub arrival: Arrival,
    /// The seed of arrival times; the same seed always draws the same times.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Operations of an open loop that may be in flight; further operations wait when they are due, and their wait
    /// counts as latency.
    #[arg(long, value_parser = count, default_value = "1M")]
    pub max_in_flight: u64,
    /// Objectives of the run, such as `p99.9<20ms,lost=0,stall50=99.9%`; if one is missed, the exit code is 5.
    #[arg(long)]
    pub slo: Option<Slo>,
    /// Time to measure.
    #[arg(long, value_parser = duration)]
    pub time: Option<Duration>,
    /// Warm-up: operations or time that do not count. By default a tenth of the operations, or 2 s.
    #[arg(long)]
    pub warmup: Option<Amount>,
    /// With `--rate find`: the time that each step is measured.
    #[arg(long, value_parser = duration, default_value = "20s")]
    pub find_step: Duration,
}

impl LoadOptions {
    /// The rate of an open loop; `None` in a closed one.
    pub(crate) fn open_rate(&self) -> Option<f64> {
        match self.rate {
            Some(Rate::Of(rate)) => Some(rate),
            _ => None,
        }
    }

    /// A description of the open loop; `None` in a closed one.
    pub(crate) fn open_mode(&self) -> Option<String> {
        self.open_rate().map(|rate| format!("open {rate}/s {}", self.arrival))
    }

    /// The measured time or count, given the number of operations requested and the default number.
    pub(crate) fn measured(&self, asked: Option<u64>, usual: u64) -> Amount {
        match (self.time, self.open_rate(), asked) {
            (Some(time), _, _) => Amount::Time(time),
            (None, Some(rate), Some(asked)) => Amount::Time(Duration::from_secs_f64(asked as f64 / rate)),
            (None, Some(_), None) => Amount::Time(OPEN_TIME),
            (None, None, asked) => Amount::Count(asked.unwrap_or(usual)),
        }
    }

    /// The warm-up: a time if the measurement is one.
    pub(crate) fn warmup(&self, measured: Amount) -> Amount {
        match (self.warmup, self.open_rate(), measured) {
            (Some(Amount::Count(count)), Some(rate), _) => {
                Amount::Time(Duration::from_secs_f64(count as f64 / rate))
            }
            (Some(warmup), _, _) => warmup,
            (None, _, Amount::Count(count)) => Amount::Count(count / 10),
            (None, _, Amount::Time(_)) => Amount::Time(WARMUP_TIME),
        }
    }

    /// Refuses options that specify neither a rate nor a closed loop.
    pub fn check_is_said(&self) -> Result<()> {
        ensure!(
            self.rate.is_some() || self.closed,
            "nothing says how fast to send; name a rate with `--rate 5000`, or ask for a closed loop with `--closed`"
        );
        Ok(())
    }

    /// Refuses a search without objectives, and one whose steps are too short.
    pub(crate) fn check(&self) -> Result<()> {
        ensure!(
            self.rate != Some(Rate::Find) || self.slo.is_some(),
            "`--rate find` needs to know what the rate must keep; say it with `--slo p99<10ms`"
        );
        ensure!(
            self.rate != Some(Rate::Find) || self.find_step >= FIND_STEP_MIN,
            "steps of `{}` ms are too short to see a backlog grow; use `--find-step 1s` or more",
            self.find_step.as_millis()
        );
        if self.rate == Some(Rate::Find) {
            self.slo.iter().try_for_each(|slo| check_step(slo, self.find_step))?;
        }
        Ok(())
    }
}

/// Refuses a step so short that, at the first rate of the search, too few operations are due to
/// compute a quantile: no step could pass.
fn check_step(slo: &Slo, step: Duration) -> Result<()> {
    for (text, objective) in &slo.0 {
        let Objective::Quantile(quantile, _) = objective else { continue };
        let seconds = SAMPLES_ABOVE_MIN as f64 / (1.0 - quantile) / FIND_RATE_FIRST;
        // Absorbs the rounding error of the quotient.
        let needed = (seconds - 1e-6).ceil();
        ensure!(
            step.as_secs_f64() >= needed,
            "in steps of `{}` ms too few operations are due to tell `{text}`; use `--find-step {needed:.0}s` or more",
            step.as_millis()
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn step_that_cannot_tell_an_objective_is_refused() {
        for (slo, seconds, needed) in [
            ("p90<1ms", 1, None),
            ("p99<1ms", 1, None),
            ("p99.9<20ms,lost=0", 9, Some("10s")),
            ("p99.9<20ms,lost=0", 10, None),
            ("max<1s,p99.99<1s", 20, Some("100s")),
            ("max<1s,stall50=99%", 1, None),
        ] {
            let said = check_step(&slo.parse().unwrap(), Duration::from_secs(seconds));
            let expected = needed.map(|needed| format!("use `--find-step {needed}` or more"));
            let said = said.err().map(|error| error.to_string());
            assert_eq!(said.is_some(), expected.is_some(), "{slo}: {said:?}");
            assert!(said.unwrap_or_default().ends_with(&expected.unwrap_or_default()), "{slo}");
        }
    }

    #[test]
    fn rates_and_arrivals_are_read() {
        for (text, expected) in [
            ("5000", Some(Rate::Of(5000.0))),
            ("0.5", Some(Rate::Of(0.5))),
            ("20k", Some(Rate::Of(20_000.0))),
            ("1M", Some(Rate::Of(1e6))),
            ("find", Some(Rate::Find)),
            ("0", None),
            ("-1", None),
            ("NaN", None),
            ("", None),
            ("k", None),
        ] {
            assert_eq!(text.parse::<Rate>().ok(), expected, "{text}");
        }
        for (text, is_read) in [
            ("poisson", true),
            ("fixed", true),
            ("burst:9", true),
            ("burst:0", false),
            ("burst", false),
            ("x", false),
        ] {
            let arrival = text.parse::<Arrival>();
            assert_eq!(arrival.is_ok(), is_read, "{text}");
            assert!(arrival.is_err() || arrival.unwrap().to_string() == text);
        }
    }
}
