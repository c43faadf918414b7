//! Scenario `rpc`: R requesters send n, S responders answer n + 1, every reply is checked.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Result, anyhow};
use serde_json::json;

use crate::amount::Amount;
use crate::clock::Clock;
use crate::limits::TICK;
use crate::load::event_loop::{EventLoop, Role};
use crate::load::phase::{Bounds, Ended, Meter, Progress, drive_all};
use crate::load::requester::{Asked, Requester};
use crate::load::responder::{Answered, Responder};
use crate::options::{Depth, RpcOptions};
use crate::protocol::driver::{CallTerms, Heard, Place, Terms};
use crate::protocol::session::{Session, driver};
use crate::protocol::template::Correlation;
use crate::record::latency::LatencyKind;
use crate::record::report::{Count, Outcome, Report};
use crate::scenario::summary::{Subject, asked, report};
use crate::stamp::run_id;

/// How long to listen for replies that nobody expects any more.
const LINGER: Duration = Duration::from_millis(300);

/// The service that is asked for unless the options name another.
const SERVICE: &str = "imori-bench-rpc";
/// Counters of responders, where there are some.
const SEEN_BY_RESPONDERS: [&str; 4] =
    ["requests_received", "replies_sent", "foreign_requests", "unreadable_requests"];

/// Runs the scenario.
pub fn run(options: &RpcOptions) -> Result<Report> {
    options.check()?;
    let run = run_id();
    let driver = driver(&options.broker);
    driver.check_calls(call_terms(options))?;
    let responders = if driver.answers_itself() { 0 } else { options.responders };
    let service = Place::Service(options.destination.clone());
    let clock = Clock::start();
    let loop_count = if options.independent { options.requesters } else { 1 };
    let mut loops = Vec::new();
    for _ in 0..loop_count {
        loops.push(EventLoop::new(RpcBoard::new(), clock)?);
    }
    let mut other = match (options.independent || options.broker.threads > 1) && responders > 0 {
        true => Some(EventLoop::new(RpcBoard::new(), clock)?),
        false => None,
    };
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
        let requester =
            Requester::new(first, options.requesters, template, options.size, options.depth, options.timeout);
        if let Some(requesters) = loops.get_mut(requesters) {
            requesters.add(session, RpcRole::Requester(Box::new(requester)))?;
        }
    }
    let threads = loops.len() as u32 + u32::from(other.is_some());
    let other = other.map(OtherThread::start);
    let mut report = measure(options, &mut loops, subject(options, server, threads))?;
    let mut answered = loops.first().map(|first| first.board.answered).unwrap_or_default();
    if let Some(other) = other {
        answered = other.stop()?;
    }
    finish(&mut report, &total(&loops), answered);
    if driver.answers_itself() {
        report.counters.retain(|count| !SEEN_BY_RESPONDERS.contains(&count.name.as_ref()));
        report.notes.push("no broker: the peer answers itself, and `--responders` has no say".into());
    }
    Ok(report)
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
        service: Some(options.destination.as_str()).filter(|name| *name != SERVICE),
        calls: warmup.zip(measured).map(|(warmup, measured)| warmup.saturating_add(measured)),
    }
}

/// Warm-up, measurement, and listening for stragglers.
fn measure(options: &RpcOptions, loops: &mut [EventLoop<RpcRole>], subject: Subject) -> Result<Report> {
    let progress = Progress::new(options.broker.progress);
    let mut ended = phase(options, loops, options.warmup(), &progress, "warm-up")?;
    if let (Ended::TimeOver, Amount::Time(_)) = (ended, options.warmup()) {
        ended = settle(options, loops, &progress)?;
    }
    for event_loop in &mut *loops {
        event_loop.board.asked.recorder.clear();
    }
    let before = total(loops);
    let meter = Meter::start(&options.broker.pid)?;
    if ended != Ended::Blocked {
        ended = phase(options, loops, options.measured(), &progress, "measure")?;
    }
    let cost = meter.stop()?;
    let asked = total(loops);
    let given_up = asked.ledger.timeouts - before.ledger.timeouts;
    let answered = (asked.settled - before.settled).saturating_sub(given_up);
    let kind = match options.depth {
        Depth::InFlight(1) => LatencyKind::Service,
        _ => LatencyKind::Queueing,
    };
    if ended == Ended::TimeOver {
        ended = settle(options, loops, &progress)?;
    }
    drive_all(loops, Bounds::quiet(LINGER), |_, _| false, |_| {})?;
    progress.clear();
    let mut report = report(subject, &options.broker, &cost, answered, answered.saturating_mul(2));
    report.latency = Some(asked.recorder.summary(kind));
    if ended == Ended::Blocked && !is_only_waiting(options, loops) {
        report.outcome = Outcome::Blocked;
    }
    Ok(report)
}

/// What the requesters of all loops counted.
fn total(loops: &[EventLoop<RpcRole>]) -> Asked {
    let mut total = Asked::new();
    for event_loop in loops {
        total.add(&event_loop.board.asked);
    }
    total
}

