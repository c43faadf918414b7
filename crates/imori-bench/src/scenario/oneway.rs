//! Scenarios `queue` and `pubsub`: messages go one way, and every delivery is checked.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Result, anyhow};
use serde_json::json;

use crate::amount::Amount;
use crate::clock::Clock;
use crate::limits::{CALLS_MAX, TICK};
use crate::load::consumer::{Consumer, Places, Received};
use crate::load::event_loop::{EventLoop, Role};
use crate::load::flow::Flow;
use crate::load::phase::{Bounds, Ended, Meter, Progress, drive};
use crate::load::publisher::Publisher;
use crate::options::{BrokerOptions, FlowOptions, PubsubOptions, QueueOptions, QueuePhase};
use crate::protocol::driver::{Heard, Place, Terms, Wish};
use crate::protocol::session::{Session, driver};
use crate::record::latency::LatencyKind;
use crate::record::report::{Count, Outcome, Report};
use crate::scenario::summary::{Subject, asked, report};
use crate::stamp::{STAMP_BYTES, filler, run_id};
use crate::watch::cost::Cost;

/// How long to listen for deliveries that nobody expects any more.
const LINGER: Duration = Duration::from_millis(300);
/// How long a missing message may be outstanding after nothing else moves.
const DRAIN: Duration = Duration::from_secs(1);
/// How long the broker may settle after it was filled, before its memory is read.
const SETTLE: Duration = Duration::from_secs(2);

/// Runs scenario `queue`.
pub fn run_queue(options: &QueueOptions) -> Result<Report> {
    driver(&options.broker).check_queues()?;
    options.check()?;
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
    };
    let subject = Subject {
        scenario: "queue",
        mode: if is_filled_first { "CLOSED fill, then drain".to_owned() } else { closed(&options.flow) },
        depth: None,
        server: String::new(),
        asked: asked([
            ("publishers", json!(options.publishers)),
            ("queues", json!(options.queues)),
            ("consumers", json!(options.consumers)),
            ("size", json!(options.size)),
            ("ack", json!(options.flow.ack)),
            ("prefetch", json!(options.flow.prefetch)),
            ("style", json!(driver(&options.broker).name())),
            ("level", json!("memory")),
        ]),
        unit: "deliveries",
        threads: options.broker.threads.into(),
    };
    let run = Run::open(run, &options.broker, &options.flow, &shape, subject)?;
    match is_filled_first {
        true => run.fill_and_drain(&shape),
        false => run.steady(),
    }
}

/// Runs scenario `pubsub`, which is also `fan-out`.
pub fn run_pubsub(options: &PubsubOptions) -> Result<Report> {
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
    };
    let subject = Subject {
        scenario: "pubsub",
        mode: closed(&options.flow),
        depth: None,
        server: String::new(),
        asked: asked([
            ("publishers", json!(options.publishers)),
            ("subjects", json!(options.subjects())),
            ("subscribers_each", json!(options.subscribers)),
            ("size", json!(options.size)),
            ("ack", json!(options.flow.ack)),
            ("prefetch", json!(options.flow.prefetch)),
            ("style", json!(driver(&options.broker).name())),
            ("level", json!("memory")),
        ]),
        unit: "deliveries",
        threads: options.broker.threads.into(),
    };
    Run::open(run, &options.broker, &options.flow, &shape, subject)?.steady()
}

/// Who sends where and who hears what.
struct Shape {
    /// For each publisher, where it sends.
    subjects: Vec<Place>,
    /// For each consumer, what it reads and which place of a publisher that is.
    sources: Vec<(Place, usize)>,
    /// Deliveries of each message.
    fan_out: u64,
    /// Places of each publisher.
    stride: usize,
    /// Bytes of each body.
    size: usize,
    /// Whether consumers subscribe only after everything is published.
    is_filled_first: bool,
}

fn cycled(places: &[Place], count: u32) -> Vec<Place> {
    places.iter().cycle().take(count as usize).cloned().collect()
}

fn terms(flow: &FlowOptions) -> Terms {
    Terms { ack: flow.ack, prefetch: flow.prefetch }
}

fn closed(flow: &FlowOptions) -> String {
    format!("CLOSED window {}", flow.window)
}

