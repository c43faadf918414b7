//! Scenario `rpc`: R requesters send n, S responders answer n + 1, every reply is checked.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Result, anyhow};
use serde_json::json;

use crate::amount::Amount;
use crate::destination::Destination;
use crate::event_loop::{Clock, EventLoop, Role};
use crate::frame::Frame;
use crate::handshake::Session;
use crate::latency::LatencyKind;
use crate::limits::TICK;
use crate::options::{AckMode, Depth, ReplyKind, RpcOptions};
use crate::phase::{Bounds, Ended, Meter, Progress, drive};
use crate::report::{Count, Outcome, Report, Subject, asked};
use crate::requester::{Asked, Identity, Requester};
use crate::responder::{Answered, Responder};
use crate::stamp::run_id;

/// How long to listen for replies that nobody expects any more.
const LINGER: Duration = Duration::from_millis(300);

/// Runs the scenario.
pub fn run(options: &RpcOptions) -> Result<Report> {
    options.check()?;
    let run = run_id();
    let style = options.broker.destination_style;
    let service = Destination::queue(style, &options.destination);
    let clock = Clock::start();
    let mut main = EventLoop::new(RpcBoard::new(), clock)?;
    let mut other = match options.broker.threads {
        1 => None,
        _ => Some(EventLoop::new(RpcBoard::new(), clock)?),
    };
    for _ in 0..options.responders {
        let mut session = Session::open(&options.broker.url)?;
        session.subscribe(&service, AckMode::Auto, None)?;
        other
            .as_mut()
            .unwrap_or(&mut main)
            .add(session, RpcRole::Responder(Responder::new(run, &service)))?;
    }
    let mut server = String::new();
    for index in 0..options.requesters {
        let mut session = Session::open(&options.broker.url)?;
        let reply_to = match options.reply {
            ReplyKind::TempQueue => "/temp-queue/imori-bench".to_owned(),
            ReplyKind::Named => {
                let replies = Destination::queue(style, &format!("{}-reply-{index}", options.destination));
                session.subscribe(&replies, AckMode::Auto, None)?;
                replies.name
            }
        };
        server.clone_from(&session.server);
        let identity = Identity { run, index: index as u16, requesters: options.requesters };
        let requester =
            Requester::new(identity, &service, &reply_to, options.size, options.depth, options.timeout);
        main.add(session, RpcRole::Requester(Box::new(requester)))?;
    }
    let other = other.map(OtherThread::start);
    let mut report = measure(options, &mut main, subject(options, server))?;
    let mut answered = main.board.answered;
    if let Some(other) = other {
        answered = other.stop()?;
    }
    finish(&mut report, &main.board.asked, answered);
    Ok(report)
}

/// Warm-up, measurement, and listening for stragglers.
fn measure(options: &RpcOptions, main: &mut EventLoop<RpcRole>, subject: Subject) -> Result<Report> {
    let progress = Progress::new(options.broker.progress);
    let mut ended = phase(options, main, options.warmup(), &progress, "warm-up")?;
    if let (Ended::TimeOver, Amount::Time(_)) = (ended, options.warmup()) {
        ended = settle(options, main, &progress)?;
    }
    let settled_before = main.board.asked.settled;
    let timeouts_before = main.board.asked.ledger.timeouts;
    main.board.asked.recorder.clear();
    let meter = Meter::start(&options.broker.pid)?;
    if ended != Ended::Blocked {
        ended = phase(options, main, options.measured(), &progress, "measure")?;
    }
    let cost = meter.stop()?;
    let board = &main.board.asked;
    let given_up = board.ledger.timeouts - timeouts_before;
    let answered = (board.settled - settled_before).saturating_sub(given_up);
    let kind = match options.depth {
        Depth::InFlight(1) => LatencyKind::Service,
        _ => LatencyKind::Queueing,
    };
    let latency = board.recorder.summary(kind);
    if ended == Ended::TimeOver {
        ended = settle(options, main, &progress)?;
    }
    drive(main, Bounds::quiet(LINGER), |_| false, |_| {})?;
    progress.clear();
    let mut report = Report::new(subject, &options.broker, &cost, answered, answered.saturating_mul(2));
    report.latency = Some(latency);
    if ended == Ended::Blocked && !is_only_waiting(options, main) {
        report.outcome = Outcome::Blocked;
    }
    Ok(report)
}

