//! A requesting connection: sends n, expects n + 1, and verifies every reply.

use std::time::Duration;

use crate::limits::{CALLS_MAX, FILL_BYTES};
use crate::load::calls::{Calls, Settled};
use crate::load::publisher::Pace;
use crate::load::schedule::Schedule;
use crate::options::Depth;
use crate::protocol::driver::Delivery;
use crate::protocol::template::{Correlation, RequestTemplate, put_decimal};
use crate::record::Timeline;
use crate::record::ledger::Ledger;

/// The counts of all requesters of a loop.
#[derive(Debug)]
pub(crate) struct RequesterCounts {
    /// The outcome of the calls; `lost` is filled in at the end.
    pub(crate) ledger: Ledger,
    /// Calls that were answered or given up.
    pub(crate) settled: u64,
    /// Requesters with calls left in their schedule, in an open loop.
    pub(crate) scheduled: u64,
    /// Calls that were due and never sent.
    pub(crate) unsent: u64,
    /// Counts per second and latencies of the calls.
    pub(crate) timeline: Timeline,
}

impl RequesterCounts {
    /// Starts with nothing sent.
    pub(crate) fn new() -> RequesterCounts {
        RequesterCounts {
            ledger: Ledger::default(),
            settled: 0,
            scheduled: 0,
            unsent: 0,
            timeline: Timeline::new(),
        }
    }

    /// Adds the counts of another loop's requesters.
    pub(crate) fn add(&mut self, other: &mut RequesterCounts) {
        self.ledger.add(&other.ledger);
        self.settled += other.settled;
        self.scheduled += other.scheduled;
        self.unsent += other.unsent;
        self.timeline.add(&mut other.timeline);
    }
}

/// One requester.
#[derive(Debug)]
pub(crate) struct Requester {
    template: RequestTemplate,
    /// The correlation of its first call, which identifies the requester.
    identity: Correlation,
    /// Number of requesters; together with its own index it makes values unique in the run.
    requesters: u64,
    depth: Depth,
    timeout: Duration,
    padding: Vec<u8>,
    calls: Calls,
    in_flight: u64,
    /// Number of calls it may have sent by the end of this phase, earlier phases included.
    until: u64,
    /// The pace of an open loop, and the schedule of its phase.
    pace: Option<Pace>,
    schedule: Option<Schedule>,
}

impl Requester {
    /// Creates a requester that has nothing to send yet.
    pub(crate) fn new(
        identity: Correlation,
        requesters: u32,
        template: RequestTemplate,
        size: usize,
        depth: Depth,
        timeout: Duration,
        pace: Option<Pace>,
    ) -> Requester {
        Requester {
            template,
            identity,
            requesters: u64::from(requesters),
            depth,
            timeout,
            padding: vec![b' '; size],
            calls: Calls::default(),
            in_flight: 0,
            until: 0,
            pace,
            schedule: None,
        }
    }

    /// Makes it send by its schedule during a span, in nanoseconds of the run's clock.
    pub(crate) fn follow(&mut self, span: (u64, u64), board: &mut RequesterCounts) {
        self.until = CALLS_MAX;
        self.schedule = self.pace.map(|pace| pace.schedule(span));
        board.scheduled += u64::from(self.schedule.is_some());
    }

    /// Ends the schedule; calls that were due by now count as offered and unsent.
    pub(crate) fn leave_schedule(&mut self, now: u64, board: &mut RequesterCounts) {
        let Some(mut schedule) = self.schedule.take() else {
            return;
        };
        while let Some(due) = schedule.peek().filter(|due| *due <= now) {
            board.timeline.unsent(due, now);
            board.unsent += 1;
            schedule.advance();
        }
        board.scheduled -= 1;
        self.until = self.calls.sent();
    }

    /// Allows `count` more calls.
    pub(crate) fn extend(&mut self, count: u64) {
        self.until = self.calls.sent().saturating_add(count).min(CALLS_MAX);
    }

    /// Whether all allowed calls are sent.
    pub(crate) fn has_sent_all(&self) -> bool {
        self.calls.sent() >= self.until
    }

