//! Scenario `rpc`: R requesters send n, S responders answer n + 1, every reply is checked.

use std::time::Duration;

use anyhow::{Error, Result, anyhow};
use serde_json::json;

use crate::amount::Amount;
use crate::clock::Clock;
use crate::load::event_loop::{EventLoop, Role};
use crate::load::other_thread::OtherThread;
use crate::load::phase::{Bounds, Ended, drive_all};
use crate::load::publisher::Pace;
use crate::load::requester::{Asked, Requester};
use crate::load::responder::{Answered, Responder};
use crate::options::{BrokerOptions, Depth, LoadOptions, RpcOptions};
use crate::protocol::driver::{CallTerms, Heard, Place, Terms};
use crate::protocol::session::{Session, driver};
use crate::protocol::template::Correlation;
use crate::record::latency::LatencyKind;
use crate::record::report::{Count, Outcome, Report};
use crate::scenario::stage::Stage;
use crate::scenario::summary::{LEAD, Ran, Subject, asked, nanos, report, unsent_note};
use crate::scenario::watched::Measurable;
use crate::stamp::run_id;
use crate::watch::cost::Cost;

/// How long to listen for replies that nobody expects any more.
const LINGER: Duration = Duration::from_millis(300);

/// Counters of responders, where there are some.
const SEEN_BY_RESPONDERS: [&str; 4] =
    ["requests_received", "replies_sent", "foreign_requests", "unreadable_requests"];

impl Measurable for RpcOptions {
    fn broker(&mut self) -> &mut BrokerOptions {
        &mut self.broker
    }

    fn load(&mut self) -> &mut LoadOptions {
        &mut self.load
    }

    fn check(&self) -> Result<()> {
        RpcOptions::check(self)
    }

    fn run(&self, stage: &Stage<'_>) -> Result<Ran> {
        run(self, stage)
    }
}

fn run(options: &RpcOptions, stage: &Stage<'_>) -> Result<Ran> {
    let clock = stage.clock;
    let run = run_id();
    let driver = driver(&options.broker);
    driver.check_calls(call_terms(options))?;
    let responders = responders(options);
    let service = Place::Service(options.destination.clone());
    let loop_count = if options.independent { options.requesters } else { 1 };
    let mut loops = Vec::new();
    for _ in 0..loop_count {
        loops.push(EventLoop::new(RpcBoard::new(), clock)?);
    }
    let mut other = match (options.independent || options.broker.threads > 1) && responders > 0 {
        true => Some(EventLoop::new(RpcBoard::new(), clock)?),
        false => None,
    };
    if options.broker.reconnect {
        for event_loop in loops.iter_mut().chain(&mut other) {
            event_loop.reopen(driver, &options.broker.url);
        }
    }
    for _ in 0..responders {
        let mut session = Session::open(driver, &options.broker.url)?;
        session.subscribe(&service, Terms::default())?;
        let responders = other.as_mut().or(loops.first_mut());
        if let Some(responders) = responders {
            responders.add(session, RpcRole::Responder(Responder::new(driver, run)))?;
        }
    }
    let mut server = String::new();
    for (index, requesters) in (0..options.requesters).zip((0..loops.len()).cycle()) {
        let first = Correlation { run, requester: index as u16, number: 0 };
        let replies = driver.replies(options.reply, &options.destination, first)?;
        let mut session = Session::open(driver, &options.broker.url)?;
        if let Some(source) = &replies.source {
            session.subscribe(source, Terms::default())?;
        }
        session.check_body(options.size)?;
        session.server().clone_into(&mut server);
        let template = session.request(&service, &replies, options.size, first);
        let pace = options.load.open_rate().map(|rate| Pace {
            rate,
            arrival: options.load.arrival,
            seed: options.load.seed,
            share: (index, options.requesters),
        });
        let requester = Requester::new(
            first,
            options.requesters,
            template,
            options.size,
            options.depth(),
            options.timeout,
            pace,
        );
        if let Some(requesters) = loops.get_mut(requesters) {
            requesters.add(session, RpcRole::Requester(Box::new(requester)))?;
        }
    }
    let threads = loops.len() as u32 + u32::from(other.is_some());
    let other = other.map(OtherThread::start);
    let subject = subject(options, server, threads);
    let mut run = Run { options, loops, clock, stage, broken: None };
    let (cost, answered, mut ended) = match options.load.open_rate() {
        Some(_) => run.measure_open()?,
        None => run.measure_closed()?,
    };
    let report = report(
        subject,
        (&options.broker, stage),
        Some(&options.load),
        &cost,
        answered,
        answered.saturating_mul(2),
    );
    ended = run.settle_up(ended);
    let mut responded = run.loops.first().map(|first| first.board.answered).unwrap_or_default();
    if let Some(other) = other {
        let (board, turned) = other.stop()?;
        responded = board.answered;
        if let Err(error) = turned {
            ended = Ended::Broken;
            run.broken.get_or_insert(error);
        }
    }
    let mut ran = run.finish(report, ended, responded);
    if driver.answers_itself() {
        ran.report.counters.retain(|count| !SEEN_BY_RESPONDERS.contains(&count.name.as_ref()));
        ran.report.notes.push("no broker: the peer answers itself, and `--responders` has no say".to_owned());
    }
    Ok(ran)
}