/// A run that is connected.
struct Run<'a> {
    broker: &'a BrokerOptions,
    options: &'a FlowOptions,
    flow: Arc<Flow>,
    consumers: EventLoop<FlowRole>,
    /// The publishers, if they have a thread of their own.
    publishers: Option<OtherThread>,
    publisher_count: u64,
    /// Messages that should be published by now, as far as that is known.
    expected: u64,
    subject: Subject,
    progress: Progress,
}

impl<'a> Run<'a> {
    fn open(
        run: u16,
        broker: &'a BrokerOptions,
        options: &'a FlowOptions,
        shape: &Shape,
        mut subject: Subject,
    ) -> Result<Run<'a>> {
        let driver = driver(broker);
        driver.check(terms(options))?;
        let window = if shape.is_filled_first { u64::MAX } else { options.window };
        let flow = Arc::new(Flow::new(shape.fan_out, window));
        let clock = Clock::start();
        let places = shape.subjects.len().saturating_mul(shape.stride);
        let mut consumers = EventLoop::new(FlowBoard::new(places), clock)?;
        let mut publishers = match broker.threads {
            1 => None,
            _ => Some(EventLoop::new(FlowBoard::new(0), clock)?),
        };
        let filler: Arc<[u8]> = filler(shape.size - STAMP_BYTES, run).into();
        for (source, offset) in &shape.sources {
            let mut session = Session::open(driver, &broker.url)?;
            if !shape.is_filled_first {
                session.subscribe(source, terms(options))?;
            }
            let places = Places { publishers: shape.subjects.len(), stride: shape.stride, offset: *offset };
            let (filler, flow) = (Arc::clone(&filler), Arc::clone(&flow));
            let consumer = Consumer::new(driver, run, options.ack, filler, flow, places);
            consumers.add(session, FlowRole::Consumer(Box::new(consumer)))?;
        }
        for (index, place) in shape.subjects.iter().enumerate() {
            let session = Session::open(driver, &broker.url)?;
            session.check_body(shape.size)?;
            session.server().clone_into(&mut subject.server);
            let publisher = Publisher::new(
                run,
                index as u16,
                driver.message(place, &filler, Wish::Nothing),
                driver.message(place, &filler, Wish::Confirm),
                shape.is_filled_first,
                Arc::clone(&flow),
            );
            publishers
                .as_mut()
                .unwrap_or(&mut consumers)
                .add(session, FlowRole::Publisher(Box::new(publisher)))?;
        }
        Ok(Run {
            broker,
            options,
            flow: Arc::clone(&flow),
            consumers,
            publishers: publishers.map(OtherThread::start),
            publisher_count: shape.subjects.len() as u64,
            expected: 0,
            subject,
            progress: Progress::new(broker.progress),
        })
    }

    /// Publishes and consumes at the same time.
    fn steady(mut self) -> Result<Report> {
        let mut ended = self.phase(self.options.warmup(), "warm-up")?;
        if ended == Ended::TimeOver {
            self.flow.stop();
            ended = self.wait(Bounds::of(Amount::Count(0), false), None, "drain")?;
        }
        let before = self.consumers.board.received.deliveries;
        self.consumers.board.received.recorder.clear();
        let meter = Meter::start(&self.broker.pid)?;
        if ended != Ended::Blocked {
            ended = self.phase(self.options.measured(), "measure")?;
        }
        let cost = meter.stop()?;
        let deliveries = self.consumers.board.received.deliveries - before;
        let latency = self.consumers.board.received.recorder.summary(LatencyKind::Queueing);
        let mut report = report(self.subject.clone(), self.broker, &cost, deliveries, deliveries);
        report.latency = Some(latency);
        self.finish(report, ended)
    }

    /// Publishes everything, reads the broker's memory, then consumes everything.
    fn fill_and_drain(mut self, shape: &Shape) -> Result<Report> {
        let count = self.options.messages / self.publisher_count;
        let goal = count.saturating_mul(self.publisher_count);
        let (flow, progress) = (Arc::clone(&self.flow), &self.progress);
        flow.begin(count);
        let fill = Meter::start(&self.broker.pid)?;
        let confirmed = self.publisher_count;
        let ended = drive(
            &mut self.consumers,
            Bounds::of(Amount::Count(goal), true),
            |board| board.confirms >= confirmed,
            |_| progress.show("fill", flow.published.load(Ordering::SeqCst), Some(goal)),
        )?;
        let filled = fill.stop()?;
        let settling = Bounds { time: Some(SETTLE), ..Bounds::quiet(SETTLE) };
        drive(&mut self.consumers, settling, |_| false, |_| {})?;
        let settled = Meter::start(&self.broker.pid)?.stop()?;
        let sources = shape.sources.iter();
        for (consumer, (source, _)) in consumers_of(&mut self.consumers).zip(sources) {
            let mut subscribe = Vec::new();
            driver(self.broker).subscribe(source, terms(self.options), Wish::Nothing, &mut subscribe);
            consumer.subscribe(subscribe);
        }
        let drain = Meter::start(&self.broker.pid)?;
        let ended = match ended {
            Ended::Blocked => Ended::Blocked,
            _ => drive(
                &mut self.consumers,
                Bounds::of(Amount::Count(goal), false),
                |board| board.received.deliveries >= goal,
                |board| progress.show("drain", board.received.deliveries, Some(goal)),
            )?,
        };
        let drained = drain.stop()?;
        let deliveries = self.consumers.board.received.deliveries;
        let mut report = report(self.subject.clone(), self.broker, &drained, deliveries, deliveries);
        if let Some(broker) = &mut report.broker {
            broker.rss_start = filled.broker_before.rss_bytes;
            broker.rss_peak = broker.rss_peak.max(filled.broker_rss_peak);
        }
        report.counters = fill_counters(&filled, &settled, goal);
        report.notes.push("throughput is that of the drain; the fill is in the counters".to_owned());
        self.finish(report, ended)
    }

    /// Publishes for this amount and waits for the deliveries, or until the time is over.
    fn phase(&mut self, amount: Amount, name: &str) -> Result<Ended> {
        let share = match amount {
            Amount::Count(0) => return Ok(Ended::Done),
            Amount::Count(count) => count.div_ceil(self.publisher_count),
            Amount::Time(_) => CALLS_MAX,
        };
        let total = matches!(amount, Amount::Count(_)).then(|| share.saturating_mul(self.publisher_count));
        if let Some(total) = total {
            self.expected = self.flow.published.load(Ordering::SeqCst).saturating_add(total);
        }
        self.flow.begin(share);
        if let Some(publishers) = &self.publishers {
            publishers.waker.wake()?;
        }
        self.wait(Bounds::of(amount, false), total, name)
    }

    /// Turns until everything due has passed: this many messages, or all that were published.
    fn wait(&mut self, bounds: Bounds, total: Option<u64>, name: &str) -> Result<Ended> {
        let (flow, progress) = (&self.flow, &self.progress);
        let before = flow.passed.load(Ordering::SeqCst);
        let goal = match (total, bounds.time) {
            (Some(total), _) => before.saturating_add(total.saturating_mul(flow.fan_out)),
            (None, Some(_)) => u64::MAX,
            (None, None) => flow.due(),
        };
        let waker = self.publishers.as_ref().map(|publishers| &publishers.waker);
        let is_over = |_: &mut FlowBoard| {
            if let Some(waker) = waker
                && flow.takes_waiting()
            {
                // A wake-up that cannot be sent costs one tick at most.
                let _ = waker.wake();
            }
            flow.passed.load(Ordering::SeqCst) >= goal
        };
        let show = |_: &FlowBoard| {
            progress.show(name, (flow.passed.load(Ordering::SeqCst) - before) / flow.fan_out, total);
        };
        drive(&mut self.consumers, bounds, is_over, show)
    }

    /// Waits for stragglers and closes the ledger.
    fn finish(mut self, mut report: Report, ended: Ended) -> Result<Report> {
        self.flow.stop();
        let due = self.flow.due();
        drive(&mut self.consumers, Bounds::quiet(DRAIN), |board| board.received.arrived() >= due, |_| {})?;
        drive(&mut self.consumers, Bounds::quiet(LINGER), |_| false, |_| {})?;
        self.progress.clear();
        if let Some(publishers) = self.publishers {
            publishers.stop()?;
        }
        let received = &self.consumers.board.received;
        let published = self.flow.published.load(Ordering::SeqCst);
        report.ledger = received.ledger;
        report.ledger.sent = published;
        report.ledger.lost = due.saturating_sub(received.arrived());
        // If everything was published and only deliveries are missing, they are lost and the ledger says so.
        let is_all_taken = published >= self.expected && self.consumers.unwritten() == 0;
        if ended == Ended::Blocked && !is_all_taken {
            report.outcome = Outcome::Blocked;
        }
        report.counters.extend([
            Count::new("published", published),
            Count::new("deliveries_due", due),
            Count::new("deliveries", received.deliveries),
        ]);
        Ok(report)
    }
}

