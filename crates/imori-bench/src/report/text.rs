//! The text form of a report: mode first, verdict last.

use std::fmt::{self, Display};

use crate::page::markup::plain_line;
use crate::page::quantity::{bytes, grouped, optional, percent, significant, time};
use crate::page::verdict::{VERDICTS, letter, name};
use crate::record::latency::{Latency, LatencyKind};
use crate::record::report::{Broker, OpenLoop, Outcome, RateStep, Report};
use crate::record::series::Stalls;
use crate::report::drift::Drift;

/// The most stalls listed; the files have all.
const STALLS_SHOWN: usize = 10;

impl Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mode, scenario) = (plain_line(&self.mode), plain_line(&self.scenario));
        writeln!(f, "{mode}  {scenario}  {} ({})", plain_line(&self.url), plain_line(&self.server))?;
        let asked_level = self.asked.get("level").map_or_else(|| "not said".to_owned(), plain);
        let level = match &self.levels {
            Some(levels) => format!("{asked_level} ({})", levels.said()),
            None => asked_level,
        };
        let others = self.asked.iter().filter(|(name, _)| *name != "level");
        let asked: Vec<String> = others
            .map(|(name, value)| format!("{} {}", plain_line(name), plain_line(&plain(value))))
            .collect();
        writeln!(f, "level        {level}  asked for: {}", asked.join(", "))?;
        write!(f, "throughput   {} {}/s", grouped(self.per_second), plain_line(&self.unit))?;
        if let Some(open) = &self.open {
            write!(f, " {}", offered(self, open))?;
        }
        match self.publishes_per_second() {
            Some(rate) => write!(f, "  {} publishes/s, each to {} subscribers", grouped(rate), self.fan_out)?,
            None => write!(f, "  {} deliveries/s", grouped(self.deliveries_per_second))?,
        }
        writeln!(
            f,
            "  ({} {} in {:.2} s)",
            grouped(self.operations as f64),
            plain_line(&self.unit),
            self.seconds
        )?;
        self.write_times(f)?;
        self.write_drift(f)?;
        match &self.broker {
            Some(broker) => self.write_broker(f, broker)?,
            None => writeln!(f, "broker       n/a (name its process with --pid)")?,
        }
        writeln!(
            f,
            "client       {:.2} CPU-s  {} us each  RSS {}",
            self.client.cpu_s,
            optional(self.client.cpu_us_per_op, |value| format!("{value:.2}")),
            bytes(self.client.rss_end as f64)
        )?;
        if let Some(stalls) = &self.stalls {
            write_stalls(f, stalls)?;
        }
        self.write_ledger(f)?;
        let counters: Vec<String> = self
            .counters
            .iter()
            .map(|count| format!("{} {}", plain_line(&count.name), count.value))
            .collect();
        if !counters.is_empty() {
            writeln!(f, "counters     {}", counters.join("  "))?;
        }
        for note in &self.notes {
            writeln!(f, "note         {}", plain_line(note))?;
        }
        for part in &self.parts {
            write_part(f, part)?;
        }
        write_steps(f, &self.steps)?;
        for kept in &self.objectives {
            let word = if kept.is_kept { "kept" } else { "BROKEN" };
            let (objective, found) = (plain_line(&kept.objective), plain_line(&kept.found));
            writeln!(f, "objective    {objective}  {word}: {found}")?;
        }
        writeln!(f, "verdict      {}", ending(self).1)
    }
}

impl Report {
    fn write_times(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(latency) = &self.latency {
            let (name, warning) = match (&self.open, latency.kind) {
                (Some(_), _) | (None, LatencyKind::Response) => ("response", ""),
                (None, LatencyKind::Service) => ("service", "  (closed: waiting to be sent is not in it)"),
                (None, LatencyKind::Queueing) => {
                    ("queueing", "  (closed: mostly the wait behind one another)")
                }
            };
            writeln!(f, "{name:<12} {}{warning}", percentiles(latency))?;
        }
        for (name, latency) in [("service", &self.service), ("confirm", &self.confirm)] {
            if let Some(latency) = latency {
                writeln!(f, "{name:<12} {}", percentiles(latency))?;
            }
        }
        if let Some(sync) = self.disk_sync.as_ref().filter(|_| self.is_durable()) {
            writeln!(
                f,
                "disk sync    {}  (4 KiB and a sync, ten times a second beside the load)",
                percentiles(sync)
            )?;
        }
        for (receiver, latency) in &self.spread {
            let receiver = plain_line(receiver.split(' ').next().unwrap_or_default());
            writeln!(f, "{receiver:<12} {}", percentiles(latency))?;
        }
        Ok(())
    }

