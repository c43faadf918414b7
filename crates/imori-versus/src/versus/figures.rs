//! The compared numbers, their medians over the turns, and whether a difference is conclusive.

use imori_bench::record::report::Report;
use imori_bench::record::series::HostSecond;

use crate::versus::comparison::Comparison;

/// Turns of one peer that scatter by more than this do not establish the size of a difference.
const SCATTER_MAX: f64 = 0.10;

/// If a canary's medians differ by more than this factor between turns, the turns did not have the
/// same machine.
const CANARY_FACTOR_MAX: f64 = 2.0;

/// Microseconds below which differences between canaries are ignored.
const CANARY_QUIET_US: f64 = 1_000.0;

/// One number of a report.
#[derive(Clone, Copy)]
pub(crate) struct Figure {
    pub(crate) title: &'static str,
    /// Whether more of it is better.
    pub(crate) more_is_better: bool,
    /// The divisor for display, such as the bytes of a MiB.
    pub(crate) scale: f64,
    pub(crate) of: fn(&Report) -> Option<f64>,
}

/// Name of a canary, and its greatest lateness in a second.
type Canary = (&'static str, fn(&HostSecond) -> Option<f64>);

const CANARIES: [Canary; 3] = [
    ("client", |host| host.client_canary_max_us),
    ("CPU", |host| host.cpu_canary_max_us),
    ("disk", |host| host.disk_canary_max_us),
];

const MIB: f64 = 1_048_576.0;

/// All figures, the most significant first; a scenario may lack some.
pub(crate) const FIGURES: [Figure; 16] = [
    figure("operations a second", true, 1.0, |report| {
        (report.unit != "connections").then_some(report.per_second)
    }),
    figure("bodies, MiB a second", true, MIB, |report| {
        // Only for scenarios whose operations are deliveries of bodies of one size.
        let size = report.asked.get("size").filter(|_| report.unit == "deliveries")?;
        Some(report.per_second * size.as_f64()?)
    }),
    figure("broker CPU-s per million deliveries", false, 1.0, |report| {
        report.broker.as_ref()?.cpu_s_per_million_deliveries
    }),
    figure("p50, us", false, 1.0, |report| report.latency.as_ref()?.p50_us),
    figure("p99, us", false, 1.0, |report| report.latency.as_ref()?.p99_us),
    figure("p99.9, us", false, 1.0, |report| report.latency.as_ref()?.p999_us),
    figure("longest, us", false, 1.0, |report| report.latency.as_ref()?.max_us),
    figure("confirm p50, us", false, 1.0, |report| report.confirm.as_ref()?.p50_us),
    figure("confirm p99, us", false, 1.0, |report| report.confirm.as_ref()?.p99_us),
    figure("disk sync p50, us", false, 1.0, |report| {
        // Shown beside the confirms, which depend on it; irrelevant at level `memory`.
        report.levels.as_ref().filter(|levels| levels.asked.is_durable())?;
        report.disk_sync.as_ref()?.p50_us
    }),
    figure("peak RSS, MiB", false, MIB, |report| Some(report.broker.as_ref()?.rss_peak as f64)),
    figure("stalls", false, 1.0, |report| {
        let stalls = report.stalls.as_ref()?;
        Some(stalls.list.len() as f64 + stalls.unlisted as f64)
    }),
    figure("RSS a connection, B", false, 1.0, |report| counter(report, "rss_bytes_per_connection")),
    figure("RSS a message, B", false, 1.0, |report| counter(report, "rss_bytes_per_message")),
    figure("filled a second", true, 1.0, |report| counter(report, "fill_per_s")),
    figure("CPU while idle, ms/s", false, 1.0, |report| counter(report, "idle_cpu_ms_per_s")),
];

/// The distribution of a figure's values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
    pub(crate) count: usize,
    /// Interquartile range as a share of the median; of two values, their difference.
    pub(crate) scatter: f64,
}

/// The difference between two peers, turn by turn.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Pair {
    pub(crate) first: String,
    pub(crate) other: String,
    /// The figure that was judged.
    pub(crate) title: &'static str,
    /// The other peer's value minus the first peer's, over the turns.
    pub(crate) difference: Spread,
    /// The peer whose worst turn was better than the other's best, if there is one.
    pub(crate) always_better: Option<String>,
    /// Reasons why the size of the difference is not conclusive.
    pub(crate) doubts: Vec<String>,
}

