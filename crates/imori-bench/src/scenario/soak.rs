//! Scenario `soak`: requests, pub/sub, fan-out and queues at once, each checked as in its own scenario.

use std::time::Duration;

use anyhow::{Result, anyhow};
use serde_json::json;

use crate::amount::Amount;
use crate::limits::{CALL_TIMEOUT, TICK};
use crate::options::{
    AckMode, AckOrder, BrokerOptions, FanOutOptions, FlowOptions, LoadOptions, PubsubOptions, QueueOptions,
    QueuePhase, Rate, ReplyKind, RpcOptions, SoakOptions,
};
use crate::protocol::session::driver;
use crate::record::Timeline;
use crate::record::latency::LatencyKind;
use crate::record::ledger::Ledger;
use crate::record::levels::Levels;
use crate::record::report::{OpenLoop, Outcome};
use crate::report::live::Live;
use crate::scenario::stage::Stage;
use crate::scenario::summary::{Ran, asked};
use crate::scenario::watched::Measurable;

/// The most unconfirmed messages per publisher to queues.
const UNCONFIRMED: u32 = 256;
/// Subscribers of the fan-out.
const FAN_OUT: u32 = 10;

impl Measurable for SoakOptions {
    fn broker(&mut self) -> &mut BrokerOptions {
        &mut self.broker
    }

    fn load(&mut self) -> &mut LoadOptions {
        &mut self.load
    }

    fn check(&self) -> Result<()> {
        SoakOptions::check(self)?;
        match self.keep.level.is_durable() {
            true => driver(&self.broker)?.check_queues(),
            false => Ok(()),
        }
    }

    fn run(&self, stage: &Stage<'_>) -> Result<Ran> {
        let parts = parts(self)?;
        stage.phase("soak", length(&self.load));
        let ran: Vec<Result<Ran>> = std::thread::scope(|scope| {
            let run = |part| {
                let (clock, watch) = (stage.clock, stage.watch);
                scope.spawn(move || Part::run(part, &Stage::new(clock, watch, &Live::silent())))
            };
            let threads: Vec<_> = parts.iter().map(run).collect();
            while threads.iter().any(|thread| !thread.is_finished()) {
                std::thread::sleep(TICK);
                stage.live.amount(stage.clock.now() / 1_000_000_000, None);
            }
            let ended = threads.into_iter().map(|thread| thread.join());
            ended.map(|ran| ran.unwrap_or_else(|_| Err(anyhow!("a part of the soak panicked")))).collect()
        });
        together(self, ran.into_iter().collect::<Result<_>>()?)
    }
}

/// Length of a soak with its warm-up; `None` if a count ends it.
fn length(load: &LoadOptions) -> Option<Duration> {
    let measured = load.measured(None, 0);
    match (load.warmup(measured), measured) {
        (Amount::Time(warmup), Amount::Time(time)) => Some(warmup + time),
        _ => None,
    }
}

/// A scenario as a part of the mix.
enum Part {
    Rpc(RpcOptions),
    Pubsub(PubsubOptions),
    FanOut(FanOutOptions),
    Queue(QueueOptions),
}

impl Part {
    fn run(&self, stage: &Stage<'_>) -> Result<Ran> {
        match self {
            Part::Rpc(options) => options.run(stage),
            Part::Pubsub(options) => options.run(stage),
            Part::FanOut(options) => options.run(stage),
            Part::Queue(options) => options.run(stage),
        }
    }
}