    fn write_drift(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let p50 = Drift::of_p50(self).map(|drift| format!("p50 {}", drift.show(time)));
        let p99 = Drift::of_p99(self).map(|drift| format!("p99 {}", drift.show(time)));
        let memory = Drift::of_memory(self).map(|drift| format!("RSS {}", drift.show(bytes)));
        let shown: Vec<String> = p50.into_iter().chain(p99).chain(memory).collect();
        if shown.is_empty() {
            return Ok(());
        }
        writeln!(f, "drift        {}  (first and last quarter of the run)", shown.join("  "))
    }

    fn write_broker(&self, f: &mut fmt::Formatter<'_>, broker: &Broker) -> fmt::Result {
        write!(
            f,
            "broker       {} CPU-s/M deliveries  {:.2} CPU-s  {} {}/CPU-s",
            optional(broker.cpu_s_per_million_deliveries, |value| format!("{value:.2}")),
            broker.cpu_s,
            optional(broker.per_cpu_s, grouped),
            plain_line(&self.unit),
        )?;
        writeln!(
            f,
            "  RSS {} -> {} (peak {})",
            bytes(broker.rss_start as f64),
            bytes(broker.rss_end as f64),
            bytes(broker.rss_peak as f64)
        )?;
        let (switches, written, read) = (broker.context_switches, broker.write_bytes, broker.read_bytes);
        if switches == 0 && written == 0 && read == 0 {
            return Ok(());
        }
        let each = |count: u64| match self.deliveries {
            0 => "n/a".to_owned(),
            deliveries => significant(count as f64 / deliveries as f64),
        };
        writeln!(
            f,
            "system       {} context switches ({} a delivery)  disk: {} written ({} B a delivery), {} read",
            grouped(switches as f64),
            each(switches),
            bytes(written as f64),
            each(written),
            bytes(read as f64)
        )
    }

    /// Whether the run required durable messages.
    fn is_durable(&self) -> bool {
        self.levels.as_ref().is_some_and(|levels| levels.asked.is_durable())
    }

    fn write_ledger(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ledger = &self.ledger;
        let expired = match ledger.expired {
            0 => String::new(),
            expired => format!("  expired {expired}"),
        };
        writeln!(
            f,
            "ledger       sent {}  good {}  lost {}  duplicated {}  altered {}  reordered {}  foreign {}  redelivered {}  timeouts {}  late {}  unknown {}{expired}",
            ledger.sent,
            ledger.good,
            ledger.lost,
            ledger.duplicated,
            ledger.altered,
            ledger.reordered,
            ledger.foreign,
            ledger.redelivered,
            ledger.timeouts,
            ledger.late,
            ledger.unknown
        )
    }
}

/// Whether a run ended well, and a description of how it ended.
pub(crate) fn ending(report: &Report) -> (bool, String) {
    let said = match (report.outcome, report.is_broken()) {
        (Outcome::Broken, _) => "the broker went away; what was measured until then is above",
        (Outcome::Stopped, _) => "stopped by hand; what was measured until then is above",
        (_, true) if report.ledger.is_broken() => "ledger broken",
        (_, true) => "level broken: the broker confirmed at a lower level than was asked for",
        (Outcome::Blocked, false) => "blocked: nothing moved for 10 s although something was due",
        (Outcome::Done, false) if report.objectives.iter().any(|kept| !kept.is_kept) => "objective broken",
        (Outcome::Done, false) => "ok",
    };
    (said == "ok", said.to_owned())
}

/// The offered rate: deliveries that are due, or of a soak the operations that cause them.
pub(crate) fn offered(report: &Report, open: &OpenLoop) -> String {
    match &*report.scenario {
        "soak" => format!("for {} calls and publishes offered", grouped(open.rate)),
        _ => format!("of {} offered", grouped(open.rate * report.fan_out.max(1) as f64)),
    }
}

/// Formats a JSON value as a word.
pub(crate) fn plain(value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::String(text) => text.clone(),
        serde_json::Value::Null => "none".to_owned(),
        other => other.to_string(),
    }
}

fn percentiles(latency: &Latency) -> String {
    let columns = [
        ("p50", latency.p50_us),
        ("p99", latency.p99_us),
        ("p99.9", latency.p999_us),
        ("p99.99", latency.p9999_us),
        ("max", latency.max_us),
    ];
    let shown: Vec<String> =
        columns.iter().filter_map(|(name, value)| Some(format!("{name} {}", time((*value)?)))).collect();
    if shown.is_empty() { "too few samples".to_owned() } else { shown.join("  ") }
}

