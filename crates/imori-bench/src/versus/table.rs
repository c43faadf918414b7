//! A comparison as Markdown: what was compared, medians, quotients, verdicts.

use std::fmt::Write;

use crate::record::levels::Levels;
use crate::versus::comparison::{Comparison, PeerFacts};
use crate::versus::figures::{FIGURES, Figure, Spread, pair, spread, values};

/// The whole comparison.
pub(crate) fn markdown(comparison: &Comparison) -> String {
    let mut text = format!("# {}\n\n", comparison.title);
    facts(comparison, &mut text);
    for job in &comparison.settings.jobs {
        if comparison.settings.jobs.len() > 1 {
            line(&mut text, &format!("\n## {}", job.name));
        }
        medians(comparison, &job.name, &mut text);
        quotients(comparison, &job.name, &mut text);
        verdicts(comparison, &job.name, &mut text);
    }
    failures(comparison, &mut text);
    text
}

/// Whether the difference of a pair may not be told.
pub(crate) fn is_inconclusive(comparison: &Comparison) -> bool {
    let mut pairs = pairs(comparison);
    pairs.any(|pair| !pair.doubts.is_empty())
}

/// What a reader must know before the numbers.
pub(crate) fn facts(comparison: &Comparison, text: &mut String) {
    let settings = &comparison.settings;
    if let Some(run) = comparison.runs.first() {
        let machine = &run.report.machine;
        line(
            text,
            &format!(
                "- machine: {} x {}, {} MiB, {}, load before {}",
                machine.cpus,
                machine.cpu,
                machine.memory_bytes / 1_048_576,
                machine.kernel,
                settings.load_before
            ),
        );
        line(text, &format!("- load: {}", run.report.mode));
    }
    for peer in &comparison.peers {
        line(text, &format!("- {}: {}", peer.name, described(peer)));
    }
    for left in &comparison.left_out {
        line(text, &format!("- {} is left out: {}", left.peer, left.why));
    }
    line(
        text,
        &format!(
            "- {} rounds in turns, one peer at a time, each in a fresh folder; figures are medians (lowest to highest)",
            settings.rounds
        ),
    );
    let no = || "no".to_owned();
    line(
        text,
        &format!(
            "- pinned: broker {}, client {}",
            settings.cpus_broker.clone().unwrap_or_else(no),
            settings.cpus_client.clone().unwrap_or_else(no)
        ),
    );
    for job in &settings.jobs {
        line(text, &format!("- {}: `{}`", job.name, job.arguments.join(" ")));
    }
    for said in levels(comparison) {
        line(text, &format!("- {said}"));
    }
    for unequal in unequal(comparison) {
        line(text, &format!("- UNEQUAL: {unequal}"));
    }
}

/// What each broker said of the level at which it confirmed, where confirms were asked for.
fn levels(comparison: &Comparison) -> Vec<String> {
    let of_peer = |peer: &PeerFacts| {
        let mut levels: Option<Levels> = None;
        let runs = comparison.runs.iter().filter(|run| run.peer == peer.name);
        for found in runs.filter_map(|run| run.report.levels.as_ref()) {
            levels.get_or_insert_with(|| Levels::of(found.asked)).add(found);
        }
        levels.map(|levels| format!("level of {}: {} ({})", peer.name, levels.asked.name(), levels.said()))
    };
    comparison.peers.iter().filter_map(of_peer).collect()
}

fn described(peer: &PeerFacts) -> String {
    let version = peer.version.as_deref().unwrap_or("not started here");
    match &peer.sha256 {
        Some(sum) => format!("{version}, by {}, sha256 {}", peer.protocol, sum.get(..12).unwrap_or(sum)),
        None => format!("{version}, by {}", peer.protocol),
    }
}

/// In what the sides are not alike.
fn unequal(comparison: &Comparison) -> Vec<String> {
    let mut found = Vec::new();
    let mut protocols: Vec<&str> = comparison.peers.iter().map(|peer| peer.protocol.as_str()).collect();
    protocols.sort_unstable();
    protocols.dedup();
    if protocols.len() > 1 {
        found.push(format!("the peers are spoken to by {}", protocols.join(", ")));
    }
    let mut levels: Vec<String> = comparison
        .runs
        .iter()
        .map(|run| run.report.asked.get("level").map_or_else(|| "none".to_owned(), ToString::to_string))
        .collect();
    levels.sort();
    levels.dedup();
    if levels.len() > 1 {
        found.push(format!("the levels are {}", levels.join(", ")));
    }
    found
}