/// The parts that the protocol supports, each with its share of the rate.
fn parts(options: &SoakOptions) -> Result<Vec<Part>> {
    let driver = driver(&options.broker)?;
    let has_queues = driver.check_queues().is_ok();
    let has_confirms = driver.check_confirms().is_ok();
    let whole = if has_queues { 1.0 } else { 0.8 };
    let broker = BrokerOptions { threads: 1, ..options.broker.clone() };
    let load = |share: f64, seed: u64| LoadOptions {
        rate: options.load.open_rate().map(|rate| Rate::Of(rate * share / whole)),
        seed: options.load.seed.wrapping_add(seed),
        slo: None,
        ..options.load.clone()
    };
    let flow = |share: f64, seed: u64, name: &str| FlowOptions {
        load: load(share, seed),
        messages: None,
        ack: Some(AckMode::Auto),
        prefetch: None,
        window: u64::MAX,
        confirm: None,
        destination: format!("imori-bench-soak-{name}"),
        comparisons: 0,
    };
    let mut parts = vec![
        Part::Rpc(RpcOptions {
            broker: broker.clone(),
            requesters: options.connections,
            responders: options.connections,
            load: load(0.4, 0),
            requests: None,
            size: options.size,
            depth: None,
            reply: ReplyKind::TempQueue,
            destination: "imori-bench-soak-rpc".to_owned(),
            independent: false,
            timeout: CALL_TIMEOUT,
        }),
        Part::Pubsub(PubsubOptions {
            broker: broker.clone(),
            flow: flow(0.3, 1, "pubsub"),
            publishers: options.connections,
            subjects: None,
            subscribers: 1,
            size: options.size,
        }),
        Part::FanOut(FanOutOptions {
            broker: broker.clone(),
            flow: flow(0.1, 2, "fan-out"),
            subscribers: FAN_OUT,
            size: options.size,
        }),
    ];
    if has_queues {
        parts.push(Part::Queue(QueueOptions {
            broker,
            flow: FlowOptions {
                ack: Some(AckMode::ClientIndividual),
                confirm: has_confirms.then_some(UNCONFIRMED),
                ..flow(0.2, 3, "queue")
            },
            publishers: options.connections,
            consumers: options.connections,
            queues: options.connections,
            size: options.size,
            phase: QueuePhase::Steady,
            keep: options.keep.clone(),
            ack_order: AckOrder::Arrival,
            priorities: None,
            expiration: None,
        }));
    }
    Ok(parts)
}

/// Merges the reports of the parts into one, which also lists them.
fn together(options: &SoakOptions, parts: Vec<Ran>) -> Result<Ran> {
    let mut timeline = Timeline::new();
    let mut ledger = Ledger::default();
    let mut levels: Option<Levels> = None;
    let mut reports = Vec::new();
    for mut part in parts {
        timeline.add(&mut part.timeline);
        ledger.add(&part.report.ledger);
        // Only queues request confirms.
        if let Some(part) = &part.report.levels {
            levels.get_or_insert_with(|| Levels::of(part.asked)).add(part);
        }
        reports.push(part.report);
    }
    let mut report = reports.first().cloned().ok_or_else(|| anyhow!("a soak has parts"))?;
    report.scenario = "soak".into();
    report.unit = "replies and deliveries".into();
    report.mode = options.load.open_mode().unwrap_or_default();
    report.open =
        report.open.map(|open| OpenLoop { rate: options.load.open_rate().unwrap_or(open.rate), ..open });
    report.depth = None;
    report.asked = asked([
        ("connections", json!(options.connections)),
        ("size", json!(options.size)),
        ("parts", json!(reports.iter().map(|part| part.scenario.clone()).collect::<Vec<_>>())),
        ("style", json!(driver(&options.broker)?.name())),
        ("level", json!(options.keep.level)),
    ]);
    report.outcome = worst(reports.iter().map(|part| part.outcome));
    report.operations = reports.iter().map(|part| part.operations).sum();
    report.per_second = reports.iter().map(|part| part.per_second).sum();
    report.deliveries = reports.iter().map(|part| part.deliveries).sum();
    report.deliveries_per_second = reports.iter().map(|part| part.deliveries_per_second).sum();
    report.client.threads = reports.len() as u32;
    report.client.cpu_us_per_op =
        (report.operations > 0).then(|| report.client.cpu_s * 1e6 / report.operations as f64);
    report.notes.clear();
    for note in reports.iter().flat_map(|part| &part.notes) {
        if !report.notes.contains(note) {
            report.notes.push(note.clone());
        }
    }
    report.counters.clear();
    report.ledger = ledger;
    report.levels = levels;
    if let Some(broker) = &mut report.broker {
        // Each part measured the broker's cost of the whole soak.
        broker.cpu_s_per_million_deliveries =
            (report.deliveries > 0).then(|| broker.cpu_s * 1e6 / report.deliveries as f64);
        broker.per_cpu_s = (broker.cpu_s > 0.0).then(|| report.operations as f64 / broker.cpu_s);
    }
    let mut ran = Ran::new(report, timeline, &options.load, LatencyKind::Response, 0);
    for (index, row) in ran.report.rows.iter_mut().enumerate() {
        row.in_flight = reports.iter().filter_map(|part| part.rows.get(index)).map(|row| row.in_flight).sum();
    }
    ran.report.parts = reports;
    Ok(ran)
}

/// The worst outcome of the parts.
fn worst(outcomes: impl Iterator<Item = Outcome>) -> Outcome {
    let rank = |outcome: &Outcome| match outcome {
        Outcome::Done => 0,
        Outcome::Blocked => 1,
        Outcome::Stopped => 2,
        Outcome::Broken => 3,
    };
    outcomes.max_by_key(rank).unwrap_or(Outcome::Done)
}
