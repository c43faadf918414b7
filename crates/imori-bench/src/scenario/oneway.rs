//! Messages that go one way: publishers and consumers, of which every delivery is checked.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::{Error, Result, anyhow};

use crate::amount::Amount;
use crate::clock::Clock;
use crate::limits::CALLS_MAX;
use crate::load::consumer::{Consumer, Places, Received};
use crate::load::event_loop::{EventLoop, Role};
use crate::load::flow::Flow;
use crate::load::other_thread::OtherThread;
use crate::load::phase::{Bounds, Ended, drive};
use crate::load::publisher::{Confirms, Pace, Publisher, Publishing};
use crate::load::spread::Spread;
use crate::options::{BrokerOptions, FlowOptions};
use crate::protocol::driver::{Heard, Place, Terms, Wish};
use crate::protocol::session::{Session, driver};
use crate::record::Timeline;
use crate::record::latency::LatencyKind;
use crate::record::report::{Count, Outcome, Report};
use crate::scenario::stage::Stage;
use crate::scenario::summary::{LEAD, Ran, Subject, nanos, report};
use crate::stamp::{STAMP_BYTES, filler};
use crate::watch::cost::Cost;

/// How long to listen for deliveries that nobody expects any more.
const LINGER: Duration = Duration::from_millis(300);
/// How long a missing message may be outstanding after nothing else moves.
const DRAIN: Duration = Duration::from_secs(1);

/// Who sends where and who hears what.
pub(super) struct Shape {
    /// For each publisher, where it sends.
    pub(super) subjects: Vec<Place>,
    /// For each consumer, what it reads and which place of a publisher that is.
    pub(super) sources: Vec<(Place, usize)>,
    /// Deliveries of each message.
    pub(super) fan_out: u64,
    /// Places of each publisher.
    pub(super) stride: usize,
    /// Bytes of each body.
    pub(super) size: usize,
    /// Whether consumers subscribe only after everything is published.
    pub(super) is_filled_first: bool,
    /// Whether each message is followed over so many subscribers.
    pub(super) spread_over: Option<u32>,
}

/// So many places, of these in turns.
pub(super) fn cycled(places: &[Place], count: u32) -> Vec<Place> {
    places.iter().cycle().take(count as usize).cloned().collect()
}

/// How consumers are served.
pub(super) fn terms(flow: &FlowOptions) -> Terms {
    Terms { ack: flow.ack, prefetch: flow.prefetch }
}

/// The consumers of a loop.
pub(super) fn consumers_of(consumers: &mut EventLoop<FlowRole>) -> impl Iterator<Item = &mut Consumer> {
    consumers.roles().filter_map(|role| match role {
        FlowRole::Consumer(consumer) => Some(&mut **consumer),
        FlowRole::Publisher(_) => None,
    })
}

/// A run that is connected.
pub(super) struct Run<'a> {
    pub(super) broker: &'a BrokerOptions,
    pub(super) options: &'a FlowOptions,
    pub(super) flow: Arc<Flow>,
    pub(super) consumers: EventLoop<FlowRole>,
    /// The publishers, if they have a thread of their own.
    publishers: Option<OtherThread<FlowRole>>,
    pub(super) publisher_count: u64,
    /// Places of each publisher.
    stride: usize,
    /// Messages that should be published by now, as far as that is known.
    expected: u64,
    clock: Clock,
    subject: Subject,
    pub(super) stage: &'a Stage<'a>,
    /// Why the run ended early, if a connection broke.
    broken: Option<Error>,
}

