//! Scenario `queue`: publishers, queues that keep messages, consumers that acknowledge them.

use anyhow::Result;
use serde_json::json;

use crate::options::{BrokerOptions, LoadOptions, QueueOptions, QueuePhase};
use crate::protocol::driver::Place;
use crate::protocol::session::driver;
use crate::scenario::fill_drain;
use crate::scenario::oneway::Run;
use crate::scenario::shape::{Shape, cycled};
use crate::scenario::stage::Stage;
use crate::scenario::summary::{Ran, Subject, asked};
use crate::scenario::watched::Measurable;
use crate::stamp::run_id;

impl Measurable for QueueOptions {
    fn broker(&mut self) -> &mut BrokerOptions {
        &mut self.broker
    }

    fn load(&mut self) -> &mut LoadOptions {
        &mut self.flow.load
    }

    fn check(&self) -> Result<()> {
        driver(&self.broker).check_queues()?;
        QueueOptions::check(self)
    }

    fn run(&self, stage: &Stage<'_>) -> Result<Ran> {
        run(self, stage)
    }
}

fn run(options: &QueueOptions, stage: &Stage<'_>) -> Result<Ran> {
    let run = run_id() as u16;
    let name = &options.flow.destination;
    let queues: Vec<Place> =
        (0..options.queues).map(|index| Place::Queue(format!("{name}-{index}"))).collect();
    let is_filled_first = options.phase == QueuePhase::FillDrain;
    let shape = Shape {
        subjects: cycled(&queues, options.publishers),
        sources: cycled(&queues, options.consumers).into_iter().map(|queue| (queue, 0)).collect(),
        fan_out: 1,
        stride: 1,
        size: options.size,
        is_filled_first,
        spread_over: None,
    };
    let subject = Subject {
        scenario: "queue",
        mode: if is_filled_first { "CLOSED fill, then drain".to_owned() } else { options.flow.mode() },
        depth: None,
        server: String::new(),
        asked: asked([
            ("publishers", json!(options.publishers)),
            ("queues", json!(options.queues)),
            ("consumers", json!(options.consumers)),
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
    let run = Run::open(run, (&options.broker, stage), &options.flow, &shape, subject)?;
    match is_filled_first {
        true => fill_drain::run(run, &shape),
        false => run.steady(),
    }
}
