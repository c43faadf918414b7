//! A report as a few lines of text: mode first, ledger last.

use std::fmt::{self, Display};

use crate::record::latency::LatencyKind;
use crate::record::report::{Outcome, Report};

impl Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} {}  {} ({})", self.scenario, self.mode, self.url, self.server)?;
        let asked: Vec<String> =
            self.asked.iter().map(|(name, value)| format!("{name} {}", plain(value))).collect();
        writeln!(f, "asked        {}", asked.join(", "))?;
        if self.outcome == Outcome::Blocked {
            writeln!(f, "BLOCKED      nothing moved for 10 s although something was due")?;
        }
        writeln!(
            f,
            "throughput   {} {}/s  {} deliveries/s  ({} {} in {:.2} s)",
            grouped(self.per_second),
            self.unit,
            grouped(self.deliveries_per_second),
            grouped(self.operations as f64),
            self.unit,
            self.seconds
        )?;
        if let Some(latency) = &self.latency {
            let name = match latency.kind {
                LatencyKind::Response => "response",
                LatencyKind::Service => "service",
                LatencyKind::Queueing => "queueing",
            };
            let columns = [
                ("p50", latency.p50_us),
                ("p99", latency.p99_us),
                ("p99.9", latency.p999_us),
                ("max", latency.max_us),
            ];
            let shown: Vec<String> = columns
                .iter()
                .filter_map(|(name, value)| Some(format!("{name} {}", time((*value)?))))
                .collect();
            writeln!(f, "{name:<12} {}", shown.join("  "))?;
        }
        match &self.broker {
            Some(broker) => writeln!(
                f,
                "broker       {:.2} CPU-s  {} CPU-s/M deliveries  {} {}/CPU-s  RSS {} -> {} (peak {})",
                broker.cpu_s,
                optional(broker.cpu_s_per_million_deliveries, |value| format!("{value:.2}")),
                optional(broker.per_cpu_s, grouped),
                self.unit,
                bytes(broker.rss_start),
                bytes(broker.rss_end),
                bytes(broker.rss_peak)
            )?,
            None => writeln!(f, "broker       n/a (name its process with --pid)")?,
        }
        writeln!(
            f,
            "client       {:.2} CPU-s  {} us each  RSS {}",
            self.client.cpu_s,
            optional(self.client.cpu_us_per_op, |value| format!("{value:.2}")),
            bytes(self.client.rss_end)
        )?;
        let ledger = &self.ledger;
        writeln!(
            f,
            "ledger       sent {}  good {}  lost {}  duplicated {}  altered {}  reordered {}  foreign {}  redelivered {}  timeouts {}  late {}",
            ledger.sent,
            ledger.good,
            ledger.lost,
            ledger.duplicated,
            ledger.altered,
            ledger.reordered,
            ledger.foreign,
            ledger.redelivered,
            ledger.timeouts,
            ledger.late
        )?;
        let counters: Vec<String> =
            self.counters.iter().map(|count| format!("{} {}", count.name, count.value)).collect();
        if !counters.is_empty() {
            writeln!(f, "counters     {}", counters.join("  "))?;
        }
        for note in &self.notes {
            writeln!(f, "note         {note}")?;
        }
        let verdict = match (self.outcome, ledger.is_broken()) {
            (Outcome::Broken, _) => "the broker went away; what was measured until then is above",
            (Outcome::Stopped, _) => "stopped by hand; what was measured until then is above",
            (_, true) => "ledger broken",
            (Outcome::Blocked, false) => "blocked",
            (Outcome::Done, false) => "ok",
        };
        writeln!(f, "verdict      {verdict}")
    }
}

fn plain(value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn optional(value: Option<f64>, show: impl Fn(f64) -> String) -> String {
    value.map_or_else(|| "n/a".to_owned(), show)
}

/// A whole number with a space between groups of three digits.
fn grouped(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut shown = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            shown.push(' ');
        }
        shown.push(digit);
    }
    shown
}

fn time(micros: f64) -> String {
    match micros {
        _ if micros < 1_000.0 => format!("{micros:.0} us"),
        _ if micros < 1_000_000.0 => format!("{:.2} ms", micros / 1_000.0),
        _ => format!("{:.2} s", micros / 1_000_000.0),
    }
}

fn bytes(count: u64) -> String {
    format!("{:.1} MiB", count as f64 / 1_048_576.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_shown_for_people() {
        for (value, expected) in [(0.0, "0"), (999.6, "1 000"), (1_234_567.0, "1 234 567"), (512.0, "512")] {
            assert_eq!(grouped(value), expected);
        }
        for (micros, expected) in [(12.4, "12 us"), (1_234.0, "1.23 ms"), (2_500_000.0, "2.50 s")] {
            assert_eq!(time(micros), expected);
        }
    }
}