/// Sends for this amount and waits for the replies, or until the time is over.
fn phase(
    options: &RpcOptions,
    main: &mut EventLoop<RpcRole>,
    amount: Amount,
    progress: &Progress,
    name: &str,
) -> Result<Ended> {
    let total = match amount {
        Amount::Count(0) => return Ok(Ended::Done),
        Amount::Count(count) => Some(count),
        Amount::Time(_) => None,
    };
    let before = main.board.asked.settled;
    let requesters = u64::from(options.requesters);
    for (index, requester) in requesters_of(main).enumerate() {
        let share = total
            .map_or(u64::MAX, |total| total / requesters + u64::from((index as u64) < total % requesters));
        requester.extend(share);
    }
    let goal = total.map(|total| before.saturating_add(total));
    let bounds = Bounds::of(amount, options.depth == Depth::All);
    let show = |board: &RpcBoard| progress.show(name, board.asked.settled - before, total);
    drive(main, bounds, |board| goal.is_some_and(|goal| board.asked.settled >= goal), show)
}

/// Sends no more and waits for the replies that are due.
fn settle(options: &RpcOptions, main: &mut EventLoop<RpcRole>, progress: &Progress) -> Result<Ended> {
    for requester in requesters_of(main) {
        requester.extend(0);
    }
    let sent = main.board.asked.ledger.sent;
    let bounds = Bounds::of(Amount::Count(sent), options.depth == Depth::All);
    drive(
        main,
        bounds,
        |board| board.asked.settled >= sent,
        |board| progress.show("drain", board.asked.settled, Some(sent)),
    )
}

/// With depth `all`, whether the broker took every request and simply does not answer some of
/// them: those calls are given up, and the ledger says the rest.
fn is_only_waiting(options: &RpcOptions, main: &mut EventLoop<RpcRole>) -> bool {
    let answered_some = main.board.asked.settled > 0;
    let is_waiting = options.depth == Depth::All
        && answered_some
        && main.unwritten() == 0
        && requesters_of(main).all(|requester| requester.has_sent_all());
    if is_waiting {
        let mut asked = std::mem::replace(&mut main.board.asked, Asked::new());
        for requester in requesters_of(main) {
            requester.give_up_before(u64::MAX >> 1, &mut asked);
        }
        main.board.asked = asked;
    }
    is_waiting
}

fn requesters_of(main: &mut EventLoop<RpcRole>) -> impl Iterator<Item = &mut Requester> {
    main.roles().filter_map(|role| match role {
        RpcRole::Requester(requester) => Some(&mut **requester),
        RpcRole::Responder(_) => None,
    })
}

fn finish(report: &mut Report, asked: &Asked, answered: Answered) {
    report.ledger = asked.ledger;
    report.ledger.lost = asked.ledger.timeouts.saturating_sub(asked.ledger.late);
    report.counters = vec![
        Count { name: "requests_sent", value: asked.ledger.sent },
        Count { name: "requests_received", value: answered.received },
        Count { name: "replies_sent", value: answered.received },
        Count {
            name: "replies_received",
            value: asked.ledger.good + asked.ledger.altered + asked.ledger.duplicated,
        },
        Count { name: "unanswered", value: asked.ledger.sent.saturating_sub(asked.settled) },
        Count { name: "foreign_requests", value: answered.foreign },
        Count { name: "unreadable_requests", value: answered.unreadable },
    ];
}

fn subject(options: &RpcOptions, server: String) -> Subject {
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
            ("responders", json!(options.responders)),
            ("depth", json!(depth)),
            ("size", json!(options.size)),
            ("reply", json!(options.reply)),
            ("style", json!(options.broker.destination_style)),
            ("level", json!("memory")),
        ]),
        unit: "requests",
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

    fn frame(&mut self, frame: &Frame<'_>, now: u64, board: &mut RpcBoard, out: &mut Vec<u8>) {
        match self {
            RpcRole::Requester(requester) => requester.frame(frame, now, &mut board.asked),
            RpcRole::Responder(responder) => responder.frame(frame, &mut board.answered, out),
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