impl<'a> Run<'a> {
    /// Connects everybody, and subscribes unless the queues are filled first.
    pub(super) fn open(
        run: u16,
        (broker, stage): (&'a BrokerOptions, &'a Stage<'a>),
        options: &'a FlowOptions,
        shape: &Shape,
        mut subject: Subject,
    ) -> Result<Run<'a>> {
        let clock = stage.clock;
        let driver = driver(broker);
        driver.check(terms(options))?;
        if options.confirm.is_some() {
            driver.check_confirms()?;
        }
        let window = if shape.is_filled_first { u64::MAX } else { options.in_flight_max() };
        let flow = Arc::new(match options.load.open_rate() {
            Some(_) => Flow::open(shape.fan_out, window, shape.subjects.len()),
            None => Flow::new(shape.fan_out, window),
        });
        let places = shape.subjects.len().saturating_mul(shape.stride);
        let mut consumers = EventLoop::<FlowRole>::new(FlowBoard::new(places), clock)?;
        consumers.board.received.spread = shape.spread_over.map(Spread::new);
        let mut publishers = match broker.threads {
            1 => None,
            _ => Some(EventLoop::new(FlowBoard::new(0), clock)?),
        };
        if broker.reconnect {
            for event_loop in [Some(&mut consumers), publishers.as_mut()].into_iter().flatten() {
                event_loop.reopen(driver, &broker.url);
            }
        }
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
        for (index, place) in (0_u32..).zip(&shape.subjects) {
            let session = Session::open(driver, &broker.url)?;
            session.check_body(shape.size)?;
            session.server().clone_into(&mut subject.server);
            let templates = (
                driver.message(place, &filler, Wish::Nothing),
                driver.message(place, &filler, Wish::Confirm),
            );
            let confirms = match options.confirm {
                Some(window) => Confirms::Each(window),
                None if shape.is_filled_first => Confirms::Last,
                None => Confirms::None,
            };
            let pace = options.load.open_rate().map(|rate| Pace {
                rate,
                arrival: options.load.arrival,
                seed: options.load.seed,
                share: (index, shape.subjects.len() as u32),
            });
            let publishing = Publishing { run, index: index as u16, templates, confirms, pace };
            let publisher = Publisher::new(publishing, Arc::clone(&flow));
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
            stride: shape.stride,
            expected: 0,
            clock,
            subject,
            stage,
            broken: None,
        })
    }

    /// Publishes and consumes at the same time.
    pub(super) fn steady(mut self) -> Result<Ran> {
        let (cost, deliveries, ended) = match self.options.load.open_rate() {
            Some(_) => self.measure_open()?,
            None => self.measure_closed()?,
        };
        let report = self.report(&cost, deliveries);
        self.finish(report, ended)
    }

    /// A report of this run; ledger and times are added when it is finished.
    pub(super) fn report(&self, cost: &Cost, deliveries: u64) -> Report {
        report(
            self.subject.clone(),
            (self.broker, self.stage),
            Some(&self.options.load),
            cost,
            deliveries,
            deliveries,
        )
    }

    /// Each message is sent when the window has room for it.
    fn measure_closed(&mut self) -> Result<(Cost, u64, Ended)> {
        let mut ended = self.phase(self.options.warmup(), u64::MAX, "warm-up");
        if ended == Ended::TimeOver {
            self.flow.stop();
            ended = self.wait(Bounds::of(Amount::Count(0), false), None, "drain");
        }
        let before = self.consumers.board.received.deliveries;
        let begin = self.clock.now();
        self.start_counting(begin);
        let meter = self.stage.watch.measure()?;
        if ended <= Ended::TimeOver {
            ended = self.phase(self.options.measured(), begin, "measure");
        }
        let cost = self.stage.watch.measured(meter)?;
        Ok((cost, self.consumers.board.received.deliveries - before, ended))
    }

    /// Each message is sent when it is due, whatever became of those before.
    fn measure_open(&mut self) -> Result<(Cost, u64, Ended)> {
        let (Amount::Time(warmup), Amount::Time(time)) = (self.options.warmup(), self.options.measured())
        else {
            return Err(anyhow!("an open loop goes on for a time; say it with `--time 10s`"));
        };
        let start = self.clock.now().saturating_add(nanos(LEAD));
        let begin = start.saturating_add(nanos(warmup));
        let end = begin.saturating_add(nanos(time));
        self.start_counting(begin);
        self.flow.begin_open((start, end), begin);
        self.wake_publishers();
        let mut ended = self.wait(self.until(begin), None, "warm-up");
        let before = self.consumers.board.received.deliveries;
        let meter = self.stage.watch.measure()?;
        if ended <= Ended::TimeOver {
            ended = self.wait(self.until(end), None, "measure");
        }
        let cost = self.stage.watch.measured(meter)?;
        Ok((cost, self.consumers.board.received.deliveries - before, ended))
    }

    /// From this time on deliveries count.
    fn start_counting(&mut self, begin: u64) {
        let board = &mut self.consumers.board;
        board.timeline.start(begin);
        if let Some(spread) = &mut board.received.spread {
            spread.clear();
        }
    }

    /// Bounds of a phase that ends at a time; a broker that stands still does not end it.
    fn until(&self, end: u64) -> Bounds {
        let time = Duration::from_nanos(end.saturating_sub(self.clock.now()));
        Bounds { time: Some(time), quiet: Duration::MAX, writes_count: false }
    }

    /// Publishes for this amount and waits for the deliveries, or until the time is over.
    fn phase(&mut self, amount: Amount, measured_from: u64, name: &str) -> Ended {
        let share = match amount {
            Amount::Count(0) => return Ended::Done,
            Amount::Count(count) => count.div_ceil(self.publisher_count),
            Amount::Time(_) => CALLS_MAX,
        };
        let total = matches!(amount, Amount::Count(_)).then(|| share.saturating_mul(self.publisher_count));
        if let Some(total) = total {
            self.expected = self.flow.published.load(Ordering::SeqCst).saturating_add(total);
        }
        self.flow.begin(share, measured_from);
        self.wake_publishers();
        self.wait(Bounds::of(amount, false), total, name)
    }

    fn wake_publishers(&self) {
        if let Some(publishers) = &self.publishers {
            publishers.wake();
        }
    }

    /// Turns until everything due has passed: this many messages, or all that were published.
    fn wait(&mut self, bounds: Bounds, total: Option<u64>, name: &str) -> Ended {
        let (flow, stage) = (&self.flow, self.stage);
        stage.phase(name);
        let before = flow.passed.load(Ordering::SeqCst);
        let goal = match (total, bounds.time) {
            (Some(total), _) => before.saturating_add(total.saturating_mul(flow.fan_out)),
            (None, Some(_)) => u64::MAX,
            (None, None) => flow.due(),
        };
        let publishers = self.publishers.as_ref();
        let is_over = |_: &mut FlowBoard| {
            if let Some(publishers) = publishers
                && flow.takes_waiting()
            {
                publishers.wake();
            }
            flow.passed.load(Ordering::SeqCst) >= goal || publishers.is_some_and(OtherThread::is_over)
        };
        let show = |board: &FlowBoard| {
            let done = (flow.passed.load(Ordering::SeqCst) - before) / flow.fan_out;
            stage.show(done, total, &board.timeline);
        };
        let ended = drive(&mut self.consumers, bounds, is_over, show);
        let is_other_broken = self.publishers.as_ref().is_some_and(OtherThread::is_over);
        match ended {
            Ok(_) if is_other_broken => Ended::Broken,
            Ok(ended) => ended,
            Err(error) => {
                self.broken.get_or_insert(error);
                Ended::Broken
            }
        }
    }

    /// Waits for stragglers and closes the ledger.
    pub(super) fn finish(mut self, mut report: Report, ended: Ended) -> Result<Ran> {
        self.flow.stop();
        let due = self.flow.due();
        if ended != Ended::Broken {
            drive(
                &mut self.consumers,
                Bounds::quiet(DRAIN),
                |board| board.received.arrived() >= due,
                |_| {},
            )?;
            drive(&mut self.consumers, Bounds::quiet(LINGER), |_| false, |_| {})?;
        }
        let unwritten = self.consumers.unwritten();
        let board = &mut self.consumers.board;
        if let Some(publishers) = self.publishers {
            let (mut other, turned) = publishers.stop()?;
            board.timeline.add(&mut other.timeline);
            board.unknown.append(&mut other.unknown);
            if let Err(error) = turned {
                self.broken.get_or_insert(error);
            }
        }
        let received = &board.received;
        let published = self.flow.published.load(Ordering::SeqCst);
        report.ledger = received.ledger;
        report.ledger.sent = published;
        report.ledger.lost = due.saturating_sub(received.arrived());
        if board.timeline.reconnects() > 0 {
            // Without confirms nobody knows what a broken connection had carried to the broker.
            let unknown = match self.options.confirm {
                Some(_) => board.unknown.iter().map(|(p, n)| received.missing(*p, *n, self.stride)).sum(),
                None => report.ledger.lost,
            };
            report.ledger.unknown = unknown.min(report.ledger.lost);
            report.ledger.lost -= report.ledger.unknown;
        }
        if let Some(spread) = &received.spread {
            report.spread = spread.summary(match report.open {
                Some(_) => LatencyKind::Response,
                None => LatencyKind::Queueing,
            });
        }
        // If everything was published and only deliveries are missing, they are lost and the ledger says so.
        let is_all_taken = published >= self.expected && unwritten == 0;
        report.outcome = match ended {
            Ended::Broken => Outcome::Broken,
            Ended::Stopped => Outcome::Stopped,
            Ended::Blocked if !is_all_taken => Outcome::Blocked,
            _ => Outcome::Done,
        };
        if let Some(error) = self.broken {
            // What was under way when the connection broke may or may not have been taken.
            report.ledger.unknown += std::mem::take(&mut report.ledger.lost);
            report.notes.push(format!("{error:#}"));
        }
        report.counters.extend([
            Count::new("published", published),
            Count::new("deliveries_due", due),
            Count::new("deliveries", received.deliveries),
        ]);
        let timeline = std::mem::replace(&mut board.timeline, Timeline::new());
        Ok(Ran::new(report, timeline, &self.options.load, LatencyKind::Queueing, self.flow.fan_out))
    }
}

