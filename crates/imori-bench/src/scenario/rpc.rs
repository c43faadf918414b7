//! Scenario `rpc`: requesters send n, responders answer n + 1, and every reply is checked.

use anyhow::Result;
use serde_json::json;

use crate::amount::Amount;
use crate::load::event_loop::EventLoop;
use crate::load::other_thread::OtherThread;
use crate::load::phase::Ended;
use crate::load::publisher::Pace;
use crate::load::requester::Requester;
use crate::load::responder::Responder;
use crate::options::{BrokerOptions, Depth, LoadOptions, RpcOptions};
use crate::protocol::driver::{CallTerms, ConfirmMode, Destination, Driver, Terms};
use crate::protocol::session::{Session, driver};
use crate::protocol::template::Correlation;
use crate::scenario::rpc_role::{RpcBoard, RpcRole};
use crate::scenario::rpc_run::Run;
use crate::scenario::stage::Stage;
use crate::scenario::summary::{Ran, Subject, asked, report};
use crate::scenario::watched::Measurable;
use crate::stamp::run_id;

/// Names of the counters that responders keep.
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
    let driver = driver(&options.broker)?;
    driver.check_calls(call_terms(options))?;
    let responders = responders(options, driver);
    let service = Destination::Service(options.destination.clone());
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
        session.prepare(&service, ConfirmMode::None)?;
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
    let subject = subject(options, driver, server, threads);
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

/// Number of responders to open.
fn responders(options: &RpcOptions, driver: &dyn Driver) -> u32 {
    match driver.answers_itself() {
        true => 0,
        false => options.responders,
    }
}

/// The terms of the calls, for the driver to check.
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

fn subject(options: &RpcOptions, driver: &dyn Driver, server: String, threads: u32) -> Subject {
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
            ("responders", json!(responders(options, driver))),
            ("depth", json!(depth)),
            ("size", json!(options.size)),
            ("reply", json!(options.reply)),
            ("independent", json!(options.independent)),
            ("style", json!(driver.name())),
            ("level", json!("memory")),
        ]),
        unit: "requests",
        threads,
    }
}