const fn figure(
    title: &'static str,
    more_is_better: bool,
    scale: f64,
    of: fn(&Report) -> Option<f64>,
) -> Figure {
    Figure { title, more_is_better, scale, of }
}

fn counter(report: &Report, name: &str) -> Option<f64> {
    report.counters.iter().find(|count| count.name == name).map(|count| count.value as f64)
}

/// The values of a figure of one peer, with their turns.
pub(crate) fn values(comparison: &Comparison, peer: &str, job: &str, figure: &Figure) -> Vec<(u32, f64)> {
    let reports = comparison.reports(peer, job);
    reports.filter_map(|(turn, report)| Some((turn, (figure.of)(report)?))).collect()
}

/// Median and range; `None` without values.
pub(crate) fn spread(values: impl IntoIterator<Item = f64>) -> Option<Spread> {
    let mut sorted: Vec<f64> = values.into_iter().collect();
    sorted.sort_by(f64::total_cmp);
    let (low, high) = (*sorted.first()?, *sorted.last()?);
    let at = |index: usize| sorted.get(index).copied().unwrap_or(low);
    let count = sorted.len();
    let median = match count % 2 {
        1 => at(count / 2),
        _ => f64::midpoint(at(count / 2 - 1), at(count / 2)),
    };
    // Based on the middle half, because the full range would grow with the number of turns.
    let outside = count / 4;
    let middle = at(count - 1 - outside) - at(outside);
    let scatter = if median == 0.0 { 0.0 } else { (middle / median).abs() };
    Some(Spread { median, low, high, count, scatter })
}

/// The figure by which a pair is judged: in an open loop the throughput is given, so it is the time.
fn judged(comparison: &Comparison, job: &str) -> Option<&'static Figure> {
    let first = comparison.runs.iter().find(|run| run.job == job && run.counts())?;
    let title = match (first.report.unit.as_ref(), &first.report.open) {
        ("connections", _) => "RSS a connection, B",
        (_, Some(_)) => "p50, us",
        (_, None) => "operations a second",
    };
    FIGURES.iter().find(|figure| figure.title == title)
}

/// Compares the first peer with another one in a job.
pub(crate) fn pair(comparison: &Comparison, job: &str, first: &str, other: &str) -> Option<Pair> {
    let figure = judged(comparison, job)?;
    let (ours, theirs) = (values(comparison, first, job, figure), values(comparison, other, job, figure));
    let both = ours.iter().filter_map(|(turn, ours)| {
        let (_, theirs) = theirs.iter().find(|(other, _)| other == turn)?;
        Some(theirs - ours)
    });
    let difference = spread(both)?;
    let (ours, theirs) = (spread(plain(&ours))?, spread(plain(&theirs))?);
    let mut doubts = Vec::new();
    for (name, spread) in [(first, &ours), (other, &theirs)] {
        if spread.count < 2 {
            doubts.push(format!("{name} has one turn only"));
        }
        if spread.scatter > SCATTER_MAX {
            doubts.push(format!("turns of {name} differ by {:.0} %", spread.scatter * 100.0));
        }
    }
    doubts.extend(uneasy_canaries(comparison, job, [first, other]));
    let is_first_better = match figure.more_is_better {
        true => (ours.low > theirs.high).then_some(true).or((theirs.low > ours.high).then_some(false)),
        false => (ours.high < theirs.low).then_some(true).or((theirs.high < ours.low).then_some(false)),
    };
    let always_better = is_first_better.map(|is_first| if is_first { first } else { other }.to_owned());
    Some(Pair {
        first: first.to_owned(),
        other: other.to_owned(),
        title: figure.title,
        difference,
        always_better,
        doubts,
    })
}

fn plain(values: &[(u32, f64)]) -> Vec<f64> {
    values.iter().map(|(_, value)| *value).collect()
}