fn medians(comparison: &Comparison, job: &str, text: &mut String) {
    let names: Vec<&str> = comparison.peers.iter().map(|peer| peer.name.as_str()).collect();
    head(text, "figure", &names);
    for figure in &FIGURES {
        let spreads: Vec<Option<Spread>> =
            names.iter().map(|name| spread_of(comparison, name, job, figure)).collect();
        if spreads.iter().any(Option::is_some) {
            let cells: Vec<String> = spreads.iter().map(|spread| shown(figure, spread.as_ref())).collect();
            row(text, figure.title, &cells);
        }
    }
}

/// The first divided by each other.
fn quotients(comparison: &Comparison, job: &str, text: &mut String) {
    let Some((first, others)) = comparison.peers.split_first() else { return };
    if others.is_empty() {
        return;
    }
    let titles: Vec<String> = others.iter().map(|other| format!("{} ÷ {}", first.name, other.name)).collect();
    let titles: Vec<&str> = titles.iter().map(String::as_str).collect();
    head(text, "quotient of medians", &titles);
    for figure in &FIGURES {
        let ours = spread_of(comparison, &first.name, job, figure);
        let cells: Vec<String> = others
            .iter()
            .map(|other| quotient(ours, spread_of(comparison, &other.name, job, figure)))
            .collect();
        if cells.iter().any(|cell| !cell.is_empty()) {
            let better = if figure.more_is_better { "above" } else { "below" };
            row(text, &format!("{} (better {better} 1)", figure.title), &cells);
        }
    }
}

fn verdicts(comparison: &Comparison, job: &str, text: &mut String) {
    let Some((first, others)) = comparison.peers.split_first() else { return };
    text.push('\n');
    for other in others {
        let Some(pair) = pair(comparison, job, &first.name, &other.name) else { continue };
        let sure = match &pair.always_better {
            Some(name) => format!("{name} is better in every turn"),
            None => "neither is better in every turn".to_owned(),
        };
        let verdict = match pair.doubts.is_empty() {
            true => sure,
            false => format!("inconclusive: {}; {sure}", pair.doubts.join(", ")),
        };
        let difference = pair.difference;
        line(
            text,
            &format!(
                "- {} against {}: {verdict}; {} less its, turn by turn: {} ({} to {})",
                pair.other,
                pair.first,
                pair.title,
                number(difference.median),
                number(difference.low),
                number(difference.high)
            ),
        );
    }
}

fn failures(comparison: &Comparison, text: &mut String) {
    let broken = comparison.runs.iter().filter(|run| !run.counts()).map(|run| {
        let (outcome, ledger) = (run.report.outcome, run.report.ledger);
        let level = run.report.levels.as_ref().and_then(Levels::complaint);
        let level = level.map_or_else(String::new, |said| format!(", {said}"));
        format!(
            "{}, {}, turn {}: does not count, {outcome:?}, {ledger:?}{level}",
            run.peer, run.job, run.turn
        )
    });
    let failed = comparison.failures.iter().map(|failure| {
        let job = failure.job.as_deref().unwrap_or("start");
        format!("{}, {job}, turn {}: {}", failure.peer, failure.turn, failure.why)
    });
    let all: Vec<String> = failed.chain(broken).collect();
    if !all.is_empty() {
        line(text, "\n## What did not go well\n");
        for one in all {
            line(text, &format!("- {}", one.replace('\n', "\n  ")));
        }
    }
}

fn pairs(comparison: &Comparison) -> impl Iterator<Item = crate::versus::figures::Pair> + '_ {
    let jobs = comparison.settings.jobs.iter();
    jobs.flat_map(move |job| {
        let first = comparison.peers.first();
        let others = comparison.peers.iter().skip(1);
        others.filter_map(move |other| pair(comparison, &job.name, &first?.name, &other.name))
    })
}

