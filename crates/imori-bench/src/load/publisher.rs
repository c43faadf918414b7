//! A publishing connection: sends by a schedule, or as fast as the socket and a window allow.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::limits::{CALLS_MAX, FILL_BYTES};
use crate::load::flow::Flow;
use crate::load::schedule::Schedule;
use crate::load::unconfirmed::Unconfirmed;
use crate::options::Arrival;
use crate::protocol::template::MessageTemplate;
use crate::record::Timeline;
use crate::stamp::Stamp;

/// The pace of a publisher in an open loop.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pace {
    /// Operations per second of all connections together.
    pub(crate) rate: f64,
    /// Distribution of the operations over time.
    pub(crate) arrival: Arrival,
    /// The seed of the schedule.
    pub(crate) seed: u64,
    /// Index of this connection, and the number of connections.
    pub(crate) share: (u32, u32),
}

impl Pace {
    /// The schedule for a span of time, in nanoseconds of the run's clock.
    pub(crate) fn schedule(&self, span: (u64, u64)) -> Schedule {
        Schedule::new(self.arrival, self.rate, self.seed, self.share, span)
    }
}

/// The messages for which a publisher requests a confirm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Confirms {
    /// Nothing.
    None,
    /// The last message of a phase.
    Last,
    /// Every message, of which this many may be unconfirmed.
    Each(u32),
}

/// One publisher.
#[derive(Debug)]
pub(crate) struct Publisher {
    run: u16,
    index: u16,
    template: MessageTemplate,
    /// Template of a message with a request for a confirm.
    confirmed: MessageTemplate,
    confirms: Confirms,
    pace: Option<Pace>,
    flow: Arc<Flow>,
    sent: u64,
    /// Number of the first message on this connection, if confirms count messages per connection.
    counted_from: Option<u32>,
    /// The last phase seen, and the number of messages sent when it began.
    phase: u64,
    base: u64,
    /// The schedule of the phase, in an open loop.
    schedule: Option<Schedule>,
    unconfirmed: Unconfirmed,
    /// Whether a message is due but has no room.
    is_held: bool,
}

/// Settings of a publisher.
#[derive(Debug)]
pub(crate) struct Publishing {
    /// The run, named in every stamp.
    pub(crate) run: u16,
    /// Index of the publisher.
    pub(crate) index: u16,
    /// Templates of a message without and with a request for a confirm.
    pub(crate) templates: (MessageTemplate, MessageTemplate),
    /// The confirms to request.
    pub(crate) confirms: Confirms,
    /// Whether the broker numbers confirms by the messages of the connection.
    pub(crate) confirms_count: bool,
    /// The pace of an open loop.
    pub(crate) pace: Option<Pace>,
}

impl Publisher {
    /// Creates a publisher that sends nothing until the flow begins a phase.
    pub(crate) fn new(publishing: Publishing, flow: Arc<Flow>) -> Publisher {
        let Publishing { run, index, templates: (template, confirmed), confirms, confirms_count, pace } =
            publishing;
        Publisher {
            run,
            index,
            template,
            confirmed,
            confirms,
            pace,
            flow,
            sent: 0,
            counted_from: confirms_count.then_some(0),
            phase: 0,
            base: 0,
            schedule: None,
            unconfirmed: Unconfirmed::default(),
            is_held: false,
        }
    }

    /// Appends the messages that are due, as far as window and phase allow.
    pub(crate) fn fill(&mut self, now: u64, timeline: &mut Timeline, out: &mut Vec<u8>) -> bool {
        let flow = Arc::clone(&self.flow);
        let phase = flow.phase();
        if phase.number != self.phase {
            self.phase = phase.number;
            self.base = self.sent;
            self.schedule = self.pace.zip(phase.span).map(|(pace, span)| pace.schedule(span));
            timeline.start_once(phase.measured_from);
        }
        let until = self.base.saturating_add(phase.share).min(CALLS_MAX);
        let left = until.saturating_sub(self.sent);
        if left == 0 {
            self.leave_schedule(now, timeline);
            return false;
        }
        let room = self.room(left);
        let sent = match self.schedule.take() {
            Some(mut schedule) => {
                let sent = self.send_due(&mut schedule, room, now, timeline, out);
                self.is_held = sent >= room && schedule.peek().is_some_and(|due| due <= now);
                match schedule.peek() {
                    Some(_) => self.schedule = Some(schedule),
                    None => {
                        flow.scheduled.fetch_sub(1, Ordering::SeqCst);
                    }
                }
                sent
            }
            None if self.pace.is_some() => 0,
            None => {
                let mut sent = 0;
                while sent < room && out.len() < FILL_BYTES {
                    let is_last = self.sent.saturating_add(1) == until;
                    self.send(now, is_last, out);
                    sent += 1;
                }
                timeline.sent(now, sent);
                sent
            }
        };
        flow.published.fetch_add(sent, Ordering::SeqCst);
        sent < room && out.len() >= FILL_BYTES
    }

