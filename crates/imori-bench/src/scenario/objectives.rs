//! Compares a run with its objectives.

use crate::options::{Objective, Slo};
use crate::record::Timeline;
use crate::record::report::{Kept, Report};

/// The response time within which an operation counts as available, in nanoseconds.
const AVAILABLE_NANOS: u64 = 50_000_000;

/// Judges each objective by the finished timeline and the ledger of a run.
pub(super) fn judge(slo: &Slo, report: &Report, timeline: &Timeline) -> Vec<Kept> {
    let times = timeline.total();
    let lost = report.ledger.lost + report.ledger.unknown;
    let judged = slo.0.iter().map(|(text, objective)| {
        let (is_kept, found) = match objective {
            Objective::Quantile(quantile, bound) => below(times.quantile_us(*quantile), bound.as_secs_f64()),
            Objective::Max(bound) => below(times.max_us(), bound.as_secs_f64()),
            Objective::Lost(most) => (lost <= *most, format!("{lost} lost")),
            Objective::Available(least) => {
                let within = times.share_within(AVAILABLE_NANOS).unwrap_or(0.0) * times.samples() as f64;
                let due = times.samples().saturating_add(lost).max(1);
                let share = within / due as f64;
                (share >= *least, format!("{:.4} % within 50 ms", share * 100.0))
            }
        };
        Kept { objective: text.clone(), is_kept, found }
    });
    judged.collect()
}

/// Whether a time in microseconds is below a bound in seconds; false if it was not measured.
fn below(micros: Option<f64>, bound: f64) -> (bool, String) {
    match micros {
        Some(micros) => (micros / 1e6 < bound, format!("{:.3} ms", micros / 1e3)),
        None => (false, "too few operations to tell".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::summary::tests::empty;

    #[test]
    fn objectives_are_judged_by_what_was_measured() {
        let mut timeline = Timeline::new();
        timeline.start(0);
        for number in 0..2_000_u64 {
            let took = if number < 20 { 80_000_000 } else { 1_000_000 };
            timeline.response(0, None, took);
        }
        timeline.finish();
        let mut report = empty();
        report.ledger.lost = 2;
        for (text, is_kept) in [
            ("p50<2ms", true),
            ("p50<1ms", false),
            ("p99.5<20ms", false),
            ("p99.9<20ms", false),
            ("max<100ms", true),
            ("lost=2", true),
            ("lost=1", false),
            ("stall50=98%", true),
            ("stall50=99%", false),
        ] {
            let kept = judge(&text.parse().unwrap(), &report, &timeline);
            assert_eq!(kept.first().map(|kept| kept.is_kept), Some(is_kept), "{text}: {kept:?}");
        }
    }
}
