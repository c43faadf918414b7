//! One-way scenarios: publishers, consumers, and a check of every delivery.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::{Error, Result, anyhow};

use crate::amount::Amount;
use crate::clock::Clock;
use crate::limits::{BLOCKED_AFTER, CALLS_MAX, HELD_ACKS};
use crate::load::consumer::{Consumer, Consuming, Places};
use crate::load::event_loop::EventLoop;
use crate::load::flow::Flow;
use crate::load::held::Held;
use crate::load::other_thread::OtherThread;
use crate::load::phase::{Bounds, Ended, drive};
use crate::load::publisher::{Confirms, Pace, Publisher, Publishing};
use crate::load::spread::Spread;
use crate::options::{AckOrder, BrokerOptions, FlowOptions, Level};
use crate::protocol::driver::{ConfirmMode, Manner};
use crate::protocol::session::{Session, driver};
use crate::record::Timeline;
use crate::record::latency::LatencyKind;
use crate::record::levels::Levels;
use crate::record::report::{NamedCount, Outcome, Report};
use crate::scenario::oneway_role::{FlowBoard, FlowRole};
use crate::scenario::shape::{Shape, terms};
use crate::scenario::stage::Stage;
use crate::scenario::summary::{LEAD, Ran, Subject, nanos, report, unsent_note};
use crate::stamp::{STAMP_BYTES, filler};
use crate::watch::cost::Cost;

/// Time to listen for unexpected deliveries at the end.
const LINGER: Duration = Duration::from_millis(300);
/// Quiet time after which a missing message counts as lost.
const DRAIN: Duration = Duration::from_secs(1);
/// Longer quiet time after an open loop, which may end while the broker is stalled; a stall is not a loss.
const DRAIN_OPEN: Duration = Duration::from_secs(3);

/// A run with open connections.
pub(super) struct Run<'a> {
    pub(super) broker: &'a BrokerOptions,
    pub(super) options: &'a FlowOptions,
    pub(super) flow: Arc<Flow>,
    pub(super) consumers: EventLoop<FlowRole>,
    /// The publishers' loop, if it has a thread of its own.
    publishers: Option<OtherThread<FlowRole>>,
    pub(super) publisher_count: u64,
    /// Places per publisher.
    stride: usize,
    /// Messages that should be published by now, counting only phases with a fixed count.
    expected: u64,
    clock: Clock,
    /// Time at which the connections were opened.
    opened: u64,
    /// Time to live of the messages.
    expiration: Option<Duration>,
    level: Level,
    subject: Subject,
    pub(super) stage: &'a Stage<'a>,
    /// The error that ended the run early, if a connection broke.
    pub(super) broken: Option<Error>,
}