/// Sends for this amount and waits for the replies, or until the time is over.
fn phase(
    options: &RpcOptions,
    loops: &mut [EventLoop<RpcRole>],
    amount: Amount,
    progress: &Progress,
    name: &str,
) -> Result<Ended> {
    let total = match amount {
        Amount::Count(0) => return Ok(Ended::Done),
        Amount::Count(count) => Some(count),
        Amount::Time(_) => None,
    };
    let count = u64::from(options.requesters);
    let mut index = 0;
    let mut goals = Vec::new();
    for event_loop in &mut *loops {
        let mut goal = event_loop.board.asked.settled;
        for requester in requesters_of(event_loop) {
            let share = total.map_or(u64::MAX, |total| total / count + u64::from(index < total % count));
            requester.extend(share);
            goal = goal.saturating_add(share);
            index += 1;
        }
        goals.push(goal);
    }
    let bounds = Bounds::of(amount, options.depth == Depth::All);
    let show = shown(loops, progress, name, total);
    drive_all(loops, bounds, |at, board| goals.get(at).is_some_and(|goal| board.asked.settled >= *goal), show)
}

/// Sends no more and waits for the replies that are due.
fn settle(options: &RpcOptions, loops: &mut [EventLoop<RpcRole>], progress: &Progress) -> Result<Ended> {
    let mut sent = 0;
    for event_loop in &mut *loops {
        for requester in requesters_of(event_loop) {
            requester.extend(0);
        }
        sent += event_loop.board.asked.ledger.sent;
    }
    let bounds = Bounds::of(Amount::Count(sent), options.depth == Depth::All);
    let show = shown(loops, progress, "drain", None);
    drive_all(loops, bounds, |_, board| board.asked.settled >= board.asked.ledger.sent, show)
}

/// Shows how far the first loop is, and takes the others to be as far.
fn shown<'a>(
    loops: &[EventLoop<RpcRole>],
    progress: &'a Progress,
    name: &'a str,
    total: Option<u64>,
) -> impl FnMut(&RpcBoard) + use<'a> {
    let before = loops.first().map_or(0, |first| first.board.asked.settled);
    let count = loops.len() as u64;
    move |board| progress.show(name, (board.asked.settled - before).saturating_mul(count), total)
}

/// With depth `all`, whether the broker took every request and simply does not answer some of
/// them: those calls are given up, and the ledger says the rest.
fn is_only_waiting(options: &RpcOptions, loops: &mut [EventLoop<RpcRole>]) -> bool {
    let answered_some = loops.iter().any(|event_loop| event_loop.board.asked.settled > 0);
    let has_written = loops.iter().all(|event_loop| event_loop.unwritten() == 0);
    let has_sent = loops.iter_mut().flat_map(requesters_of).all(|requester| requester.has_sent_all());
    let is_waiting = options.depth == Depth::All && answered_some && has_written && has_sent;
    if is_waiting {
        for event_loop in loops {
            let mut asked = std::mem::replace(&mut event_loop.board.asked, Asked::new());
            for requester in requesters_of(event_loop) {
                requester.give_up_before(u64::MAX >> 1, &mut asked);
            }
            event_loop.board.asked = asked;
        }
    }
    is_waiting
}

fn requesters_of(event_loop: &mut EventLoop<RpcRole>) -> impl Iterator<Item = &mut Requester> {
    event_loop.roles().filter_map(|role| match role {
        RpcRole::Requester(requester) => Some(&mut **requester),
        RpcRole::Responder(_) => None,
    })
}

fn finish(report: &mut Report, asked: &Asked, answered: Answered) {
    report.ledger = asked.ledger;
    report.ledger.lost = asked.ledger.timeouts.saturating_sub(asked.ledger.late);
    report.counters = vec![
        Count::new("requests_sent", asked.ledger.sent),
        Count::new("requests_received", answered.received),
        Count::new("replies_sent", answered.received),
        Count::new("replies_received", asked.ledger.good + asked.ledger.altered + asked.ledger.duplicated),
        Count::new("unanswered", asked.ledger.sent.saturating_sub(asked.settled)),
        Count::new("foreign_requests", answered.foreign),
        Count::new("unreadable_requests", answered.unreadable),
    ];
}

fn subject(options: &RpcOptions, server: String, threads: u32) -> Subject {
    let (mode, depth) = match options.depth {
        Depth::InFlight(1) => ("CLOSED lock-step".to_owned(), "1".to_owned()),
        Depth::InFlight(depth) => (format!("CLOSED pipelined x{depth}"), depth.to_string()),
        Depth::All => ("CLOSED send all, then read".to_owned(), "all".to_owned()),
    };
    Subject {
        scenario: "rpc",
        mode,
        depth: Some(depth.clone()),
        server,
        asked: asked([
            ("requesters", json!(options.requesters)),
            (
                "responders",
                json!(if driver(&options.broker).answers_itself() { 0 } else { options.responders }),
            ),
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
        false
    }

    fn tick(&mut self, now: u64, board: &mut RpcBoard) {
        if let RpcRole::Requester(requester) = self {
            requester.tick(now, &mut board.asked);
        }
    }
}

/// The responders on a thread of their own.
struct OtherThread {
    is_stopped: Arc<AtomicBool>,
    waker: Arc<mio::Waker>,
    thread: JoinHandle<Result<Answered>>,
}

impl OtherThread {
    fn start(mut responders: EventLoop<RpcRole>) -> OtherThread {
        let is_stopped = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&is_stopped);
        let waker = responders.waker();
        let thread = std::thread::spawn(move || {
            while !seen.load(Ordering::SeqCst) {
                responders.turn(TICK)?;
            }
            Ok(responders.board.answered)
        });
        OtherThread { is_stopped, waker, thread }
    }

    fn stop(self) -> Result<Answered> {
        self.is_stopped.store(true, Ordering::SeqCst);
        self.waker.wake()?;
        self.thread.join().map_err(|_| anyhow!("the responders' thread panicked"))?
    }
}