/// How the values of one peer lie.
pub(crate) fn spread_of(comparison: &Comparison, peer: &str, job: &str, figure: &Figure) -> Option<Spread> {
    spread(values(comparison, peer, job, figure).into_iter().map(|(_, value)| value))
}

fn quotient(ours: Option<Spread>, theirs: Option<Spread>) -> String {
    match (ours, theirs) {
        (Some(ours), Some(theirs)) if theirs.median > 0.0 => number(ours.median / theirs.median),
        _ => String::new(),
    }
}

/// A median with its range.
pub(crate) fn shown(figure: &Figure, spread: Option<&Spread>) -> String {
    let Some(spread) = spread else { return "n/a".to_owned() };
    let [median, low, high] =
        [spread.median, spread.low, spread.high].map(|value| number(value / figure.scale));
    match spread.count {
        1 => median,
        _ => format!("{median} ({low} to {high})"),
    }
}

/// Three digits at least, and groups of three with a space between.
pub(crate) fn number(value: f64) -> String {
    let size = value.abs();
    if size < 100.0 {
        let digits = if size < 1.0 {
            3
        } else if size < 10.0 {
            2
        } else {
            1
        };
        let text = format!("{value:.digits$}");
        return if value == 0.0 { "0".to_owned() } else { text };
    }
    let digits = format!("{size:.0}");
    let mut shown = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            shown.push(' ');
        }
        shown.push(digit);
    }
    if value < 0.0 { format!("-{shown}") } else { shown }
}

/// The head of a table.
pub(crate) fn head(text: &mut String, first: &str, others: &[&str]) {
    text.push('\n');
    row(text, first, others);
    line(text, &format!("|{}", "---|".repeat(others.len() + 1)));
}

/// A row of a table.
pub(crate) fn row(text: &mut String, first: &str, cells: &[impl AsRef<str>]) {
    let cells: Vec<&str> = cells.iter().map(AsRef::as_ref).collect();
    line(text, &format!("| {first} | {} |", cells.join(" | ")));
}

/// A line of text.
pub(crate) fn line(text: &mut String, words: &str) {
    // Text in memory can always be added to.
    let _ = writeln!(text, "{words}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Level;
    use crate::versus::sample::comparison;

    #[test]
    fn numbers_have_three_digits_and_groups() {
        for (value, expected) in [
            (0.0, "0"),
            (0.012_34, "0.012"),
            (1.234, "1.23"),
            (12.34, "12.3"),
            (123.4, "123"),
            (1_234_567.0, "1 234 567"),
            (-1_234.0, "-1 234"),
        ] {
            assert_eq!(number(value), expected);
        }
    }

    #[test]
    fn a_table_has_medians_quotients_and_a_verdict() {
        let text = markdown(&comparison(&[("a", &[2_000.0, 2_010.0, 1_990.0]), ("b", &[1_000.0; 3])]));
        for part in [
            "# rpc: a beside b",
            "| operations a second | 2 000 (1 990 to 2 010) | 1 000 (1 000 to 1 000) |",
            "| operations a second (better above 1) | 2.00 |",
            "| p50, us (better below 1) | 0.500 |",
            "- b against a: a is better in every turn; operations a second less its, turn by turn: -1 000",
        ] {
            assert!(text.contains(part), "`{part}` is not in\n{text}");
        }
    }

    #[test]
    fn what_is_unlike_is_in_the_head() {
        let mut comparison = comparison(&[("a", &[1.0]), ("b", &[1.0])]);
        comparison.peers[1].protocol = "nats".to_owned();
        comparison.runs[1].report.asked.insert("level".to_owned(), "disk".into());
        for (run, said) in comparison.runs.iter_mut().zip([Some(Level::Disk), None]) {
            let mut levels = Levels::of(Level::Disk);
            levels.note(said);
            run.report.levels = Some(levels);
        }
        let text = markdown(&comparison);
        for part in [
            "level of a: disk (said by the broker: disk)",
            "level of b: disk (not said by the broker)",
            "UNEQUAL: the peers are spoken to by nats, stomp",
            "UNEQUAL: the levels are \"disk\", \"memory\"",
        ] {
            assert!(text.contains(part), "`{part}` is not in\n{text}");
        }
    }
}
