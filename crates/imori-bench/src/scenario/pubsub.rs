//! Scenarios `pubsub` and `fan-out`: publishers, subjects, subscribers, nothing stored.

use anyhow::Result;
use serde_json::json;

use crate::options::{FanOutOptions, PubsubOptions};
use crate::protocol::driver::Place;
use crate::protocol::session::driver;
use crate::record::report::Report;
use crate::scenario::oneway::{Run, Shape, cycled};
use crate::scenario::summary::{Subject, asked};
use crate::stamp::run_id;

/// Runs scenario `pubsub`.
pub fn run(options: &PubsubOptions) -> Result<Report> {
    steady(options, "pubsub", None)
}

/// Runs scenario `fan-out`.
pub fn run_fan_out(options: &FanOutOptions) -> Result<Report> {
    steady(&options.as_pubsub(), "fan-out", Some(options.subscribers))
}

fn steady(options: &PubsubOptions, scenario: &'static str, spread_over: Option<u32>) -> Result<Report> {
    options.check()?;
    let run = run_id() as u16;
    // A subject of this run only, so that nobody else hears or says anything on it.
    let subjects: Vec<Place> = (0..options.subjects())
        .map(|index| Place::Topic(format!("{}.{run:04x}.{index}", options.flow.destination)))
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
    };
    let subject = Subject {
        scenario,
        mode: options.flow.mode(),
        depth: None,
        server: String::new(),
        asked: asked([
            ("publishers", json!(options.publishers)),
            ("subjects", json!(options.subjects())),
            ("subscribers_each", json!(options.subscribers)),
            ("size", json!(options.size)),
            ("ack", json!(options.flow.ack)),
            ("prefetch", json!(options.flow.prefetch)),
            ("confirm", json!(options.flow.confirm)),
            ("style", json!(driver(&options.broker).name())),
            ("level", json!("memory")),
        ]),
        unit: "deliveries",
        threads: options.broker.threads.into(),
    };
    Run::open(run, &options.broker, &options.flow, &shape, subject)?.steady()
}