/// Writes one line about a part of a mix.
fn write_part(f: &mut fmt::Formatter<'_>, part: &Report) -> fmt::Result {
    let times =
        part.latency.as_ref().map_or_else(String::new, |latency| format!("  {}", percentiles(latency)));
    writeln!(
        f,
        "part         {}  {}  {} {}/s{times}  {}",
        plain_line(&part.scenario),
        plain_line(&part.mode),
        grouped(part.per_second),
        plain_line(&part.unit),
        ending(part).1
    )
}

/// Writes the rates that a search tried.
fn write_steps(f: &mut fmt::Formatter<'_>, steps: &[RateStep]) -> fmt::Result {
    if steps.is_empty() {
        return Ok(());
    }
    writeln!(f, "search       {:>10} {:>10} {:>9}", "offered/s", "done/s", "p99")?;
    for step in steps {
        let said = if step.is_kept { "kept".to_owned() } else { plain_line(&step.broken.join("; ")) };
        let (rate, done) = (grouped(step.rate), grouped(step.done));
        writeln!(f, "             {rate:>10} {done:>10} {:>9}  {said}", optional(step.p99_us, time))?;
    }
    Ok(())
}

fn write_stalls(f: &mut fmt::Formatter<'_>, stalls: &Stalls) -> fmt::Result {
    let within = stalls
        .available_at_50_ms
        .map_or(String::new(), |share| format!("  within 50 ms: {}", percent(share)));
    if stalls.list.is_empty() {
        return writeln!(f, "stalls       none longer than {}{within}", time(stalls.threshold_us));
    }
    let by_verdict: Vec<String> = VERDICTS
        .into_iter()
        .map(|verdict| (verdict, stalls.list.iter().filter(|stall| stall.verdict == verdict).count()))
        .filter(|(_, count)| *count > 0)
        .map(|(verdict, count)| format!("{count} {}", name(verdict)))
        .collect();
    let period = match (&stalls.period, &stalls.no_period) {
        (Some(period), _) => {
            let suspect =
                period.suspect.as_ref().map_or(String::new(), |known| format!(", as {}", plain_line(known)));
            format!(
                "each {} s ({}, {} cycles{suspect})",
                significant(period.period_s),
                percent(period.confidence),
                period.cycles
            )
        }
        (None, Some(why)) => format!("no period: {}", plain_line(why)),
        (None, None) => "no period".to_owned(),
    };
    writeln!(
        f,
        "stalls       {}  longest {}  {period}{within}",
        by_verdict.join(", "),
        time(stalls.longest_s * 1e6),
    )?;
    writeln!(f, "  {:>10} {:>9} {:>9} {:>9} {:>9}  verdict", "start", "length", "delayed", "worst", "all")?;
    for stall in stalls.list.iter().take(STALLS_SHOWN) {
        writeln!(
            f,
            "  {:>8.1} s {:>9} {:>9} {:>9} {:>7} s  {} {}: {}",
            stall.start_s,
            time(stall.length_s * 1e6),
            grouped(stall.operations as f64),
            time(stall.worst_us),
            significant(stall.delay_s),
            letter(stall.verdict),
            name(stall.verdict),
            plain_line(&stall.evidence)
        )?;
    }
    match stalls.list.len().saturating_sub(STALLS_SHOWN) as u64 + stalls.unlisted {
        0 => Ok(()),
        more => writeln!(f, "  and {} more", grouped(more as f64)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::report::Kept;
    use crate::report::sample;

    #[test]
    fn an_open_loop_is_told_in_this_order() {
        let text = sample::report().to_string();
        let expected = [
            "open 1000/s poisson  queue  nats://127.0.0.1:4222 (imori 0.1.0)",
            "level        memory  asked for: size 128",
            "throughput   1 000 deliveries/s of 1 000 offered  1 000 deliveries/s  (60 000 deliveries in 60.00 s)",
            "response     p50 200 us  p99 631 ms  p99.9 964 ms  max 1.00 s",
            "service      p50 190 us  p99 240 us  p99.9 1.00 ms  max 1.00 s",
            "broker       58.00 CPU-s/M deliveries  3.50 CPU-s  17 000 deliveries/CPU-s  RSS 19.1 MiB -> 23.8 MiB (peak 28.6 MiB)",
            "system       90 000 context switches (1.50 a delivery)  disk: 11.8 MiB written (206 B a delivery), 0 B read",
            "client       5.00 CPU-s  83.00 us each  RSS 8.58 MiB",
            "stalls       5 broker, 1 disk  longest 1.00 s  each 10.0 s (99 %, 6 cycles)  within 50 ms: 90.6 %",
            "       start    length   delayed     worst       all  verdict",
            "       5.0 s    1.00 s       990    1.00 s     500 s  D disk: all canaries fine",
            "      15.0 s    1.00 s       990    1.00 s     500 s  B broker: all canaries fine",
        ];
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(&lines[..expected.len()], &expected);
        assert!(lines.contains(&"verdict      ok"), "{text}");
    }

    #[test]
    fn a_closed_loop_says_what_it_cannot_see() {
        let mut report = sample::report();
        report.open = None;
        report.service = None;
        report.stalls = Some(Stalls { threshold_us: 20_000.0, ..Stalls::default() });
        for (kind, expected) in [
            (
                LatencyKind::Service,
                "service      p50 200 us  p99 631 ms  p99.9 964 ms  max 1.00 s  (closed: waiting",
            ),
            (LatencyKind::Queueing, "queueing     p50 200 us"),
        ] {
            report.latency.as_mut().unwrap().kind = kind;
            assert!(report.to_string().contains(expected));
        }
        assert!(report.to_string().contains("stalls       none longer than 20.0 ms\n"));
    }

    #[test]
    fn fan_out_and_soak_name_their_numbers() {
        let mut report = sample::report();
        (report.scenario, report.fan_out) = ("fan-out".into(), 10);
        (report.per_second, report.deliveries_per_second) = (10_000.0, 10_000.0);
        let text = report.to_string();
        let expected = "throughput   10 000 deliveries/s of 10 000 offered  1 000 publishes/s, each to 10 subscribers  (";
        assert!(text.contains(expected), "{text}");
        (report.scenario, report.unit, report.fan_out) = ("soak".into(), "replies and deliveries".into(), 0);
        let text = report.to_string();
        assert!(text.contains(" replies and deliveries/s for 1 000 calls and publishes offered  "), "{text}");
        let expected = "drift        p50 200 us -> 200 us (±0 %)  p99 240 us -> 240 us (±0 %)  RSS 23.8 MiB -> 23.8 MiB (±0 %)  (";
        assert!(text.contains(expected), "{text}");
    }

    #[test]
    fn what_comes_from_outside_cannot_move_the_cursor() {
        let text = sample::hostile().to_string();
        assert!(text.chars().all(|character| character == '\n' || !character.is_control()), "{text:?}");
        assert!(!text.contains('\u{202e}'));
    }

    #[test]
    fn what_a_run_had_to_keep_is_told() {
        let mut report = sample::report();
        let part = report.clone();
        report.parts.push(part);
        report.spread.push(("last subscriber".to_owned(), report.service.clone().unwrap()));
        report.confirm = report.service.clone();
        for (objective, is_kept) in [("lost=0", true), ("p99<1ms", false)] {
            let (objective, found) = (objective.to_owned(), "that".to_owned());
            report.objectives.push(Kept { objective, is_kept, found });
        }
        for (rate, broken) in [(2_000.0, vec![]), (4_000.0, vec!["p99 9 ms".to_owned(), "lost 1".to_owned()])]
        {
            report.steps.push(RateStep {
                rate,
                done: rate,
                is_kept: broken.is_empty(),
                p99_us: None,
                broken,
            });
        }
        let text = report.to_string();
        for line in [
            "confirm      p50 190 us  p99 240 us  p99.9 1.00 ms  max 1.00 s",
            "last         p50 190 us  p99 240 us  p99.9 1.00 ms  max 1.00 s",
            "part         queue  open 1000/s poisson  1 000 deliveries/s  p50 200 us  p99 631 ms  p99.9 964 ms  max 1.00 s  ok",
            "                  2 000      2 000       n/a  kept",
            "                  4 000      4 000       n/a  p99 9 ms; lost 1",
            "objective    lost=0  kept: that",
            "objective    p99<1ms  BROKEN: that",
            "verdict      objective broken",
        ] {
            assert!(text.lines().any(|other| other == line), "`{line}` is missing from:\n{text}");
        }
    }

    #[test]
    fn only_ten_stalls_are_listed() {
        let mut report = sample::report();
        let stalls = report.stalls.as_mut().unwrap();
        let one = stalls.list[0].clone();
        stalls.list.resize(25, one);
        stalls.unlisted = 3;
        let text = report.to_string();
        assert_eq!(text.matches("all canaries fine").count(), STALLS_SHOWN);
        assert!(text.contains("  and 18 more\n"));
    }

    #[test]
    fn the_verdict_says_how_it_ended() {
        for (outcome, lost, expected) in [
            (Outcome::Done, 0, "ok"),
            (Outcome::Done, 1, "ledger broken"),
            (Outcome::Blocked, 0, "blocked"),
            (Outcome::Blocked, 1, "ledger broken"),
            (Outcome::Broken, 1, "the broker went away"),
            (Outcome::Stopped, 0, "stopped by hand"),
        ] {
            let mut report = sample::report();
            report.outcome = outcome;
            report.ledger.lost = lost;
            assert!(ending(&report).1.starts_with(expected), "{outcome:?}");
        }
    }
}