    /// Handles a confirm with this number.
    pub(crate) fn confirm(&mut self, number: u32, now: u64, timeline: &mut Timeline) {
        let number = self.counted_from.unwrap_or_default().wrapping_add(number);
        if let Some(due) = self.unconfirmed.confirm(number) {
            self.is_held = false;
            self.flow.unconfirmed.fetch_sub(1, Ordering::SeqCst);
            timeline.confirmed(due, now);
        }
    }

    /// Handles a broken connection: the outcome of unconfirmed messages is unknown. Returns these messages.
    pub(crate) fn cut_off(&mut self) -> impl Iterator<Item = (u16, u32)> {
        let index = self.index;
        self.is_held = false;
        self.flow.unconfirmed.fetch_sub(self.unconfirmed.count() as u64, Ordering::SeqCst);
        self.unconfirmed.drain().map(move |number| (index, number))
    }

    /// Handles a re-opened connection.
    pub(crate) fn reopened(&mut self) {
        self.counted_from = self.counted_from.map(|_| self.sent as u32);
        self.flow.write_off();
    }

    /// When the next message is due; `None` if that does not depend on the time.
    pub(crate) fn next_due(&self) -> Option<u64> {
        self.schedule.as_ref().filter(|_| !self.is_held).and_then(Schedule::peek)
    }

    /// Ends the schedule; messages that were due by now count as offered and unsent.
    fn leave_schedule(&mut self, now: u64, timeline: &mut Timeline) {
        let Some(mut schedule) = self.schedule.take() else {
            return;
        };
        while let Some(due) = schedule.peek().filter(|due| *due <= now) {
            timeline.unsent(due, now);
            self.flow.unsent.fetch_add(1, Ordering::SeqCst);
            schedule.advance();
        }
        self.flow.scheduled.fetch_sub(1, Ordering::SeqCst);
    }

    /// Number of messages that may be sent now.
    fn room(&self, left: u64) -> u64 {
        let mut room = self.flow.room();
        if room < left {
            self.flow.is_waiting.store(true, Ordering::SeqCst);
            // Read again, because the window may have opened just before the flag was set.
            room = self.flow.room();
        }
        let room = room.min(self.template.room());
        match self.confirms {
            Confirms::Each(window) => {
                let unconfirmed = u64::from(window).saturating_sub(self.unconfirmed.count() as u64);
                left.min(room).min(unconfirmed)
            }
            Confirms::None | Confirms::Last => left.min(room),
        }
    }

    fn send_due(
        &mut self,
        schedule: &mut Schedule,
        room: u64,
        now: u64,
        timeline: &mut Timeline,
        out: &mut Vec<u8>,
    ) -> u64 {
        let mut sent = 0;
        while let Some(due) = schedule.peek().filter(|due| *due <= now)
            && sent < room
            && out.len() < FILL_BYTES
        {
            self.flow.note_lag(self.index, self.sent as u32, now.saturating_sub(due));
            timeline.sent_due(due, now);
            self.send(due, false, out);
            schedule.advance();
            sent += 1;
        }
        sent
    }

