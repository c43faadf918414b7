//! Scenario `queue`: publishers, queues that store messages, and consumers that acknowledge them.

use anyhow::Result;
use serde_json::json;

use crate::options::{AckOrder, BrokerOptions, LoadOptions, QueueOptions, QueuePhase};
use crate::protocol::driver::{Destination, Manner, Queue};
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
        driver(&self.broker)?.check_queues()?;
        QueueOptions::check(self)
    }

    fn run(&self, stage: &Stage<'_>) -> Result<Ran> {
        run(self, stage)
    }
}

fn run(options: &QueueOptions, stage: &Stage<'_>) -> Result<Ran> {
    let run = run_id() as u16;
    let flow = options.acknowledged();
    let name = &options.flow.destination;
    let driver = driver(&options.broker)?;
    let level = options.keep.level;
    let mut arguments = driver.declaration(level, options.priorities);
    let said = options.keep.queue_argument.iter();
    arguments.extend(said.map(|argument| (argument.name.clone(), argument.value.clone())));
    let queue = |index| Queue { name: format!("{name}-{index}"), arguments: arguments.clone() };
    let queues: Vec<Destination> =
        (0..options.queues).map(|index| Destination::Queue(queue(index))).collect();
    let is_filled_first = options.phase == QueuePhase::FillDrain;
    let shape = Shape {
        subjects: cycled(&queues, options.publishers),
        sources: cycled(&queues, options.consumers).into_iter().map(|queue| (queue, 0)).collect(),
        fan_out: 1,
        stride: 1,
        size: options.size,
        is_filled_first,
        spread_over: None,
        level,
        manner: Manner {
            is_persistent: level.is_durable(),
            priorities: options.priorities,
            expiration: options.expiration,
            ..Manner::default()
        },
        ack_order: options.ack_order,
    };
    let mut asked = asked([
        ("publishers", json!(options.publishers)),
        ("queues", json!(options.queues)),
        ("consumers", json!(options.consumers)),
        ("size", json!(options.size)),
        ("ack", json!(flow.ack())),
        ("prefetch", json!(options.flow.prefetch)),
        ("confirm", json!(options.flow.confirm)),
        ("style", json!(driver.name())),
        ("level", json!(level)),
    ]);
    // Rarely used options are reported only if they are set.
    if options.ack_order != AckOrder::default() {
        asked.insert("ack_order".to_owned(), json!(options.ack_order));
    }
    if options.flow.comparisons > 0 {
        asked.insert("comparisons".to_owned(), json!(options.flow.comparisons));
    }
    if let Some(priorities) = options.priorities {
        asked.insert("priorities".to_owned(), json!(priorities));
    }
    if let Some(expiration) = options.expiration {
        asked.insert("expiration_ms".to_owned(), json!(expiration.as_millis() as u64));
    }
    for argument in &options.keep.queue_argument {
        asked.insert(argument.name.clone(), json!(argument.value));
    }
    let subject = Subject {
        scenario: "queue",
        mode: if is_filled_first { "CLOSED fill, then drain".to_owned() } else { options.flow.mode() },
        depth: None,
        server: String::new(),
        asked,
        unit: "deliveries",
        threads: options.broker.threads.into(),
    };
    let run = Run::open(run, (&options.broker, stage), &flow, &shape, subject)?;
    match is_filled_first {
        true => fill_drain::run(run, &shape),
        false => run.steady(),
    }
}
