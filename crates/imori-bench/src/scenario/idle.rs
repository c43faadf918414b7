//! Scenario `idle`: connections that log in and stay idle, to measure what they cost the broker.

use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::json;

use crate::clock::Clock;
use crate::load::event_loop::{EventLoop, Role};
use crate::load::phase::{Bounds, drive};
use crate::options::IdleOptions;
use crate::protocol::driver::Heard;
use crate::protocol::session::{Session, driver};
use crate::record::report::{NamedCount, Report};
use crate::report::live::Live;
use crate::scenario::stage::Stage;
use crate::scenario::summary::{Subject, asked, report};
use crate::scenario::watched::watch_options;
use crate::watch::watching::Watch;

/// Runs the scenario.
pub(crate) fn run(options: &IdleOptions) -> Result<Report> {
    let driver = driver(&options.broker)?;
    let clock = Clock::start();
    let watch = Watch::start(clock, &watch_options(&options.broker))?;
    let live = Live::new(options.broker.progress);
    let stage = Stage::new(clock, &watch, &live);
    let mut idle = EventLoop::new((), clock)?;
    stage.phase("connect", None);
    let meter = watch.measure()?;
    let mut server = String::new();
    for index in 0..options.connections {
        let session = Session::open(driver, &options.broker.url).with_context(|| {
            format!("connection `{index}` cannot be opened; raise the limits of open files on both sides")
        })?;
        session.server().clone_into(&mut server);
        idle.add(session, IdleRole)?;
        if index % 100 == 0 {
            live.amount(u64::from(index), Some(u64::from(options.connections)));
        }
    }
    let opened = watch.measured(meter)?;
    stage.phase("hold", Some(options.hold));
    let hold = watch.measure()?;
    let bounds = Bounds { time: Some(options.hold), quiet: Duration::MAX, writes_count: false };
    drive(&mut idle, bounds, |()| false, |()| live.amount(u64::from(options.connections), None))?;
    let held = watch.measured(hold)?;
    live.clear();
    let subject = Subject {
        scenario: "idle",
        mode: format!("{} connections", options.connections),
        depth: None,
        server,
        asked: asked([
            ("connections", json!(options.connections)),
            ("hold_s", json!(options.hold.as_secs_f64())),
            ("style", json!(driver.name())),
        ]),
        unit: "connections",
        threads: 1,
    };
    let connections = u64::from(options.connections);
    let mut report = report(subject, (&options.broker, &stage), None, &opened, connections, 0);
    report.notes.clear();
    report.counters.push(NamedCount::new("still_open", idle.roles().count() as u64));
    if let Some(broker) = &mut report.broker {
        broker.rss_end = held.broker_after.rss_bytes;
        broker.rss_peak = broker.rss_peak.max(held.broker_rss_peak);
        let grown = broker.rss_end.saturating_sub(broker.rss_start);
        let idle_cpu_s = held.broker_after.cpu_seconds_since(&held.broker_before);
        report.counters.extend([
            NamedCount::new("rss_bytes_per_connection", grown / connections.max(1)),
            NamedCount::new("idle_cpu_ms_per_s", (idle_cpu_s * 1_000.0 / held.elapsed.as_secs_f64()) as u64),
        ]);
    }
    Ok(report)
}

/// A connection that sends nothing.
struct IdleRole;

impl Role for IdleRole {
    type Board = ();

    fn hear(&mut self, _heard: &Heard<'_>, _now: u64, _board: &mut (), _out: &mut Vec<u8>) {}

    fn fill(&mut self, _now: u64, _board: &mut (), _out: &mut Vec<u8>) -> bool {
        false
    }

    fn reads(&self, _unwritten: usize) -> bool {
        true
    }

    fn is_producer(&self) -> bool {
        false
    }

    fn next_due(&self) -> Option<u64> {
        None
    }

    fn cut_off(&mut self, _now: u64, _board: &mut ()) {}

    fn reopened(&mut self, _now: u64, _board: &mut ()) {}

    fn tick(&mut self, _now: u64, _board: &mut ()) {}
}