/// How many responders are opened.
fn responders(options: &RpcOptions) -> u32 {
    match driver(&options.broker).answers_itself() {
        true => 0,
        false => options.responders,
    }
}

/// How calls are made, for the driver to judge.
fn call_terms(options: &RpcOptions) -> CallTerms<'_> {
    let each = |amount: Amount| match amount {
        Amount::Count(count) => Some(count / u64::from(options.requesters) + 1),
        Amount::Time(_) => None,
    };
    let (warmup, measured) = (each(options.warmup()), each(options.measured()));
    CallTerms {
        depth: options.depth,
        reply: options.reply,
        service: options.named_service(),
        reconnects: options.broker.reconnect,
        calls: warmup.zip(measured).map(|(warmup, measured)| warmup.saturating_add(measured)),
    }
}

/// A run that is connected.
struct Run<'a> {
    options: &'a RpcOptions,
    loops: Vec<EventLoop<RpcRole>>,
    clock: Clock,
    stage: &'a Stage<'a>,
    /// Why the run ended early, if a connection broke.
    broken: Option<Error>,
}

impl Run<'_> {
    /// Each call is sent when an earlier one is answered.
    fn measure_closed(&mut self) -> Result<(Cost, u64, Ended)> {
        let options = self.options;
        let mut ended = self.phase(options.warmup(), "warm-up");
        if let (Ended::TimeOver, Amount::Time(_)) = (ended, options.warmup()) {
            ended = self.settle();
        }
        self.start_counting(self.clock.now());
        self.measured(|run| match ended {
            Ended::Done | Ended::TimeOver => run.phase(options.measured(), "measure"),
            ended => ended,
        })
    }

    /// Each call is sent when it is due, whatever became of those before.
    fn measure_open(&mut self) -> Result<(Cost, u64, Ended)> {
        let (Amount::Time(warmup), Amount::Time(time)) = (self.options.warmup(), self.options.measured())
        else {
            return Err(anyhow!("an open loop goes on for a time; say it with `--time 10s`"));
        };
        let start = self.clock.now().saturating_add(nanos(LEAD));
        let begin = start.saturating_add(nanos(warmup));
        let end = begin.saturating_add(nanos(time));
        // Before the first is due, so that none is missed when the warm-up is over.
        self.start_counting(begin);
        self.each_requester(|requester, asked| requester.follow((start, end), asked));
        let ended = self.wait_until(begin, "warm-up");
        let (cost, answered, ended) = self.measured(|run| match ended {
            Ended::Done | Ended::TimeOver => run.wait_until(end, "measure"),
            ended => ended,
        })?;
        let ended = match ended {
            Ended::TimeOver => self.send_the_rest(),
            ended => ended,
        };
        Ok((cost, answered, ended))
    }

    /// Sends what was due and had no room.
    fn send_the_rest(&mut self) -> Ended {
        let ended = self
            .drive(Bounds::of(Amount::Count(0), false), "drain", None, |_, board| board.asked.scheduled == 0);
        if ended == Ended::Done { Ended::TimeOver } else { ended }
    }

    /// From this time on it counts.
    fn start_counting(&mut self, begin: u64) {
        for event_loop in &mut self.loops {
            event_loop.board.asked.timeline.start(begin);
        }
    }

    /// Does something to each requester, and to what its loop counts.
    fn each_requester(&mut self, mut act: impl FnMut(&mut Requester, &mut Asked)) {
        for event_loop in &mut self.loops {
            let mut asked = std::mem::replace(&mut event_loop.board.asked, Asked::new());
            for requester in requesters_of(event_loop) {
                act(requester, &mut asked);
            }
            event_loop.board.asked = asked;
        }
    }

    /// Measures what a phase costs; says how many calls were answered in it.
    fn measured(&mut self, phase: impl FnOnce(&mut Self) -> Ended) -> Result<(Cost, u64, Ended)> {
        let before = self.answered();
        let meter = self.stage.watch.measure()?;
        let ended = phase(self);
        let cost = self.stage.watch.measured(meter)?;
        Ok((cost, self.answered().saturating_sub(before), ended))
    }

    /// Calls that were answered so far.
    fn answered(&self) -> u64 {
        let asked = self.loops.iter().map(|event_loop| &event_loop.board.asked);
        asked.map(|asked| asked.settled.saturating_sub(asked.ledger.timeouts + asked.ledger.unknown)).sum()
    }

    /// Waits for the replies that are due, and for those that nobody expects any more.
    fn settle_up(&mut self, mut ended: Ended) -> Ended {
        let now = self.clock.now();
        self.each_requester(|requester, asked| requester.leave_schedule(now, asked));
        if ended == Ended::TimeOver {
            ended = self.settle();
        }
        if ended != Ended::Broken {
            let lingered = drive_all(&mut self.loops, Bounds::quiet(LINGER), |_, _| false, |_| {});
            if let Err(error) = lingered {
                self.broken.get_or_insert(error);
                ended = Ended::Broken;
            }
        }
        ended
    }

    /// Sends for this amount and waits for the replies, or until the time is over.
    fn phase(&mut self, amount: Amount, name: &str) -> Ended {
        let total = match amount {
            Amount::Count(0) => return Ended::Done,
            Amount::Count(count) => Some(count),
            Amount::Time(_) => None,
        };
        let count = u64::from(self.options.requesters);
        let mut index = 0;
        let mut goals = Vec::new();
        for event_loop in &mut self.loops {
            let mut goal = event_loop.board.asked.settled;
            for requester in requesters_of(event_loop) {
                let share = total.map_or(u64::MAX, |total| total / count + u64::from(index < total % count));
                requester.extend(share);
                goal = goal.saturating_add(share);
                index += 1;
            }
            goals.push(goal);
        }
        let bounds = Bounds::of(amount, self.options.depth() == Depth::All);
        self.drive(bounds, name, total, |at, board| {
            goals.get(at).is_some_and(|goal| board.asked.settled >= *goal)
        })
    }

    /// Lets the schedules go on until a time; a broker that stands still does not end it.
    fn wait_until(&mut self, end: u64, name: &str) -> Ended {
        let time = Duration::from_nanos(end.saturating_sub(self.clock.now()));
        let bounds = Bounds { time: Some(time), quiet: Duration::MAX, writes_count: false };
        self.drive(bounds, name, None, |_, _| false)
    }

    /// Sends no more and waits for the replies that are due.
    fn settle(&mut self) -> Ended {
        for requester in self.loops.iter_mut().flat_map(requesters_of) {
            requester.extend(0);
        }
        let bounds = Bounds::of(Amount::Count(0), self.options.depth() == Depth::All);
        self.drive(bounds, "drain", None, |_, board| board.asked.settled >= board.asked.ledger.sent)
    }

    /// Turns the loops, and shows how far the first is, taking the others to be as far.
    fn drive(
        &mut self,
        bounds: Bounds,
        name: &str,
        total: Option<u64>,
        is_done: impl Fn(usize, &RpcBoard) -> bool + Sync,
    ) -> Ended {
        let before = self.loops.first().map_or(0, |first| first.board.asked.settled);
        let count = self.loops.len() as u64;
        let stage = self.stage;
        stage.phase(name);
        let show = |board: &RpcBoard| {
            let done = (board.asked.settled - before).saturating_mul(count);
            stage.show(done, total, &board.asked.timeline);
        };
        match drive_all(&mut self.loops, bounds, is_done, show) {
            Ok(ended) => ended,
            Err(error) => {
                self.broken.get_or_insert(error);
                Ended::Broken
            }
        }
    }

    /// With depth `all`, whether the broker took every request and simply does not answer some of
    /// them: those calls are given up, and the ledger says the rest.
    fn is_only_waiting(&mut self) -> bool {
        let answered_some = self.loops.iter().any(|event_loop| event_loop.board.asked.settled > 0);
        let has_written = self.loops.iter().all(|event_loop| event_loop.unwritten() == 0);
        let has_sent =
            self.loops.iter_mut().flat_map(requesters_of).all(|requester| requester.has_sent_all());
        let is_waiting = self.options.depth() == Depth::All && answered_some && has_written && has_sent;
        if is_waiting {
            let now = self.clock.now();
            self.each_requester(|requester, asked| requester.give_up_before(u64::MAX >> 1, now, asked));
        }
        is_waiting
    }

    /// Closes the ledger.
    fn finish(mut self, mut report: Report, ended: Ended, responded: Answered) -> Ran {
        report.outcome = match ended {
            Ended::Broken => Outcome::Broken,
            Ended::Stopped => Outcome::Stopped,
            Ended::Blocked if !self.is_only_waiting() => Outcome::Blocked,
            _ => Outcome::Done,
        };
        let mut asked = Asked::new();
        for event_loop in &mut self.loops {
            asked.add(&mut event_loop.board.asked);
        }
        report.ledger = asked.ledger;
        report.ledger.lost = asked.ledger.timeouts.saturating_sub(asked.ledger.late);
        let unanswered = asked.ledger.sent.saturating_sub(asked.settled);
        if asked.timeline.reconnects() > 0 {
            // A request or its reply may have been on a connection that broke.
            report.ledger.unknown += std::mem::take(&mut report.ledger.lost);
        }
        if matches!(report.outcome, Outcome::Broken | Outcome::Stopped) {
            report.ledger.unknown += unanswered;
        }
        report.notes.extend(self.broken.as_ref().map(|error| format!("{error:#}")));
        report.notes.extend(unsent_note(report.outcome, asked.unsent));
        report.counters = vec![
            Count::new("requests_sent", asked.ledger.sent),
            Count::new("requests_received", responded.received),
            Count::new("replies_sent", responded.received),
            Count::new(
                "replies_received",
                asked.ledger.good + asked.ledger.altered + asked.ledger.duplicated,
            ),
            Count::new("unanswered", unanswered),
            Count::new("foreign_requests", responded.foreign),
            Count::new("unreadable_requests", responded.unreadable),
        ];
        let kind = match self.options.depth() {
            Depth::InFlight(1) => LatencyKind::Service,
            _ => LatencyKind::Queueing,
        };
        Ran::new(report, asked.timeline, &self.options.load, kind, 1)
    }
}