    fn send(&mut self, due: u64, is_last: bool, out: &mut Vec<u8>) {
        let number = self.sent as u32;
        let sent_micros = (due / 1_000) as u32;
        let stamp = Stamp { run: self.run, publisher: self.index, number, sent_micros }.bytes();
        self.sent += 1;
        match (self.confirms, is_last) {
            (Confirms::Each(_), _) => {
                self.unconfirmed.send(number, due);
                self.flow.unconfirmed.fetch_add(1, Ordering::SeqCst);
                self.confirmed.append(out, number, &stamp);
            }
            (Confirms::Last, true) => self.confirmed.append(out, number, &stamp),
            _ => self.template.append(out, number, &stamp),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn publisher(confirms: Confirms, pace: Option<Pace>, flow: &Arc<Flow>) -> Publisher {
        let template = || MessageTemplate::new(|_| String::new(), b"", b"");
        let templates = (template(), template());
        Publisher::new(
            Publishing { run: 1, index: 0, templates, confirms, confirms_count: false, pace },
            Arc::clone(flow),
        )
    }

    #[test]
    fn window_and_phase_bound_what_is_sent() {
        for (share, window, passed, fan_out, expected) in [
            (0, 5, 0, 1, 0),
            (3, 5, 0, 1, 3),
            (9, 5, 0, 1, 5),
            (9, 5, 2, 1, 7),
            (9, 5, 4, 2, 7),
            (9, 5, 5, 2, 7),
        ] {
            let flow = Arc::new(Flow::new(fan_out, window));
            flow.begin(share, 0);
            let mut publisher = publisher(Confirms::None, None, &flow);
            let (mut timeline, mut out) = (Timeline::new(), Vec::new());
            assert!(!publisher.fill(0, &mut timeline, &mut out));
            flow.passed.store(passed, Ordering::SeqCst);
            publisher.fill(0, &mut timeline, &mut out);
            assert_eq!(publisher.sent, expected, "share {share}, window {window}, passed {passed}");
            assert_eq!(flow.published.load(Ordering::SeqCst), expected);
        }
    }

    #[test]
    fn a_phase_adds_to_what_was_sent_and_can_be_stopped() {
        let flow = Arc::new(Flow::new(1, 100));
        let mut publisher = publisher(Confirms::None, None, &flow);
        let (mut timeline, mut out) = (Timeline::new(), Vec::new());
        for (share, expected) in [(3, 3), (4, 7), (u64::MAX, 100)] {
            flow.begin(share, 0);
            publisher.fill(0, &mut timeline, &mut out);
            assert_eq!(publisher.sent, expected);
        }
        flow.passed.store(50, Ordering::SeqCst);
        flow.stop();
        publisher.fill(0, &mut timeline, &mut out);
        assert_eq!(publisher.sent, 100);
    }

    #[test]
    fn a_schedule_is_kept_and_what_is_late_is_still_sent() {
        let flow = Arc::new(Flow::open(1, 100, 1));
        let pace = Pace { rate: 1_000.0, arrival: Arrival::Fixed, seed: 1, share: (0, 1) };
        let mut publisher = publisher(Confirms::None, Some(pace), &flow);
        let (mut timeline, mut out) = (Timeline::new(), Vec::new());
        flow.begin_open((0, 1_000_000_000), 0);
        for (now, sent, next) in [(0, 1, 1_000_000), (500_000, 1, 1_000_000), (9_000_000, 10, 10_000_000)] {
            publisher.fill(now, &mut timeline, &mut out);
            assert_eq!((publisher.sent, publisher.next_due()), (sent, Some(next)), "at {now}");
        }
        assert_eq!(flow.lag(0, 1), Some(8_000_000));
        publisher.fill(u64::MAX, &mut timeline, &mut out);
        assert_eq!((publisher.sent, publisher.next_due()), (100, None), "held by the window");
        for _ in 0..9 {
            flow.passed.fetch_add(100, Ordering::SeqCst);
            publisher.fill(u64::MAX, &mut timeline, &mut out);
            out.clear();
        }
        assert_eq!(flow.published.load(Ordering::SeqCst), 1_000);
        assert_eq!(flow.scheduled.load(Ordering::SeqCst), 0, "the schedule is at its end");
    }

    #[test]
    fn what_is_due_and_has_no_room_was_offered() {
        let flow = Arc::new(Flow::open(1, 100, 1));
        let pace = Pace { rate: 1_000.0, arrival: Arrival::Fixed, seed: 1, share: (0, 1) };
        let mut publisher = publisher(Confirms::Each(4), Some(pace), &flow);
        let (mut timeline, mut out) = (Timeline::new(), Vec::new());
        flow.begin_open((0, 1_000_000_000), 0);
        publisher.fill(9_000_000, &mut timeline, &mut out);
        assert_eq!((publisher.sent, flow.unconfirmed.load(Ordering::SeqCst)), (4, 4));
        flow.stop();
        publisher.fill(9_000_000, &mut timeline, &mut out);
        timeline.finish();
        let offered: Vec<_> = timeline.rows(1).iter().map(|row| (row.offered, row.sent)).collect();
        assert_eq!(offered, [(10, 4)]);
        assert_eq!((flow.unsent.load(Ordering::SeqCst), flow.scheduled.load(Ordering::SeqCst)), (6, 0));
    }

    #[test]
    fn unconfirmed_messages_bound_what_is_sent() {
        let flow = Arc::new(Flow::new(1, 100));
        let mut publisher = publisher(Confirms::Each(4), None, &flow);
        let (mut timeline, mut out) = (Timeline::new(), Vec::new());
        flow.begin(10, 0);
        publisher.fill(0, &mut timeline, &mut out);
        assert_eq!(publisher.sent, 4);
        for number in [1, 3, 3] {
            publisher.confirm(number, 5, &mut timeline);
        }
        publisher.fill(0, &mut timeline, &mut out);
        assert_eq!(publisher.sent, 6);
    }
}