/// Doubts from canaries that differ too much between turns.
fn uneasy_canaries(comparison: &Comparison, job: &str, peers: [&str; 2]) -> Vec<String> {
    let mut doubts = Vec::new();
    for (name, of) in CANARIES {
        let turns = peers.iter().flat_map(|peer| comparison.reports(peer, job));
        let medians = turns.filter_map(|(_, report)| {
            let seconds = report.rows.iter().filter_map(|row| of(row.host.as_ref()?));
            Some(spread(seconds)?.median.max(CANARY_QUIET_US))
        });
        let Some(medians) = spread(medians) else { continue };
        if medians.high > medians.low * CANARY_FACTOR_MAX {
            doubts.push(format!(
                "the {name} canary differs by {:.1} x between turns",
                medians.high / medians.low
            ));
        }
    }
    doubts
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::versus::sample::{comparison, with_canaries};

    #[test]
    fn a_spread_is_the_median_with_its_range_and_the_scatter_of_the_middle_half() {
        for (values, median, low, high, scatter) in [
            (&[3.0][..], 3.0, 3.0, 3.0, 0.0),
            (&[90.0, 110.0], 100.0, 90.0, 110.0, 0.2),
            (&[100.0, 1.0, 101.0, 99.0, 500.0], 100.0, 1.0, 500.0, 0.02),
            (&[0.0, 0.0], 0.0, 0.0, 0.0, 0.0),
            (&[-3.0, -1.0], -2.0, -3.0, -1.0, 1.0),
        ] {
            let expected = Spread { median, low, high, count: values.len(), scatter };
            assert_eq!(spread(values.iter().copied()), Some(expected), "{values:?}");
        }
        assert_eq!(spread([]), None);
    }

    #[test]
    fn a_difference_is_told_only_if_the_turns_agree() {
        for (a, b, better, doubts) in [
            (&[100.0, 101.0, 102.0][..], &[200.0, 201.0, 199.0][..], Some("b"), 0),
            (&[200.0, 201.0], &[100.0, 101.0], Some("a"), 0),
            (&[100.0, 102.0], &[101.0, 103.0], None, 0),
            (&[100.0, 150.0], &[300.0, 301.0], Some("b"), 1),
            (&[100.0, 150.0], &[120.0, 190.0], None, 2),
            (&[100.0], &[200.0], Some("b"), 2),
        ] {
            let comparison = comparison(&[("a", a), ("b", b)]);
            let pair = pair(&comparison, "rpc", "a", "b").unwrap();
            assert_eq!((pair.always_better.as_deref(), pair.doubts.len()), (better, doubts), "{a:?} {b:?}");
        }
    }

    #[test]
    fn differences_are_of_the_same_turn() {
        let mut comparison = comparison(&[("a", &[10.0, 20.0, 30.0]), ("b", &[11.0, 23.0, 36.0])]);
        let pair_before = pair(&comparison, "rpc", "a", "b").unwrap().difference;
        assert_eq!((pair_before.median, pair_before.low, pair_before.high), (3.0, 1.0, 6.0));
        comparison.runs.retain(|run| run.peer != "a" || run.turn != 2);
        let pair_after = pair(&comparison, "rpc", "a", "b").unwrap().difference;
        assert_eq!((pair_after.count, pair_after.low, pair_after.high), (2, 1.0, 6.0));
    }

    #[test]
    fn a_run_that_lost_something_does_not_count() {
        let mut comparison = comparison(&[("a", &[10.0, 1_000.0])]);
        comparison.runs[1].report.ledger.lost = 1;
        assert_eq!(values(&comparison, "a", "rpc", &FIGURES[0]), [(1, 10.0)]);
        assert_eq!(comparison.exit_code(), 3);
    }

    #[test]
    fn a_machine_that_was_busier_in_some_turns_is_a_doubt() {
        for (canary_us, doubts) in [(900.0, 0), (1_900.0, 0), (2_100.0, 1)] {
            let canaries = HashMap::from([(("b", 2), canary_us)]);
            let sides: [(&str, &[f64]); 2] = [("a", &[10.0, 10.0]), ("b", &[20.0, 20.0])];
            let comparison = with_canaries(&sides, &canaries);
            let pair = pair(&comparison, "rpc", "a", "b").unwrap();
            assert_eq!(pair.doubts.len(), doubts, "{:?}", pair.doubts);
        }
    }
}