impl<'a> Run<'a> {
    /// Opens all connections, and subscribes unless the queues are filled first.
    pub(super) fn open(
        run: u16,
        (broker, stage): (&'a BrokerOptions, &'a Stage<'a>),
        options: &'a FlowOptions,
        shape: &Shape,
        mut subject: Subject,
    ) -> Result<Run<'a>> {
        let clock = stage.clock;
        let driver = driver(broker)?;
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
        let priorities = shape.manner.priorities.unwrap_or(1);
        let mut consumers = EventLoop::<FlowRole>::new(FlowBoard::new(places, priorities), clock)?;
        consumers.board.received.spread = shape.spread_over.map(Spread::new);
        let mut publishers = match broker.threads {
            1 => None,
            _ => Some(EventLoop::new(FlowBoard::new(0, 1), clock)?),
        };
        if broker.reconnect {
            for event_loop in [Some(&mut consumers), publishers.as_mut()].into_iter().flatten() {
                event_loop.reopen(driver, &broker.url);
            }
        }
        let filler: Arc<[u8]> = filler(shape.size - STAMP_BYTES, run).into();
        for (number, (source, offset)) in (0..).zip(&shape.sources) {
            let mut session = Session::open(driver, &broker.url)?;
            if !shape.is_filled_first {
                session.subscribe(source, terms(options))?;
            }
            let places = Places { publishers: shape.subjects.len(), stride: shape.stride, offset: *offset };
            let (filler, flow) = (Arc::clone(&filler), Arc::clone(&flow));
            let consumer =
                Consumer::new(driver, run, consuming(options, shape, number), filler, flow, places);
            consumers.add(session, FlowRole::Consumer(Box::new(consumer)))?;
        }
        for (index, place) in (0_u32..).zip(&shape.subjects) {
            let mut session = Session::open(driver, &broker.url)?;
            session.check_body(shape.size)?;
            let wants_confirms = options.confirm.is_some() || shape.is_filled_first;
            session.prepare(place, if wants_confirms { ConfirmMode::Each } else { ConfirmMode::None })?;
            session.server().clone_into(&mut subject.server);
            let manner = |confirm| Manner { confirm, comparisons: options.comparisons, ..shape.manner };
            let templates = (
                session.message(place, &filler, manner(ConfirmMode::None)),
                session.message(place, &filler, manner(ConfirmMode::Each)),
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
            let confirms_count = driver.confirms_by_count();
            let publishing =
                Publishing { run, index: index as u16, templates, confirms, confirms_count, pace };
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
            opened: clock.now(),
            expiration: shape.manner.expiration,
            level: shape.level,
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

    /// A report of this run; `finish` adds the ledger and the latencies.
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

    /// Closed loop: sends each message when the window has room for it.
    fn measure_closed(&mut self) -> Result<(Cost, u64, Ended)> {
        let mut ended = self.phase(self.options.warmup(), u64::MAX, "warm-up");
        if ended == Ended::TimeOver {
            self.flow.stop();
            ended = self.wait(Bounds::of(Amount::Count(0), false), Goal::Due, "drain");
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

    /// Open loop: sends each message when it is due, even if earlier ones are still unconfirmed.
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
        let mut ended = self.wait(self.until(begin), Goal::Time, "warm-up");
        let before = self.consumers.board.received.deliveries;
        let meter = self.stage.watch.measure()?;
        if ended <= Ended::TimeOver {
            ended = self.wait(self.until(end), Goal::Time, "measure");
        }
        let cost = self.stage.watch.measured(meter)?;
        let deliveries = self.consumers.board.received.deliveries - before;
        if ended == Ended::TimeOver {
            // Messages that were due but had no room are still sent.
            ended = self.wait(Bounds::of(Amount::Count(0), false), Goal::Sent, "drain");
        }
        Ok((cost, deliveries, ended))
    }

    /// Starts measuring at `begin`.
    fn start_counting(&mut self, begin: u64) {
        let board = &mut self.consumers.board;
        board.timeline.start(begin);
        if let Some(spread) = &mut board.received.spread {
            spread.clear();
        }
    }

    /// Bounds of a phase that ends at a set time; a stalled broker does not end it earlier.
    fn until(&self, end: u64) -> Bounds {
        let time = Duration::from_nanos(end.saturating_sub(self.clock.now()));
        Bounds { time: Some(time), quiet: Duration::MAX, writes_count: false }
    }

    /// Publishes this amount and waits for the deliveries, or until the time has elapsed.
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
        self.wait(Bounds::of(amount, false), total.map_or(Goal::Time, Goal::Messages), name)
    }

    fn wake_publishers(&self) {
        if let Some(publishers) = &self.publishers {
            publishers.wake();
        }
    }

    /// Turns the consumers' loop until the goal is reached.
    fn wait(&mut self, bounds: Bounds, goal: Goal, name: &str) -> Ended {
        let (flow, stage) = (&self.flow, self.stage);
        stage.phase(name, bounds.time);
        let before = flow.passed.load(Ordering::SeqCst);
        let (passed_goal, total) = match goal {
            Goal::Messages(total) => (before.saturating_add(total.saturating_mul(flow.fan_out)), Some(total)),
            Goal::Due => (flow.due(), None),
            Goal::Time | Goal::Sent => (u64::MAX, None),
        };
        let publishers = self.publishers.as_ref();
        let is_over = |_: &mut FlowBoard| {
            if let Some(publishers) = publishers
                && flow.takes_waiting()
            {
                publishers.wake();
            }
            let has_sent = goal == Goal::Sent && flow.scheduled.load(Ordering::SeqCst) == 0;
            has_sent || flow.over() >= passed_goal || publishers.is_some_and(OtherThread::is_over)
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

    /// Waits for stragglers; returns `Done` unless an event during the wait ends the run.
    fn drain(&mut self, due: u64, ended: Ended) -> Ended {
        let flow = Arc::clone(&self.flow);
        let quiet = match self.options.load.open_rate() {
            Some(_) => DRAIN_OPEN,
            None => DRAIN,
        };
        // A late confirm is no fault. If the run already blocked, the broker does not get the long wait again.
        let late = if ended == Ended::Blocked { quiet } else { BLOCKED_AFTER };
        let is_confirmed = |_: &mut FlowBoard| flow.unconfirmed.load(Ordering::SeqCst) == 0;
        let has_all = |board: &mut FlowBoard| board.received.arrived() >= due;
        let drained = drive(&mut self.consumers, Bounds::quiet(late), is_confirmed, |_| {})
            .and_then(|_| drive(&mut self.consumers, Bounds::quiet(quiet), has_all, |_| {}))
            .and_then(|_| drive(&mut self.consumers, Bounds::quiet(LINGER), |_| false, |_| {}));
        match drained {
            Ok(Ended::Stopped) => Ended::Stopped,
            Ok(_) => Ended::Done,
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
        let ended = match ended {
            Ended::Broken => Ended::Broken,
            ended => ended.max(self.drain(due, ended)),
        };
        let unwritten = self.consumers.unwritten();
        let board = &mut self.consumers.board;
        if let Some(publishers) = self.publishers {
            let (mut other, turned) = publishers.stop()?;
            board.timeline.add(&mut other.timeline);
            board.unknown.append(&mut other.unknown);
            board.levels.add(&other.levels);
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
            // Without confirms, it is unknown which messages reached the broker over a broken connection.
            let unknown = match self.options.confirm {
                Some(_) => board.unknown.iter().map(|(p, n)| received.missing(*p, *n, self.stride)).sum(),
                None => report.ledger.lost,
            };
            report.ledger.unknown = unknown.min(report.ledger.lost);
            report.ledger.lost -= report.ledger.unknown;
        }
        let lasted = Duration::from_nanos(self.clock.now().saturating_sub(self.opened));
        if self.expiration.is_some_and(|lives| lasted >= lives) {
            // From outside, an expired message cannot be told from a lost one.
            report.ledger.expired = std::mem::take(&mut report.ledger.lost);
        }
        if self.options.confirm.is_some() || self.level.is_durable() {
            let levels = Levels { asked: self.level, ..board.levels.clone() };
            report.notes.extend(levels.complaint());
            report.levels = Some(levels);
        }
        if let Some(spread) = &received.spread {
            report.spread = spread.summary(match report.open {
                Some(_) => LatencyKind::Response,
                None => LatencyKind::Queueing,
            });
        }
        // If everything was published and confirmed, missing deliveries are losses, not a blocked broker.
        let (unsent, unconfirmed) =
            (self.flow.unsent.load(Ordering::SeqCst), self.flow.unconfirmed.load(Ordering::SeqCst));
        let is_all_taken = published >= self.expected && unwritten == 0 && unsent == 0 && unconfirmed == 0;
        report.outcome = match ended {
            Ended::Broken => Outcome::Broken,
            Ended::Stopped => Outcome::Stopped,
            _ if unconfirmed > 0 => Outcome::Blocked,
            Ended::Blocked if !is_all_taken => Outcome::Blocked,
            _ => Outcome::Done,
        };
        if matches!(report.outcome, Outcome::Broken | Outcome::Stopped) {
            // Messages in flight may or may not have reached the broker.
            report.ledger.unknown += std::mem::take(&mut report.ledger.lost);
        }
        report.notes.extend(self.broken.map(|error| format!("{error:#}")));
        report.notes.extend(unsent_note(report.outcome, unsent));
        report.counters.extend([
            NamedCount::new("published", published),
            NamedCount::new("deliveries_due", due),
            NamedCount::new("deliveries", received.deliveries),
        ]);
        if self.expiration.is_some() {
            report.counters.push(NamedCount::new("delivered_overdue", received.overdue));
        }
        if self.options.confirm.is_some() {
            report.counters.push(NamedCount::new("unconfirmed", unconfirmed));
        }
        if unconfirmed > 0 && report.outcome == Outcome::Blocked {
            report.notes.push(format!("the broker never confirmed {unconfirmed} of {published} messages"));
        }
        let timeline = std::mem::replace(&mut board.timeline, Timeline::new());
        Ok(Ran::new(report, timeline, &self.options.load, LatencyKind::Queueing, self.flow.fan_out))
    }
}

/// Options of the consumer with this number.
fn consuming(options: &FlowOptions, shape: &Shape, number: u64) -> Consuming {
    // A broker with a fixed credit must not run out of it because of held acknowledgements.
    let window = options.prefetch.map_or(HELD_ACKS, |prefetch| prefetch as usize / 2);
    let seed = options.load.seed.wrapping_add(number);
    Consuming {
        ack: options.ack(),
        held: (shape.ack_order == AckOrder::Random).then(|| Held::new(window, seed)),
        priorities: shape.manner.priorities.unwrap_or(1),
        expiration: shape.manner.expiration,
    }
}

/// The condition that a wait ends with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Goal {
    /// Nothing but the end of the time.
    Time,
    /// This many more messages have passed.
    Messages(u64),
    /// All published messages have passed.
    Due,
    /// Everything scheduled has been sent.
    Sent,
}