fn consumers_of(consumers: &mut EventLoop<FlowRole>) -> impl Iterator<Item = &mut Consumer> {
    consumers.roles().filter_map(|role| match role {
        FlowRole::Consumer(consumer) => Some(&mut **consumer),
        FlowRole::Publisher(_) => None,
    })
}

/// What filling cost, and what the broker's memory is when it is full and quiet.
fn fill_counters(filled: &Cost, settled: &Cost, messages: u64) -> Vec<Count> {
    let grown = settled.broker_after.rss_bytes.saturating_sub(filled.broker_before.rss_bytes);
    let cpu_s = filled.broker_after.cpu_seconds_since(&filled.broker_before);
    vec![
        Count::new("fill_ms", filled.elapsed.as_millis() as u64),
        Count::new("fill_per_s", (messages as f64 / filled.elapsed.as_secs_f64()) as u64),
        Count::new("fill_broker_cpu_ms", (cpu_s * 1_000.0) as u64),
        Count::new("rss_empty_bytes", filled.broker_before.rss_bytes),
        Count::new("rss_full_bytes", settled.broker_after.rss_bytes),
        Count::new("rss_bytes_per_message", grown / messages.max(1)),
    ]
}

/// A connection of these scenarios.
enum FlowRole {
    Publisher(Box<Publisher>),
    Consumer(Box<Consumer>),
}