fn requesters_of(event_loop: &mut EventLoop<RpcRole>) -> impl Iterator<Item = &mut Requester> {
    event_loop.roles().filter_map(|role| match role {
        RpcRole::Requester(requester) => Some(&mut **requester),
        RpcRole::Responder(_) => None,
    })
}

fn subject(options: &RpcOptions, server: String, threads: u32) -> Subject {
    let (mode, depth) = match options.depth() {
        Depth::InFlight(1) => ("CLOSED lock-step".to_owned(), "1".to_owned()),
        Depth::InFlight(depth) => (format!("CLOSED pipelined x{depth}"), depth.to_string()),
        Depth::All => ("CLOSED send all, then read".to_owned(), "all".to_owned()),
    };
    let mode = options.load.open_mode().unwrap_or(mode);
    let depth = match options.depth {
        None if options.load.open_rate().is_some() => "as due".to_owned(),
        _ => depth,
    };
    Subject {
        scenario: "rpc",
        mode,
        depth: Some(depth.clone()),
        server,
        asked: asked([
            ("requesters", json!(options.requesters)),
            ("responders", json!(responders(options))),
            ("depth", json!(depth)),
            ("size", json!(options.size)),
            ("reply", json!(options.reply)),
            ("independent", json!(options.independent)),
            ("style", json!(driver(&options.broker).name())),
            ("level", json!("memory")),
        ]),
        unit: "requests",
        threads,
    }
}

