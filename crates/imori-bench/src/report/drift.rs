//! Drift of a soak: the last quarter of its seconds against the first.

use crate::page::quantity::change;
use crate::record::report::Report;
use crate::record::series::Second;

/// Seconds from which quarters are compared; the first quarter of a shorter run is its start.
const SECONDS_MIN: usize = 20;

/// A value in the first and in the last quarter of a soak.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Drift {
    /// Median of the first quarter's seconds.
    pub(crate) first: f64,
    /// Median of the last quarter's seconds.
    pub(crate) last: f64,
}

impl Drift {
    /// Drift of the median response time of each second, in microseconds.
    pub(crate) fn of_p50(report: &Report) -> Option<Drift> {
        Drift::of(report, |second| second.p50_us)
    }

    /// Drift of the p99 of each second that has a thousand responses, in microseconds.
    pub(crate) fn of_p99(report: &Report) -> Option<Drift> {
        Drift::of(report, |second| second.p99_us)
    }

    /// Drift of the broker's resident memory, in bytes.
    pub(crate) fn of_memory(report: &Report) -> Option<Drift> {
        Drift::of(report, |second| second.broker.as_ref().map(|broker| broker.rss_bytes as f64))
    }

    fn of(report: &Report, value: impl Fn(&Second) -> Option<f64>) -> Option<Drift> {
        let rows = &report.rows;
        if report.scenario != "soak" || rows.len() < SECONDS_MIN {
            return None;
        }
        let quarter = rows.len() / 4;
        let first = median(rows.iter().take(quarter).filter_map(&value))?;
        let last = median(rows.iter().skip(rows.len() - quarter).filter_map(&value))?;
        (first > 0.0).then_some(Drift { first, last })
    }

    /// The last quarter's value divided by the first's.
    pub(crate) fn ratio(&self) -> f64 {
        self.last / self.first
    }

    /// Both values, and the change between them.
    pub(crate) fn show(&self, show: impl Fn(f64) -> String) -> String {
        format!("{} -> {} ({})", show(self.first), show(self.last), change(self.ratio()))
    }
}

fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::quantity::time;
    use crate::report::sample;

    /// A soak whose p99 and memory grow by 1 % of their start each second.
    fn soak(seconds: u32) -> Report {
        let mut report = sample::report();
        report.scenario = "soak".into();
        report.rows.truncate(seconds as usize);
        for row in &mut report.rows {
            let growth = 1.0 + f64::from(row.t) / 100.0;
            row.p99_us = Some(100.0 * growth);
            if let Some(broker) = &mut row.broker {
                broker.rss_bytes = (1e6 * growth) as u64;
            }
        }
        report
    }

    #[test]
    fn the_last_quarter_is_held_against_the_first() {
        let drift = Drift::of_p99(&soak(40)).unwrap();
        assert_eq!(drift.show(time), "105 us -> 135 us (+28.6 %)");
        let memory = Drift::of_memory(&soak(40)).unwrap();
        assert_eq!((memory.first, memory.last), (1.05e6, 1.35e6));
    }

    #[test]
    fn a_short_run_or_another_scenario_has_no_drift() {
        assert_eq!(Drift::of_p99(&soak(19)), None);
        assert_eq!(Drift::of_p99(&sample::report()), None);
        let mut unknown = soak(40);
        unknown.rows.iter_mut().for_each(|row| row.broker = None);
        assert_eq!(Drift::of_memory(&unknown), None);
    }
}
