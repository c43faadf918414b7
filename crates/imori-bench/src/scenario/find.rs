//! Searches for the highest rate that keeps the objectives, by doubling and then bisection.
//!
//! A step passes if the objectives and the ledger hold, and the offered operations were also done,
//! so that no backlog grows. Three runs confirm the rate found, and the report lists every step.

use anyhow::{Result, bail};

use crate::amount::Amount;
use crate::interrupt;
use crate::limits::FIND_RATE_FIRST;
use crate::options::Rate;
use crate::record::levels::Levels;
use crate::record::report::{Outcome, RateStep, Report};
use crate::scenario::watched::{Measurable, once};

/// The highest rate tried.
const RATE_MAX: f64 = 1e8;
/// The search ends once the lowest failed rate is within this factor of the highest passed one.
const NEAR: f64 = 1.05;
/// Consecutive runs that must confirm the rate.
const CONFIRMATIONS: u32 = 3;
/// Share of the offered operations that must be done.
const DONE_SHARE_MIN: f64 = 0.99;

/// Seconds' worth of operations allowed in flight at the end of a step, which only matters to a short step.
const UNDER_WAY: f64 = 0.05;
/// Fraction of a second by which a run may end early.
const EARLY: f64 = 0.01;

/// The outcome of a step.
enum Step {
    Kept(Box<Report>),
    NotKept,
    /// The broker closed a connection, or the user stopped the search.
    Ended(Box<Report>),
}

/// Runs the search. Returns the report of the last confirming run, or of the last step if the
/// search ended early, with all steps in it.
pub(super) fn search<M: Measurable>(options: &M) -> Result<Report> {
    let mut steps = Vec::new();
    let (mut passed, mut failed) = (0.0, RATE_MAX);
    let mut rate = FIND_RATE_FIRST;
    while failed > passed * NEAR {
        match step(options, rate, &mut steps)? {
            Step::Kept(_) => passed = rate,
            Step::NotKept => failed = rate,
            Step::Ended(report) => return Ok(ended(*report, rate, steps)),
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
            Step::Kept(mut report) => {
                confirmed += 1;
                if confirmed == CONFIRMATIONS {
                    report.notes.push(format!("{passed:.0} a second is the highest rate that keeps the objectives, confirmed {CONFIRMATIONS} times"));
                    report.steps = steps;
                    return Ok(*report);
                }
            }
            Step::Ended(report) => return Ok(ended(*report, passed, steps)),
            Step::NotKept => {
                confirmed = 0;
                passed /= NEAR;
                if passed < 1.0 {
                    bail!("no rate keeps the objectives three times in a row: {}", last_reason(&steps));
                }
            }
        }
    }
}

/// The report of a search that ended early.
fn ended(mut report: Report, rate: f64, steps: Vec<RateStep>) -> Report {
    report.notes.push(format!("the search ended at {rate:.0} a second and found nothing"));
    report.steps = steps;
    report
}

/// Runs one step.
fn step<M: Measurable>(options: &M, rate: f64, steps: &mut Vec<RateStep>) -> Result<Step> {
    let mut options = options.clone();
    let load = options.load();
    load.rate = Some(Rate::Of(rate));
    load.time = Some(load.find_step);
    load.warmup = load.warmup.filter(|warmup| matches!(warmup, Amount::Time(_)));
    let mut report = once(&options)?;
    if interrupt::is_asked_for() {
        // The interrupt may have come after the step was over.
        report.outcome = Outcome::Stopped;
    }
    if report.outcome == Outcome::Broken || report.outcome == Outcome::Stopped {
        return Ok(Step::Ended(Box::new(report)));
    }
    let judged = judged(&report, rate);
    let is_kept = judged.is_kept;
    steps.push(judged);
    Ok(if is_kept { Step::Kept(Box::new(report)) } else { Step::NotKept })
}

fn judged(report: &Report, rate: f64) -> RateStep {
    let mut broken: Vec<String> = report
        .objectives
        .iter()
        .filter(|kept| !kept.is_kept)
        .map(|kept| format!("{}: {}", kept.objective, kept.found))
        .collect();
    let offered: u64 = report.rows.iter().map(|row| row.offered).sum();
    // A step that began late is a little shorter than a second; its first row is used nevertheless.
    let whole = ((report.seconds + EARLY) as usize).max(1);
    let within = report.rows.iter().take(whole);
    let (offered_within, done) =
        within.fold((0, 0), |(offered, done), row| (offered + row.offered, done + row.delivered));
    let fan_out = report.fan_out.max(1);
    let due = offered_within * fan_out;
    let undone = (due as f64 * (1.0 - DONE_SHARE_MIN)).max(rate * UNDER_WAY * fan_out as f64);
    if (due.saturating_sub(done) as f64) > undone {
        broken.push(format!("{done} done of {due} that were due"));
    }
    if report.ledger.is_broken() {
        broken.push("the ledger is broken".to_owned());
    }
    broken.extend(report.levels.as_ref().and_then(Levels::complaint));
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
        for (seconds, delivered, lost, is_kept) in [
            (20.0, 1_000, 0, true),
            (20.0, 990, 0, true),
            (20.0, 980, 0, false),
            (0.999, 950, 0, true),
            (0.999, 940, 0, false),
            (0.97, 940, 0, false),
            (20.0, 1_000, 1, false),
        ] {
            let mut report = empty();
            report.seconds = seconds;
            report.ledger.lost = lost;
            report.rows =
                (0..20).map(|t| Second { t, offered: 1_000, delivered, ..Second::default() }).collect();
            assert_eq!(judged(&report, 1_000.0).is_kept, is_kept, "{seconds} {delivered} {lost}");
        }
    }
}