struct FlowBoard {
    received: Received,
    /// Publishers whose last message the broker has confirmed.
    confirms: u64,
}

impl FlowBoard {
    fn new(places: usize) -> FlowBoard {
        FlowBoard { received: Received::new(places), confirms: 0 }
    }
}

impl Role for FlowRole {
    type Board = FlowBoard;

    fn hear(&mut self, heard: &Heard<'_>, now: u64, board: &mut FlowBoard, out: &mut Vec<u8>) {
        match (self, heard) {
            (FlowRole::Publisher(_), Heard::Confirmed) => board.confirms += 1,
            (FlowRole::Consumer(consumer), Heard::Delivery(delivery)) => {
                consumer.delivery(delivery, now, &mut board.received, out);
            }
            _ => {}
        }
    }

    fn fill(&mut self, now: u64, _board: &mut FlowBoard, out: &mut Vec<u8>) -> bool {
        match self {
            FlowRole::Publisher(publisher) => publisher.fill(now, out),
            FlowRole::Consumer(consumer) => {
                consumer.fill(out);
                false
            }
        }
    }

    fn reads(&self, _unwritten: usize) -> bool {
        true
    }

    fn is_producer(&self) -> bool {
        matches!(self, FlowRole::Publisher(_))
    }

    fn tick(&mut self, _now: u64, _board: &mut FlowBoard) {}
}

/// The publishers on a thread of their own.
struct OtherThread {
    is_stopped: Arc<AtomicBool>,
    waker: Arc<mio::Waker>,
    thread: JoinHandle<Result<()>>,
}

impl OtherThread {
    fn start(mut publishers: EventLoop<FlowRole>) -> OtherThread {
        let is_stopped = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&is_stopped);
        let waker = publishers.waker();
        let thread = std::thread::spawn(move || {
            while !seen.load(Ordering::SeqCst) {
                publishers.turn(TICK)?;
            }
            Ok(())
        });
        OtherThread { is_stopped, waker, thread }
    }

    fn stop(self) -> Result<()> {
        self.is_stopped.store(true, Ordering::SeqCst);
        self.waker.wake()?;
        self.thread.join().map_err(|_| anyhow!("the publishers' thread panicked"))?
    }
}