/// A connection of this scenario.
enum RpcRole {
    Requester(Box<Requester>),
    Responder(Responder),
}

struct RpcBoard {
    asked: Asked,
    answered: Answered,
}

impl RpcBoard {
    fn new() -> RpcBoard {
        RpcBoard { asked: Asked::new(), answered: Answered::default() }
    }
}

impl Role for RpcRole {
    type Board = RpcBoard;

    fn hear(&mut self, heard: &Heard<'_>, now: u64, board: &mut RpcBoard, out: &mut Vec<u8>) {
        let Heard::Delivery(delivery) = heard else { return };
        match self {
            RpcRole::Requester(requester) => requester.reply(delivery, now, &mut board.asked),
            RpcRole::Responder(responder) => responder.request(delivery, &mut board.answered, out),
        }
    }

    fn fill(&mut self, now: u64, board: &mut RpcBoard, out: &mut Vec<u8>) -> bool {
        match self {
            RpcRole::Requester(requester) => requester.fill(now, &mut board.asked, out),
            RpcRole::Responder(_) => false,
        }
    }

    fn reads(&self, unwritten: usize) -> bool {
        match self {
            RpcRole::Requester(requester) => requester.reads(unwritten),
            RpcRole::Responder(_) => true,
        }
    }

    fn is_producer(&self) -> bool {
        match self {
            RpcRole::Requester(requester) => requester.is_paced(),
            RpcRole::Responder(_) => false,
        }
    }

    fn next_due(&self) -> Option<u64> {
        match self {
            RpcRole::Requester(requester) => requester.next_due(),
            RpcRole::Responder(_) => None,
        }
    }

    fn cut_off(&mut self, now: u64, board: &mut RpcBoard) {
        if let RpcRole::Requester(requester) = self {
            requester.cut_off(now, &mut board.asked);
        }
    }

    fn reopened(&mut self, now: u64, board: &mut RpcBoard) {
        board.asked.timeline.reconnected(now);
    }

    fn tick(&mut self, now: u64, board: &mut RpcBoard) {
        if let RpcRole::Requester(requester) = self {
            requester.tick(now, &mut board.asked);
        }
    }
}
