//! One run of scenario `rpc`, from the first call to the closed ledger.

use std::time::Duration;

use anyhow::{Error, Result, anyhow};

use crate::amount::Amount;
use crate::clock::Clock;
use crate::load::event_loop::EventLoop;
use crate::load::phase::{Bounds, Ended, drive_all};
use crate::load::requester::{Requester, RequesterCounts};
use crate::load::responder::Answered;
use crate::options::{Depth, RpcOptions};
use crate::record::latency::LatencyKind;
use crate::record::report::{NamedCount, Outcome, Report};
use crate::scenario::rpc_role::{RpcBoard, RpcRole};
use crate::scenario::stage::Stage;
use crate::scenario::summary::{LEAD, Ran, nanos, unsent_note};
use crate::watch::cost::Cost;

/// Time to listen for unexpected replies at the end.
const LINGER: Duration = Duration::from_millis(300);

/// A run with open connections.
pub(super) struct Run<'a> {
    pub(super) options: &'a RpcOptions,
    pub(super) loops: Vec<EventLoop<RpcRole>>,
    pub(super) clock: Clock,
    pub(super) stage: &'a Stage<'a>,
    /// The error that ended the run early, if a connection broke.
    pub(super) broken: Option<Error>,
}

impl Run<'_> {
    /// Closed loop: sends each call when an earlier one is answered.
    pub(super) fn measure_closed(&mut self) -> Result<(Cost, u64, Ended)> {
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

    /// Open loop: sends each call when it is due, whatever became of earlier ones.
    pub(super) fn measure_open(&mut self) -> Result<(Cost, u64, Ended)> {
        let (Amount::Time(warmup), Amount::Time(time)) = (self.options.warmup(), self.options.measured())
        else {
            return Err(anyhow!("an open loop goes on for a time; say it with `--time 10s`"));
        };
        let start = self.clock.now().saturating_add(nanos(LEAD));
        let begin = start.saturating_add(nanos(warmup));
        let end = begin.saturating_add(nanos(time));
        // Starts before the first call is due, so that none is missed at the end of the warm-up.
        self.start_counting(begin);
        self.each_requester(|requester, counts| requester.follow((start, end), counts));
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

    /// Sends the calls that were due but had no room.
    fn send_the_rest(&mut self) -> Ended {
        let ended = self.drive(Bounds::of(Amount::Count(0), false), "drain", None, |_, board| {
            board.counts.scheduled == 0
        });
        if ended == Ended::Done { Ended::TimeOver } else { ended }
    }

    /// Starts measuring at `begin`.
    fn start_counting(&mut self, begin: u64) {
        for event_loop in &mut self.loops {
            event_loop.board.counts.timeline.start(begin);
        }
    }

    /// Calls `act` with each requester and the counts of its loop.
    fn each_requester(&mut self, mut act: impl FnMut(&mut Requester, &mut RequesterCounts)) {
        for event_loop in &mut self.loops {
            let mut counts = std::mem::replace(&mut event_loop.board.counts, RequesterCounts::new());
            for requester in requesters_of(event_loop) {
                act(requester, &mut counts);
            }
            event_loop.board.counts = counts;
        }
    }

    /// Runs a phase and measures its cost; returns the number of calls answered in it.
    fn measured(&mut self, phase: impl FnOnce(&mut Self) -> Ended) -> Result<(Cost, u64, Ended)> {
        let before = self.answered();
        let meter = self.stage.watch.measure()?;
        let ended = phase(self);
        let cost = self.stage.watch.measured(meter)?;
        Ok((cost, self.answered().saturating_sub(before), ended))
    }

    /// Number of calls answered so far.
    fn answered(&self) -> u64 {
        let counts = self.loops.iter().map(|event_loop| &event_loop.board.counts);
        counts
            .map(|counts| counts.settled.saturating_sub(counts.ledger.timeouts + counts.ledger.unknown))
            .sum()
    }

    /// Waits for the replies that are due, and then for unexpected ones.
    pub(super) fn settle_up(&mut self, mut ended: Ended) -> Ended {
        let now = self.clock.now();
        self.each_requester(|requester, counts| requester.leave_schedule(now, counts));
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

    /// Sends this amount and waits for the replies, or until the time has elapsed.
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
            let mut goal = event_loop.board.counts.settled;
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
            goals.get(at).is_some_and(|goal| board.counts.settled >= *goal)
        })
    }

    /// Follows the schedules until a set time; a stalled broker does not end it earlier.
    fn wait_until(&mut self, end: u64, name: &str) -> Ended {
        let time = Duration::from_nanos(end.saturating_sub(self.clock.now()));
        let bounds = Bounds { time: Some(time), quiet: Duration::MAX, writes_count: false };
        self.drive(bounds, name, None, |_, _| false)
    }

    /// Stops sending and waits for the replies that are due.
    fn settle(&mut self) -> Ended {
        for requester in self.loops.iter_mut().flat_map(requesters_of) {
            requester.extend(0);
        }
        let bounds = Bounds::of(Amount::Count(0), self.options.depth() == Depth::All);
        self.drive(bounds, "drain", None, |_, board| board.counts.settled >= board.counts.ledger.sent)
    }

    /// Turns all loops, and estimates the progress from the first one.
    fn drive(
        &mut self,
        bounds: Bounds,
        name: &str,
        total: Option<u64>,
        is_done: impl Fn(usize, &RpcBoard) -> bool + Sync,
    ) -> Ended {
        let before = self.loops.first().map_or(0, |first| first.board.counts.settled);
        let count = self.loops.len() as u64;
        let stage = self.stage;
        stage.phase(name, bounds.time);
        let show = |board: &RpcBoard| {
            let done = (board.counts.settled - before).saturating_mul(count);
            stage.show(done, total, &board.counts.timeline);
        };
        match drive_all(&mut self.loops, bounds, is_done, show) {
            Ok(ended) => ended,
            Err(error) => {
                self.broken.get_or_insert(error);
                Ended::Broken
            }
        }
    }

    /// Whether, with depth `all`, the broker took every request and only some replies are missing.
    /// These calls are then given up and counted in the ledger.
    fn is_only_waiting(&mut self) -> bool {
        let answered_some = self.loops.iter().any(|event_loop| event_loop.board.counts.settled > 0);
        let has_written = self.loops.iter().all(|event_loop| event_loop.unwritten() == 0);
        let has_sent =
            self.loops.iter_mut().flat_map(requesters_of).all(|requester| requester.has_sent_all());
        let is_waiting = self.options.depth() == Depth::All && answered_some && has_written && has_sent;
        if is_waiting {
            let now = self.clock.now();
            self.each_requester(|requester, counts| requester.give_up_before(u64::MAX >> 1, now, counts));
        }
        is_waiting
    }

    /// Closes the ledger and completes the report.
    pub(super) fn finish(mut self, mut report: Report, ended: Ended, responded: Answered) -> Ran {
        report.outcome = match ended {
            Ended::Broken => Outcome::Broken,
            Ended::Stopped => Outcome::Stopped,
            Ended::Blocked if !self.is_only_waiting() => Outcome::Blocked,
            _ => Outcome::Done,
        };
        let mut counts = RequesterCounts::new();
        for event_loop in &mut self.loops {
            counts.add(&mut event_loop.board.counts);
        }
        report.ledger = counts.ledger;
        report.ledger.lost = counts.ledger.timeouts.saturating_sub(counts.ledger.late);
        let unanswered = counts.ledger.sent.saturating_sub(counts.settled);
        if counts.timeline.reconnects() > 0 {
            // The request or its reply may have been lost with a broken connection.
            report.ledger.unknown += std::mem::take(&mut report.ledger.lost);
        }
        if matches!(report.outcome, Outcome::Broken | Outcome::Stopped) {
            report.ledger.unknown += unanswered;
        }
        report.notes.extend(self.broken.as_ref().map(|error| format!("{error:#}")));
        report.notes.extend(unsent_note(report.outcome, counts.unsent));
        report.counters = vec![
            NamedCount::new("requests_sent", counts.ledger.sent),
            NamedCount::new("requests_received", responded.received),
            NamedCount::new("replies_sent", responded.received),
            NamedCount::new(
                "replies_received",
                counts.ledger.good + counts.ledger.altered + counts.ledger.duplicated,
            ),
            NamedCount::new("unanswered", unanswered),
            NamedCount::new("foreign_requests", responded.foreign),
            NamedCount::new("unreadable_requests", responded.unreadable),
        ];
        let kind = match self.options.depth() {
            Depth::InFlight(1) => LatencyKind::Service,
            _ => LatencyKind::Queueing,
        };
        Ran::new(report, counts.timeline, &self.options.load, kind, 1)
    }
}

fn requesters_of(event_loop: &mut EventLoop<RpcRole>) -> impl Iterator<Item = &mut Requester> {
    event_loop.roles().filter_map(|role| match role {
        RpcRole::Requester(requester) => Some(&mut **requester),
        RpcRole::Responder(_) => None,
    })
}
