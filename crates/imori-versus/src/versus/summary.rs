//! One table over all lines of a list: the first peer divided by each other peer, turn by turn.

use imori_bench::report::compare::Share;

use crate::versus::comparison::{Comparison, PeerFacts};
use crate::versus::figures::{FIGURES, Figure, Spread, spread, values};
use crate::versus::text::{head, line, number, row};

/// Titles of the figures in the table.
const COLUMNS: [&str; 5] = ["operations a second", CPU, "p50, us", "p99, us", "peak RSS, MiB"];

/// The figure that is most reproducible on a shared machine, which the tolerance therefore applies to.
const CPU: &str = "broker CPU-s per million deliveries";

/// Appends a table for each peer except the first, if there are several jobs.
pub(crate) fn summary(comparison: &Comparison, text: &mut String) {
    let Some((first, others)) = comparison.peers.split_first() else { return };
    if comparison.settings.jobs.len() < 2 {
        return;
    }
    let figures: Vec<&Figure> = COLUMNS.iter().filter_map(|title| figure(title)).collect();
    for other in others {
        line(text, &format!("\n## {} ÷ {}, turn by turn", first.name, other.name));
        let titles: Vec<String> = figures.iter().map(|figure| heading(figure)).collect();
        let titles: Vec<&str> = titles.iter().map(String::as_str).collect();
        head(text, "job", &titles);
        for job in &comparison.settings.jobs {
            let quotients =
                figures.iter().map(|figure| quotient(comparison, &job.name, first, other, figure));
            let cells: Vec<String> =
                quotients.map(|quotient| quotient.map_or_else(String::new, shown)).collect();
            if cells.iter().any(|cell| !cell.is_empty()) {
                row(text, &job.name, &cells);
            }
        }
    }
}

/// A sentence for each job in which the first peer's CPU per delivery exceeds another peer's by
/// more than the tolerance.
pub(crate) fn worse(comparison: &Comparison, tolerance: Share) -> Vec<String> {
    let (Some((first, others)), Some(cpu)) = (comparison.peers.split_first(), figure(CPU)) else {
        return Vec::new();
    };
    let mut sentences = Vec::new();
    for job in &comparison.settings.jobs {
        for other in others {
            let quotient = quotient(comparison, &job.name, first, other, cpu);
            if let Some(quotient) = quotient.filter(|quotient| quotient.median > 1.0 + tolerance.0) {
                sentences.push(format!(
                    "{}: {} has {} times the CPU a delivery of {}, which is more than {tolerance} above",
                    job.name,
                    first.name,
                    shown(quotient),
                    other.name
                ));
            }
        }
    }
    sentences
}

fn figure(title: &str) -> Option<&'static Figure> {
    FIGURES.iter().find(|figure| figure.title == title)
}

fn heading(figure: &Figure) -> String {
    let better = if figure.more_is_better { "above" } else { "below" };
    format!("{} (better {better} 1)", figure.title)
}

/// The first peer's value divided by the other's value of the same turn, over the turns.
fn quotient(
    comparison: &Comparison,
    job: &str,
    first: &PeerFacts,
    other: &PeerFacts,
    figure: &Figure,
) -> Option<Spread> {
    let (ours, theirs) =
        (values(comparison, &first.name, job, figure), values(comparison, &other.name, job, figure));
    spread(ours.iter().filter_map(|(turn, ours)| {
        let (_, theirs) = theirs.iter().find(|(other, theirs)| other == turn && *theirs > 0.0)?;
        Some(ours / theirs)
    }))
}

fn shown(quotient: Spread) -> String {
    match quotient.count {
        1 => number(quotient.median),
        _ => format!("{} ({} to {})", number(quotient.median), number(quotient.low), number(quotient.high)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::versus::comparison::Job;
    use crate::versus::sample::{comparison, with_cpu};

    #[test]
    fn a_list_has_a_table_of_quotients_of_the_same_turn() {
        let mut comparison = comparison(&[("a", &[10.0, 30.0, 50.0]), ("b", &[10.0, 10.0, 100.0])]);
        let mut text = String::new();
        summary(&comparison, &mut text);
        assert_eq!(text, "", "one job has a table of its own");
        comparison.settings.jobs.push(Job { name: "other".to_owned(), arguments: vec!["rpc".to_owned()] });
        summary(&comparison, &mut text);
        assert!(
            text.contains("## a ÷ b, turn by turn") && text.contains("| rpc | 1.00 (0.500 to 3.00) |"),
            "{text}"
        );
        assert!(!text.contains("| other |"), "{text}");
    }

    #[test]
    fn more_cpu_than_tolerated_is_told() {
        for (ours, share, expected) in [(103.0, 0.03, 0), (104.0, 0.03, 1), (90.0, 0.0, 0), (104.0, 0.05, 0)]
        {
            let comparison = with_cpu(&[("a", ours), ("b", 100.0)]);
            let sentences = worse(&comparison, Share(share));
            assert_eq!(sentences.len(), expected, "{ours}: {sentences:?}");
        }
    }
}