    /// Gives up the calls sent before `time`.
    pub(crate) fn give_up_before(&mut self, time: u64, now: u64, board: &mut RequesterCounts) {
        let mut given_up = 0;
        self.calls.give_up_before(time, |due| {
            given_up += 1;
            board.timeline.given_up(due, now);
        });
        self.in_flight = self.in_flight.saturating_sub(given_up);
        board.settled += given_up;
        board.ledger.timeouts += given_up;
    }

    /// Handles a broken connection: the outcome of the calls in flight is unknown.
    pub(crate) fn cut_off(&mut self, now: u64, board: &mut RequesterCounts) {
        let mut unknown = 0;
        self.calls.give_up_before(u64::MAX >> 1, |due| {
            unknown += 1;
            board.timeline.given_up(due, now);
        });
        self.in_flight = 0;
        board.settled += unknown;
        board.ledger.unknown += unknown;
    }

    /// Checks a reply.
    pub(crate) fn reply(&mut self, reply: &Delivery<'_>, now: u64, board: &mut RequesterCounts) {
        let ledger = &mut board.ledger;
        let Some(correlation) = Correlation::read(reply.correlation) else {
            ledger.foreign += 1;
            return;
        };
        if (Correlation { number: 0, ..correlation }) != self.identity {
            ledger.foreign += 1;
            return;
        }
        match self.calls.answer(u64::from(correlation.number)) {
            Settled::InTime(due, lag) => {
                self.in_flight = self.in_flight.saturating_sub(1);
                board.settled += 1;
                board.timeline.response(due, self.pace.map(|_| lag), now);
            }
            Settled::Late => ledger.late += 1,
            Settled::Again => {
                ledger.duplicated += 1;
                return;
            }
            Settled::Unknown => {
                ledger.foreign += 1;
                return;
            }
        }
        match self.is_successor(reply.body, self.value(u64::from(correlation.number))) {
            true => ledger.good += 1,
            false => ledger.altered += 1,
        }
    }

    /// Sends as many calls as depth and phase allow.
    pub(crate) fn fill(&mut self, now: u64, board: &mut RequesterCounts, out: &mut Vec<u8>) -> bool {
        let room = match self.depth {
            Depth::InFlight(depth) => u64::from(depth).saturating_sub(self.in_flight),
            Depth::All => u64::MAX,
        };
        let room = room.min(self.template.room());
        let due = room.min(self.until.saturating_sub(self.calls.sent()));
        let mut sent = 0;
        while sent < due && out.len() < FILL_BYTES {
            let due_at = match (&mut self.schedule, self.pace) {
                (Some(schedule), _) => match schedule.peek().filter(|at| *at <= now) {
                    Some(at) => {
                        schedule.advance();
                        board.timeline.sent_due(at, now);
                        at
                    }
                    None => break,
                },
                (None, Some(_)) => break,
                (None, None) => now,
            };
            let number = self.calls.sent();
            self.template.append(out, number as u32, self.value(number));
            self.calls.send(due_at, now);
            sent += 1;
        }
        if sent > 0 {
            self.template.finish(out);
        }
        if self.pace.is_none() {
            board.timeline.sent(now, sent);
        }
        if self.schedule.as_ref().is_some_and(|schedule| schedule.peek().is_none()) {
            self.leave_schedule(now, board);
        }
        self.in_flight += sent;
        board.ledger.sent += sent;
        sent < due && out.len() >= FILL_BYTES
    }

    /// When the next call is due; `None` if there is none, or no room for it.
    pub(crate) fn next_due(&self) -> Option<u64> {
        let has_room = match self.depth {
            Depth::InFlight(depth) => self.in_flight < u64::from(depth),
            Depth::All => true,
        };
        let has_room = has_room && self.template.room() > 0;
        self.schedule.as_ref().filter(|_| has_room).and_then(Schedule::peek)
    }

    /// Whether it is paced by a schedule.
    pub(crate) fn is_paced(&self) -> bool {
        self.pace.is_some()
    }

    /// Whether to read; with depth `all`, nothing is read before everything is written.
    pub(crate) fn reads(&self, unwritten: usize) -> bool {
        match self.depth {
            Depth::InFlight(_) => true,
            Depth::All => unwritten == 0 && self.has_sent_all(),
        }
    }

