//! Scenarios `pubsub` and `fan-out`: publishers, subjects, subscribers, nothing stored.

use anyhow::Result;
use serde_json::json;

use crate::options::{AckOrder, BrokerOptions, FanOutOptions, Level, LoadOptions, PubsubOptions};
use crate::protocol::driver::{Destination, Manner};
use crate::protocol::session::driver;
use crate::scenario::oneway::Run;
use crate::scenario::shape::{Shape, cycled};
use crate::scenario::stage::Stage;
use crate::scenario::summary::{Ran, Subject, asked};
use crate::scenario::watched::Measurable;
use crate::stamp::run_id;

impl Measurable for PubsubOptions {
    fn broker(&mut self) -> &mut BrokerOptions {
        &mut self.broker
    }

    fn load(&mut self) -> &mut LoadOptions {
        &mut self.flow.load
    }

    fn check(&self) -> Result<()> {
        PubsubOptions::check(self)
    }

    fn run(&self, stage: &Stage<'_>) -> Result<Ran> {
        steady(self, "pubsub", None, stage)
    }
}

impl Measurable for FanOutOptions {
    fn broker(&mut self) -> &mut BrokerOptions {
        &mut self.broker
    }

    fn load(&mut self) -> &mut LoadOptions {
        &mut self.flow.load
    }

    fn check(&self) -> Result<()> {
        self.as_pubsub().check()
    }

    fn run(&self, stage: &Stage<'_>) -> Result<Ran> {
        steady(&self.as_pubsub(), "fan-out", Some(self.subscribers), stage)
    }
}

fn steady(
    options: &PubsubOptions,
    scenario: &'static str,
    spread_over: Option<u32>,
    stage: &Stage<'_>,
) -> Result<Ran> {
    let run = run_id() as u16;
    let driver = driver(&options.broker)?;
    // The subjects include the run's id, so that no other client publishes or subscribes to them.
    let subjects: Vec<Destination> = (0..options.subjects())
        .map(|index| Destination::Topic(format!("{}.{run:04x}.{index}", options.flow.destination)))
        .collect();
    let sources = subjects
        .iter()
        .flat_map(|subject| (0..options.subscribers).map(|offset| (subject.clone(), offset as usize)))
        .collect();
    let shape = Shape {
        subjects: cycled(&subjects, options.publishers),
        sources,
        fan_out: u64::from(options.subscribers),
        stride: options.subscribers as usize,
        size: options.size,
        is_filled_first: false,
        spread_over,
        level: Level::Memory,
        manner: Manner::default(),
        ack_order: AckOrder::Arrival,
    };
    let mut asked = asked([
        ("publishers", json!(options.publishers)),
        ("subjects", json!(options.subjects())),
        ("subscribers_each", json!(options.subscribers)),
        ("size", json!(options.size)),
        ("ack", json!(options.flow.ack())),
        ("prefetch", json!(options.flow.prefetch)),
        ("confirm", json!(options.flow.confirm)),
        ("style", json!(driver.name())),
        ("level", json!(Level::Memory)),
    ]);
    if options.flow.comparisons > 0 {
        asked.insert("comparisons".to_owned(), json!(options.flow.comparisons));
    }
    let subject = Subject {
        scenario,
        mode: options.flow.mode(),
        depth: None,
        server: String::new(),
        asked,
        unit: "deliveries",
        threads: options.broker.threads.into(),
    };
    Run::open(run, (&options.broker, stage), &options.flow, &shape, subject)?.steady()
}
