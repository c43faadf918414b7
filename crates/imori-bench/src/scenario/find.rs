//! Searches the highest rate that keeps the objectives: doubling, then halving the interval.
//!
//! A step passes if it keeps them, nothing of the ledger breaks, and what was offered was also done, so
//! that no backlog grows. The rate found is confirmed by three runs, and every step stays in the report.

use anyhow::{Result, bail};

use crate::amount::Amount;
use crate::interrupt;
use crate::options::Rate;
use crate::record::report::{Outcome, RateStep, Report};
use crate::scenario::watched::{Measurable, once};

/// Where the search begins, in operations a second.
const RATE_FIRST: f64 = 1_000.0;
/// Where it ends at the latest.
const RATE_MAX: f64 = 1e8;
/// How near the highest rate that passed and the lowest that did not must come.
const NEAR: f64 = 1.05;
/// Runs that must confirm the rate.
const CONFIRMATIONS: u32 = 3;
/// Share of what was offered that must be done.
const DONE_SHARE_MIN: f64 = 0.99;

/// Runs the steps; gives the report of the last confirming run, with all of them in it.
pub(super) fn search<M: Measurable>(options: &M) -> Result<Report> {
    let mut steps = Vec::new();
    let (mut passed, mut failed) = (0.0, RATE_MAX);
    let mut rate = RATE_FIRST;
    while failed > passed * NEAR {
        match step(options, rate, &mut steps)? {
            Some(_) => passed = rate,
            None => failed = rate,
        }
        rate = match (passed, failed) {
            (_, RATE_MAX) => rate * 2.0,
            (0.0, _) => rate / 2.0,
            _ => f64::midpoint(passed, failed),
        };
        if rate < 1.0 {
            bail!("not even one operation a second keeps the objectives: {}", last_reason(&steps));
        }
        if rate > RATE_MAX {
            break;
        }
    }
    let mut confirmed = 0;
    loop {
        match step(options, passed, &mut steps)? {
            Some(mut report) => {
                confirmed += 1;
                if confirmed == CONFIRMATIONS {
                    report.notes.push(format!("{passed:.0} a second is the highest rate that keeps the objectives, confirmed {CONFIRMATIONS} times"));
                    report.steps = steps;
                    return Ok(report);
                }
            }
            None => {
                confirmed = 0;
                passed /= NEAR;
                if passed < 1.0 {
                    bail!("no rate keeps the objectives three times in a row: {}", last_reason(&steps));
                }
            }
        }
    }
}

/// Runs one step; gives its report if everything was kept.
fn step<M: Measurable>(options: &M, rate: f64, steps: &mut Vec<RateStep>) -> Result<Option<Report>> {
    let mut options = options.clone();
    let load = options.load();
    load.rate = Some(Rate::Of(rate));
    load.time = Some(load.find_step);
    load.warmup = load.warmup.filter(|warmup| matches!(warmup, Amount::Time(_)));
    let report = once(&options)?;
    if report.outcome == Outcome::Broken || report.outcome == Outcome::Stopped || interrupt::is_asked_for() {
        bail!("the search ended at {rate:.0} a second: {}", report.notes.join("; "));
    }
    let judged = judged(&report, rate);
    let is_kept = judged.is_kept;
    steps.push(judged);
    Ok(is_kept.then_some(report))
}

fn judged(report: &Report, rate: f64) -> RateStep {
    let mut broken: Vec<String> = report
        .objectives
        .iter()
        .filter(|kept| !kept.is_kept)
        .map(|kept| format!("{}: {}", kept.objective, kept.found))
        .collect();
    let offered: u64 = report.rows.iter().map(|row| row.offered).sum();
    let within = report.rows.iter().take(report.seconds as usize);
    let (offered_within, done) =
        within.fold((0, 0), |(offered, done), row| (offered + row.offered, done + row.delivered));
    let fan_out = report.fan_out.max(1);
    if (done as f64) < (offered_within * fan_out) as f64 * DONE_SHARE_MIN {
        broken.push(format!("{done} done of {} that were due", offered_within * fan_out));
    }
    if report.ledger.is_broken() {
        broken.push("the ledger is broken".to_owned());
    }
    if offered == 0 {
        broken.push("nothing was offered".to_owned());
    }
    RateStep {
        rate,
        done: report.per_second,
        is_kept: broken.is_empty(),
        p99_us: report.latency.as_ref().and_then(|latency| latency.p99_us),
        broken,
    }
}

fn last_reason(steps: &[RateStep]) -> String {
    steps.last().map(|step| step.broken.join("; ")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::series::Second;
    use crate::scenario::summary::tests::empty;

    #[test]
    fn what_is_offered_must_be_done() {
        for (delivered, lost, is_kept) in
            [(1_000, 0, true), (990, 0, true), (980, 0, false), (1_000, 1, false)]
        {
            let mut report = empty();
            report.seconds = 2.0;
            report.ledger.lost = lost;
            report.rows =
                (0..2).map(|t| Second { t, offered: 1_000, delivered, ..Second::default() }).collect();
            assert_eq!(judged(&report, 1_000.0).is_kept, is_kept, "{delivered} {lost}");
        }
    }
}
