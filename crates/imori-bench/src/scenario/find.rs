//! Searches the highest rate that keeps the objectives: doubling, then halving the interval.
//!
//! A step passes if it keeps them, nothing of the ledger breaks, and what was offered was also done, so
//! that no backlog grows. The rate found is confirmed by three runs, and every step stays in the report.

use anyhow::{Result, bail};

use crate::amount::Amount;
use crate::interrupt;
use crate::limits::FIND_RATE_FIRST;
use crate::options::Rate;
use crate::record::levels::Levels;
use crate::record::report::{Outcome, RateStep, Report};
use crate::scenario::watched::{Measurable, once};

/// Where it ends at the latest.
const RATE_MAX: f64 = 1e8;
/// How near the highest rate that passed and the lowest that did not must come.
const NEAR: f64 = 1.05;
/// Runs that must confirm the rate.
const CONFIRMATIONS: u32 = 3;
/// Share of what was offered that must be done.
const DONE_SHARE_MIN: f64 = 0.99;

/// Seconds of operations that may be under way when a step ends, which matters only if it is short.
const UNDER_WAY: f64 = 0.05;
/// Share of a second by which a run may end early.
const EARLY: f64 = 0.01;

/// The outcome of a step.
enum Step {
    Kept(Box<Report>),
    NotKept,
    /// The broker went away, or the search was stopped; this is where it ended.
    Ended(Box<Report>),
}

/// Runs the steps; gives the report of the last confirming run, with all of them in it. A search that
/// ends early gives that of its last step.
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

/// The report of a search that did not come to its end.
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
        // It may have come when the step was over.
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
    // A step that began late is shorter than its first second, and that second still decides.
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
