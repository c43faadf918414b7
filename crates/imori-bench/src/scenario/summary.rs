//! Builds the report of a scenario from its measurements.

use std::time::Duration;

use serde_json::{Map, Value};

use crate::limits::SHORT_RUN;
use crate::options::{BrokerOptions, LoadOptions};
use crate::probe::process::cpus_allowed;
use crate::record::Timeline;
use crate::record::latency::LatencyKind;
use crate::record::ledger::Ledger;
use crate::record::machine::Machine;
use crate::record::report::{Broker, Client, FORMAT, OpenLoop, Outcome, Report};
use crate::scenario::objectives;
use crate::scenario::stage::Stage;
use crate::watch::cost::Cost;

/// Lead time before the schedule of an open loop begins, in which all connections get ready.
pub(crate) const LEAD: Duration = Duration::from_millis(5);

/// Facts of a scenario that are known before it is measured.
#[derive(Debug, Clone)]
pub(crate) struct Subject {
    pub(crate) scenario: &'static str,
    pub(crate) mode: String,
    pub(crate) depth: Option<String>,
    pub(crate) server: String,
    pub(crate) asked: Map<String, Value>,
    pub(crate) unit: &'static str,
    /// Load threads.
    pub(crate) threads: u32,
}

/// Creates a report; the scenario fills in ledger, latency and counters.
pub(crate) fn report(
    subject: Subject,
    (options, stage): (&BrokerOptions, &Stage<'_>),
    load: Option<&LoadOptions>,
    cost: &Cost,
    operations: u64,
    deliveries: u64,
) -> Report {
    let seconds = cost.elapsed.as_secs_f64();
    let client_cpu_s = cost.client_after.cpu_seconds_since(&cost.client_before);
    let pids = stage.watch.pids();
    let broker = (!pids.is_empty() && !cost.is_broker_gone).then(|| {
        let (before, after) = (&cost.broker_before, &cost.broker_after);
        let cpu_s = cost.broker_after.cpu_seconds_since(&cost.broker_before);
        Broker {
            pids: pids.to_vec(),
            processes: cost.broker_after.processes,
            threads: cost.broker_after.threads,
            cpus_allowed: pids.first().and_then(|pid| cpus_allowed(*pid)),
            context_switches: after.context_switches.saturating_sub(before.context_switches),
            read_bytes: after.read_bytes.saturating_sub(before.read_bytes),
            write_bytes: after.write_bytes.saturating_sub(before.write_bytes),
            cpu_s,
            cpu_s_per_million_deliveries: ratio(cpu_s * 1e6, deliveries as f64),
            per_cpu_s: ratio(operations as f64, cpu_s),
            rss_start: cost.broker_before.rss_bytes,
            rss_peak: cost.broker_rss_peak,
            rss_end: cost.broker_after.rss_bytes,
        }
    });
    let mut notes = Vec::new();
    if cost.elapsed < SHORT_RUN {
        notes.push(format!("measured for {seconds:.1} s only; publish nothing below 10 s"));
    }
    let cpus = std::thread::available_parallelism().map_or(1, |cpus| cpus.get() as u32);
    if client_cpu_s > 0.9 * seconds * f64::from(subject.threads.min(cpus)) {
        notes.push("the client was at its own ceiling; throughput is not the broker's".to_owned());
    }
    Report {
        format: FORMAT,
        tool: env!("CARGO_PKG_VERSION").into(),
        scenario: subject.scenario.into(),
        mode: subject.mode,
        depth: subject.depth,
        command: Vec::new(),
        seed: load.map_or(0, |load| load.seed),
        started_at: 0.0,
        machine: Machine::default(),
        open: load.and_then(|load| {
            load.open_rate().map(|rate| OpenLoop { rate, arrival: load.arrival.to_string() })
        }),
        url: options.url.to_string(),
        server: subject.server,
        asked: subject.asked,
        outcome: Outcome::Done,
        seconds,
        unit: subject.unit.into(),
        operations,
        per_second: ratio(operations as f64, seconds).unwrap_or(0.0),
        deliveries,
        fan_out: 0,
        deliveries_per_second: ratio(deliveries as f64, seconds).unwrap_or(0.0),
        latency: None,
        service: None,
        curve: Vec::new(),
        service_curve: Vec::new(),
        confirm: None,
        spread: Vec::new(),
        objectives: Vec::new(),
        steps: Vec::new(),
        rows: Vec::new(),
        heat: None,
        stalls: None,
        broker,
        client: Client {
            threads: subject.threads,
            cpus_allowed: cpus_allowed(std::process::id()),
            cpu_s: client_cpu_s,
            cpu_us_per_op: ratio(client_cpu_s * 1e6, operations as f64),
            rss_end: cost.client_after.rss_bytes,
        },
        ledger: Ledger::default(),
        levels: None,
        disk_sync: None,
        counters: Vec::new(),
        parts: Vec::new(),
        notes,
    }
}

/// The result of a scenario: the report, and the timeline behind it.
pub(crate) struct Ran {
    /// The report, except for what the watch adds.
    pub(crate) report: Report,
    /// The finished timeline.
    pub(crate) timeline: Timeline,
}

impl Ran {
    /// Adds the timeline's results to a report with a closed ledger. Each operation sent is due
    /// `fan_out` times, and the latencies of a closed loop are of `closed_kind`.
    pub(crate) fn new(
        mut report: Report,
        mut timeline: Timeline,
        load: &LoadOptions,
        closed_kind: LatencyKind,
        fan_out: u64,
    ) -> Ran {
        timeline.finish();
        let kind = if report.open.is_some() { LatencyKind::Response } else { closed_kind };
        report.latency = Some(timeline.total().summary(kind));
        report.curve = timeline.total().curve();
        if timeline.service().samples() > 0 {
            report.service = Some(timeline.service().summary(LatencyKind::Service));
            report.service_curve = timeline.service().curve();
        }
        if timeline.confirms().samples() > 0 {
            report.confirm = Some(timeline.confirms().summary(kind));
        }
        report.fan_out = fan_out;
        report.rows = timeline.rows(fan_out);
        report.heat = timeline.heat(report.seconds);
        report.objectives =
            load.slo.as_ref().map(|slo| objectives::judge(slo, &report, &timeline)).unwrap_or_default();
        Ran { report, timeline }
    }
}

/// Options of the run, as JSON.
pub(crate) fn asked<const N: usize>(options: [(&str, Value); N]) -> Map<String, Value> {
    options.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

fn ratio(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| part / whole)
}

/// A note about operations that were due and never sent; `None` if the run ended early anyway.
pub(crate) fn unsent_note(outcome: Outcome, unsent: u64) -> Option<String> {
    let note = format!("{unsent} operations were due and never sent, for as many were under way as may be");
    (unsent > 0 && !matches!(outcome, Outcome::Broken | Outcome::Stopped)).then_some(note)
}

/// Converts a duration to nanoseconds of the run's clock.
pub(crate) fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::clock::Clock;
    use crate::report::live::Live;
    use crate::watch::watching::{Watch, WatchOptions};

    /// An empty report.
    pub(crate) fn empty() -> Report {
        let subject = Subject {
            scenario: "rpc",
            mode: String::new(),
            depth: None,
            server: String::new(),
            asked: Map::new(),
            unit: "requests",
            threads: 1,
        };
        let clock = Clock::start();
        let here = WatchOptions { host: "127.0.0.1".to_owned(), ..WatchOptions::default() };
        let watch = Watch::start(clock, &here).unwrap();
        let live = Live::silent();
        let stage = Stage::new(clock, &watch, &live);
        report(subject, (&BrokerOptions::at("nats://127.0.0.1"), &stage), None, &Cost::default(), 0, 0)
    }
}