/// A connection of these scenarios.
pub(super) enum FlowRole {
    Publisher(Box<Publisher>),
    Consumer(Box<Consumer>),
}

/// What the connections of a loop count together.
pub(super) struct FlowBoard {
    pub(super) received: Received,
    pub(super) timeline: Timeline,
    /// Messages whose confirm a broken connection may have carried, by publisher and number.
    unknown: Vec<(u16, u32)>,
    /// Confirms that the broker has sent.
    pub(super) confirms: u64,
}

impl FlowBoard {
    fn new(places: usize) -> FlowBoard {
        FlowBoard {
            received: Received::new(places),
            timeline: Timeline::new(),
            unknown: Vec::new(),
            confirms: 0,
        }
    }
}

impl Role for FlowRole {
    type Board = FlowBoard;

    fn hear(&mut self, heard: &Heard<'_>, now: u64, board: &mut FlowBoard, out: &mut Vec<u8>) {
        match (self, heard) {
            (FlowRole::Publisher(publisher), Heard::Confirmed(number)) => {
                board.confirms += 1;
                if let Some(number) = number {
                    publisher.confirm(*number, now, &mut board.timeline);
                }
            }
            (FlowRole::Consumer(consumer), Heard::Delivery(delivery)) => {
                consumer.delivery(delivery, now, (&mut board.received, &mut board.timeline), out);
            }
            _ => {}
        }
    }

    fn fill(&mut self, now: u64, board: &mut FlowBoard, out: &mut Vec<u8>) -> bool {
        match self {
            FlowRole::Publisher(publisher) => publisher.fill(now, &mut board.timeline, out),
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

    fn next_due(&self) -> Option<u64> {
        match self {
            FlowRole::Publisher(publisher) => publisher.next_due(),
            FlowRole::Consumer(_) => None,
        }
    }

    fn cut_off(&mut self, _now: u64, board: &mut FlowBoard) {
        if let FlowRole::Publisher(publisher) = self {
            board.unknown.extend(publisher.cut_off());
        }
    }

    fn reopened(&mut self, now: u64, board: &mut FlowBoard) {
        board.timeline.reconnected(now);
    }

    fn tick(&mut self, _now: u64, _board: &mut FlowBoard) {}
}