    /// Gives up calls that have timed out.
    pub(crate) fn tick(&mut self, now: u64, board: &mut RequesterCounts) {
        if self.depth != Depth::All {
            let timeout = u64::try_from(self.timeout.as_nanos()).unwrap_or(u64::MAX);
            self.give_up_before(now.saturating_sub(timeout), now, board);
        }
    }

    fn value(&self, number: u64) -> u64 {
        number.saturating_mul(self.requesters).saturating_add(u64::from(self.identity.requester))
    }

    /// Whether the body is the successor of `value`, padded like the request.
    fn is_successor(&self, body: &[u8], value: u64) -> bool {
        let mut digits = [0; 20];
        let length = put_decimal(&mut digits, value.saturating_add(1));
        let Some((head, rest)) = body.split_at_checked(length) else {
            return false;
        };
        body.len() == self.padding.len()
            && digits.get(..length) == Some(head)
            && self.padding.get(length..) == Some(rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDENTITY: Correlation = Correlation { run: 0xabc, requester: 1, number: 0 };

    fn requester(depth: Depth) -> Requester {
        let template = RequestTemplate::new(IDENTITY.to_string().as_bytes(), b"\n", 8, b"");
        Requester::new(IDENTITY, 2, template, 8, depth, Duration::from_secs(1), None)
    }

    fn hear(requester: &mut Requester, board: &mut RequesterCounts, correlation: &str, body: &str) {
        let (correlation, body) = (correlation.as_bytes(), body.as_bytes());
        requester.reply(&Delivery { correlation, body, ..Delivery::default() }, 5, board);
    }

    #[test]
    fn depth_bounds_what_is_in_flight() {
        for (depth, expected) in [(Depth::InFlight(1), 1), (Depth::InFlight(4), 4), (Depth::All, 10)] {
            let (mut requester, mut board, mut out) = (requester(depth), RequesterCounts::new(), Vec::new());
            requester.extend(10);
            assert!(!requester.fill(0, &mut board, &mut out));
            assert_eq!(board.ledger.sent, expected, "{depth:?}");
        }
    }

    #[test]
    fn depth_all_reads_only_when_all_is_written() {
        let (mut requester, mut board, mut out) = (requester(Depth::All), RequesterCounts::new(), Vec::new());
        requester.extend(2);
        assert!(!requester.reads(0));
        requester.fill(0, &mut board, &mut out);
        assert!(!requester.reads(1));
        assert!(requester.reads(0));
    }

    #[test]
    fn each_reply_is_judged_by_identity_value_and_count() {
        // Requester 1 of 2 sends 1, 3, 5, 7 with the numbers 0 to 3.
        let (mut requester, mut board, mut out) =
            (requester(Depth::InFlight(4)), RequesterCounts::new(), Vec::new());
        requester.extend(4);
        requester.fill(0, &mut board, &mut out);
        for (correlation, body) in [
            ("00000abc-0001-00000000", "2       "),
            ("00000abc-0001-00000000", "2       "),
            ("00000abc-0001-00000001", "5       "),
            ("00000abc-0001-00000002", "6      "),
            ("00000abc-0001-00000003", "8      x"),
            ("00000abc-0001-00000009", "20      "),
            ("00000abc-0000-00000000", "1       "),
            ("00000fff-0001-00000000", "2       "),
            ("", "2       "),
        ] {
            hear(&mut requester, &mut board, correlation, body);
        }
        let expected =
            Ledger { sent: 4, good: 1, altered: 3, duplicated: 1, foreign: 4, ..Ledger::default() };
        assert_eq!(board.ledger, expected);
        assert_eq!(board.settled, 4);
    }

    #[test]
    fn a_call_given_up_makes_room_and_may_come_late() {
        let (mut requester, mut board, mut out) =
            (requester(Depth::InFlight(1)), RequesterCounts::new(), Vec::new());
        requester.extend(2);
        requester.fill(1, &mut board, &mut out);
        requester.tick(2_000_000_000, &mut board);
        requester.fill(2_000_000_000, &mut board, &mut out);
        hear(&mut requester, &mut board, "00000abc-0001-00000000", "2       ");
        let expected = Ledger { sent: 2, good: 1, timeouts: 1, late: 1, ..Ledger::default() };
        assert_eq!(board.ledger, expected);
    }
}
