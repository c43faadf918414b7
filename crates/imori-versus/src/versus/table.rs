//! A comparison as Markdown: settings, medians, quotients, verdicts.

use imori_bench::record::levels::Levels;

use crate::versus::comparison::{Comparison, LeftOut, PeerFacts, Turn};
use crate::versus::figures::{FIGURES, Figure, Spread, pair, spread, values};
use crate::versus::summary::summary;
use crate::versus::text::{date, head, line, number, row, shown};

/// Renders the whole comparison.
pub(crate) fn markdown(comparison: &Comparison) -> String {
    let mut text = format!("# {}\n\n", comparison.title);
    facts(comparison, &mut text);
    summary(comparison, &mut text);
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

/// Whether the difference of any pair is inconclusive.
pub(crate) fn is_inconclusive(comparison: &Comparison) -> bool {
    let mut pairs = pairs(comparison);
    pairs.any(|pair| !pair.doubts.is_empty())
}

/// Appends the facts needed to interpret the numbers.
pub(crate) fn facts(comparison: &Comparison, text: &mut String) {
    let settings = &comparison.settings;
    if let Some(run) = comparison.runs.first() {
        line(text, &format!("- date: {}", date(comparison.started_at)));
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
        if settings.jobs.len() == 1 {
            line(text, &format!("- load: {}", run.report.mode));
        }
    }
    for peer in &comparison.peers {
        line(text, &format!("- {}: {}", peer.name, described(peer)));
    }
    for sentence in absences(&comparison.left_out) {
        line(text, &format!("- {sentence}"));
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

/// One sentence per peer and reason, with the jobs that the peer is left out of.
pub(crate) fn absences(left_out: &[LeftOut]) -> Vec<String> {
    let mut reasons: Vec<(&LeftOut, Vec<&str>)> = Vec::new();
    for left in left_out {
        let known = reasons.iter_mut().find(|(first, _)| first.peer == left.peer && first.why == left.why);
        match known {
            Some((_, jobs)) => jobs.extend(left.job.as_deref()),
            None => reasons.push((left, left.job.as_deref().into_iter().collect())),
        }
    }
    let sentence = |(left, jobs): &(&LeftOut, Vec<&str>)| match jobs.as_slice() {
        [] => format!("{} is left out: {}", left.peer, left.why),
        jobs => format!("{} is left out of {}: {}", left.peer, jobs.join(", "), left.why),
    };
    reasons.iter().map(sentence).collect()
}

/// The level that each broker reported, if confirms were requested.
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

/// The ways in which the peers were treated differently.
fn unequal(comparison: &Comparison) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for job in &comparison.settings.jobs {
        let runs = || comparison.runs.iter().filter(|run| run.job == job.name);
        let protocols = distinct(runs().map(|run| run.protocol.clone()));
        let level =
            |run: &Turn| run.report.asked.get("level").map_or_else(|| "none".to_owned(), ToString::to_string);
        let levels = distinct(runs().map(level));
        let of_both = [("the peers are spoken to by", protocols), ("the levels are", levels)];
        for (words, values) in of_both.into_iter().filter(|(_, values)| values.len() > 1) {
            let sentence = format!("{words} {}", values.join(", "));
            if !found.contains(&sentence) {
                found.push(sentence);
            }
        }
    }
    found
}

fn distinct(values: impl Iterator<Item = String>) -> Vec<String> {
    let mut values: Vec<String> = values.collect();
    values.sort();
    values.dedup();
    values
}

fn medians(comparison: &Comparison, job: &str, text: &mut String) {
    let names: Vec<&str> = comparison.peers_of(job).map(|peer| peer.name.as_str()).collect();
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

/// Appends the table of the first peer divided by each other peer.
fn quotients(comparison: &Comparison, job: &str, text: &mut String) {
    let peers: Vec<&PeerFacts> = comparison.peers_of(job).collect();
    let Some((first, others)) = peers.split_first() else { return };
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
    let peers: Vec<&PeerFacts> = comparison.peers_of(job).collect();
    let Some((first, others)) = peers.split_first() else { return };
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
        let mut peers = comparison.peers_of(&job.name);
        let first = peers.next();
        peers.filter_map(move |other| pair(comparison, &job.name, &first?.name, &other.name))
    })
}

/// Spread of a figure's values for one peer.
pub(crate) fn spread_of(comparison: &Comparison, peer: &str, job: &str, figure: &Figure) -> Option<Spread> {
    spread(values(comparison, peer, job, figure).into_iter().map(|(_, value)| value))
}

fn quotient(ours: Option<Spread>, theirs: Option<Spread>) -> String {
    match (ours, theirs) {
        (Some(ours), Some(theirs)) if theirs.median > 0.0 => number(ours.median / theirs.median),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::versus::sample::comparison;
    use imori_bench::options::Level;

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
        comparison.runs[1].protocol = "nats".to_owned();
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
