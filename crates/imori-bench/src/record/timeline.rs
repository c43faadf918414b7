//! The counts of one thread while it measures: per second, and in total.
//!
//! Every operation is recorded here, so recording costs only one histogram entry, one
//! count of the heat map and a few comparisons. A second's row of the report is made once the second is over.

use crate::record::heat::{HeatColumns, HeatRecorder};
use crate::record::latency::{LatencyKind, Recorder};
use crate::record::series::{HEAT_BOUNDS_US, Second, heat_class};
use crate::record::slow::SlowStretches;

/// Nanoseconds of a second.
const SECOND: u64 = 1_000_000_000;

/// Rows kept, enough for two days; later operations only count towards the totals.
const SECONDS_MAX: usize = 2 * 24 * 3_600;

/// Counts of one second.
#[derive(Debug, Default, Clone)]
pub(crate) struct Tally {
    /// Operations that were due.
    pub(crate) offered: u64,
    /// Operations begun.
    pub(crate) sent: u64,
    /// Messages that the broker confirmed.
    pub(crate) confirmed: u64,
    /// Deliveries, or replies.
    pub(crate) delivered: u64,
    /// The greatest delay of a send behind its schedule, in nanoseconds.
    pub(crate) lag_max: u64,
    /// Connections re-opened.
    pub(crate) reconnects: u64,
    /// Response times of the operations that finished, each with its count.
    responses: Vec<(u64, u32)>,
}

/// Everything that one thread counts while it measures.
#[derive(Debug)]
pub(crate) struct Timeline {
    /// When measuring began; operations due earlier do not count.
    begin: u64,
    seconds: Vec<Tally>,
    /// Index of the second for which responses are being collected.
    current: usize,
    current_begin: u64,
    current_end: u64,
    responses: Recorder,
    total: Recorder,
    service: Recorder,
    confirms: Recorder,
    heat: HeatRecorder,
    reconnects: u64,
    /// Intervals in which operations were slow.
    pub(crate) slow: SlowStretches,
}

impl Timeline {
    /// Creates a timeline that counts nothing until it is started.
    pub(crate) fn new() -> Timeline {
        Timeline {
            begin: u64::MAX,
            seconds: Vec::new(),
            current: 0,
            current_begin: 0,
            current_end: u64::MAX,
            responses: Recorder::new(),
            total: Recorder::new(),
            service: Recorder::new(),
            confirms: Recorder::new(),
            heat: HeatRecorder::new(0),
            reconnects: 0,
            slow: SlowStretches::default(),
        }
    }

    /// Starts measuring at `begin`, unless it already did.
    pub(crate) fn start_once(&mut self, begin: u64) {
        if self.begin != begin - begin % 1_000 {
            self.start(begin);
        }
    }

    /// Starts measuring at `begin`, rounded down to the microsecond, and drops all earlier counts.
    pub(crate) fn start(&mut self, begin: u64) {
        let begin = begin - begin % 1_000;
        *self = Timeline {
            begin,
            current_begin: begin,
            current_end: begin.saturating_add(SECOND),
            heat: HeatRecorder::new(begin),
            // Kept from before, because a broken connection leaves the outcome of messages unknown.
            reconnects: self.reconnects,
            ..Timeline::new()
        };
        self.seconds.push(Tally::default());
    }

    /// Counts operations of a closed loop, which are due when they are sent.
    pub(crate) fn sent(&mut self, now: u64, count: u64) {
        if let Some(tally) = self.tally(now) {
            tally.offered += count;
            tally.sent += count;
        }
    }

    /// Counts a scheduled operation that is sent now.
    pub(crate) fn sent_due(&mut self, due: u64, now: u64) {
        if due < self.begin {
            return;
        }
        if let Some(tally) = self.tally(due) {
            tally.offered += 1;
        }
        if let Some(tally) = self.tally(now) {
            tally.sent += 1;
            tally.lag_max = tally.lag_max.max(now.saturating_sub(due));
        }
    }

    /// Counts a scheduled operation that was due but will not be sent.
    pub(crate) fn unsent(&mut self, due: u64, now: u64) {
        self.given_up(due, now);
        if due >= self.begin
            && let Some(tally) = self.tally(due)
        {
            tally.offered += 1;
        }
    }

    /// Counts a confirm of a message that was due at `due`.
    pub(crate) fn confirmed(&mut self, due: u64, now: u64) {
        if due < self.begin {
            return;
        }
        self.confirms.record(now.saturating_sub(due));
        self.slow.note(due, now);
        if let Some(tally) = self.tally(now) {
            tally.confirmed += 1;
        }
    }

    /// Counts a re-opened connection.
    pub(crate) fn reconnected(&mut self, now: u64) {
        self.reconnects += 1;
        if let Some(tally) = self.tally(now) {
            tally.reconnects += 1;
        }
    }

    /// Number of times a connection was re-opened.
    pub(crate) fn reconnects(&self) -> u64 {
        self.reconnects
    }

    /// Records a response: when it was due, how late it was sent (if known), and when it arrived.
    pub(crate) fn response(&mut self, due: u64, lag: Option<u64>, now: u64) {
        if due < self.begin {
            return;
        }
        let took = now.saturating_sub(due);
        if now >= self.current_end {
            self.roll(now);
        }
        self.responses.record(took);
        self.heat.note(took, now);
        if let Some(lag) = lag {
            self.service.record(took.saturating_sub(lag));
        }
        self.slow.note(due, now);
        if let Some(tally) = self.tally(now) {
            tally.delivered += 1;
        }
    }

    /// Notes an operation that was given up: it has no response time, but it counts as slow.
    pub(crate) fn given_up(&mut self, due: u64, now: u64) {
        if due >= self.begin {
            self.slow.note(due, now);
        }
    }

    /// Adds the counts of another thread for the same run.
    pub(crate) fn add(&mut self, other: &mut Timeline) {
        other.finish();
        self.finish();
        self.begin = self.begin.min(other.begin);
        if self.seconds.len() < other.seconds.len() {
            self.seconds.resize(other.seconds.len(), Tally::default());
        }
        for (tally, theirs) in self.seconds.iter_mut().zip(&other.seconds) {
            tally.add(theirs);
        }
        self.total.add(&other.total);
        self.service.add(&other.service);
        self.confirms.add(&other.confirms);
        self.heat.add(&other.heat);
        self.slow.add(&other.slow);
        self.reconnects += other.reconnects;
    }

    /// Closes the current second, so that the rows and `total` are complete.
    pub(crate) fn finish(&mut self) {
        let counts = self.responses.counts();
        self.responses.clear();
        self.total.add_counts(&counts);
        if let Some(tally) = self.seconds.get_mut(self.current) {
            tally.responses.extend(counts);
        }
    }

    /// All response times, once the timeline is finished.
    pub(crate) fn total(&self) -> &Recorder {
        &self.total
    }

    /// All service times; empty in a closed loop.
    pub(crate) fn service(&self) -> &Recorder {
        &self.service
    }

    /// Times from when a message was due until it was confirmed.
    pub(crate) fn confirms(&self) -> &Recorder {
        &self.confirms
    }

    /// Start of measuring, in nanoseconds of the run's clock.
    pub(crate) fn begin(&self) -> u64 {
        self.begin
    }

    /// The row of second `t`; `None` until that second is over.
    pub(crate) fn row(&self, t: usize) -> Option<Second> {
        self.seconds.get(t).filter(|_| t < self.current).map(|tally| tally.row(t as u32))
    }

    /// The rows of the report; each operation sent is delivered `fan_out` times.
    pub(crate) fn rows(&self, fan_out: u64) -> Vec<Second> {
        let mut in_flight = 0_u64;
        let rows = (0_u32..).zip(&self.seconds).map(|(t, tally)| {
            in_flight = (in_flight + tally.sent * fan_out).saturating_sub(tally.delivered);
            Second { in_flight, ..tally.row(t) }
        });
        rows.collect()
    }

    /// The columns of the heat map, if they are narrower than a second in a run of this length.
    pub(crate) fn heat(&self, seconds: f64) -> Option<HeatColumns> {
        self.heat.columns(seconds)
    }

    /// The tally for this time; `None` before measuring begins and after the last row.
    fn tally(&mut self, now: u64) -> Option<&mut Tally> {
        let index = match now {
            _ if now >= self.current_begin && now < self.current_end => self.current,
            _ => (now.checked_sub(self.begin)? / SECOND) as usize,
        };
        if index >= self.seconds.len() && index < SECONDS_MAX {
            self.seconds.resize_with(index.saturating_add(1), Tally::default);
        }
        self.seconds.get_mut(index)
    }

    /// Moves on to the second that `now` is in.
    fn roll(&mut self, now: u64) {
        self.finish();
        self.current = (now.saturating_sub(self.begin) / SECOND) as usize;
        self.current_begin = self.begin.saturating_add((self.current as u64).saturating_mul(SECOND));
        self.current_end = self.current_begin.saturating_add(SECOND);
        self.tally(now);
    }
}

impl Tally {
    fn add(&mut self, other: &Tally) {
        self.offered += other.offered;
        self.sent += other.sent;
        self.confirmed += other.confirmed;
        self.delivered += other.delivered;
        self.reconnects += other.reconnects;
        self.lag_max = self.lag_max.max(other.lag_max);
        self.responses.extend_from_slice(&other.responses);
    }

    fn row(&self, t: u32) -> Second {
        let mut responses = Recorder::new();
        responses.add_counts(&self.responses);
        let latency = responses.summary(LatencyKind::Response);
        let mut heat = vec![0_u32; HEAT_BOUNDS_US.len().saturating_add(1)];
        for (nanos, count) in &self.responses {
            if let Some(class) = heat.get_mut(heat_class(*nanos)) {
                *class = class.saturating_add(*count);
            }
        }
        Second {
            t,
            offered: self.offered,
            sent: self.sent,
            confirmed: self.confirmed,
            delivered: self.delivered,
            reconnects: self.reconnects,
            p50_us: latency.p50_us,
            p99_us: latency.p99_us,
            p999_us: latency.p999_us,
            max_us: latency.max_us,
            send_lag_max_us: (self.sent > 0).then_some(self.lag_max as f64 / 1_000.0),
            heat,
            ..Second::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = SECOND;
    const MS: u64 = 1_000_000;

    #[test]
    fn only_what_was_due_after_the_beginning_counts() {
        let mut timeline = Timeline::new();
        timeline.sent(S, 1);
        timeline.response(S, None, 2 * S);
        timeline.start(10 * S);
        timeline.sent(9 * S, 5);
        timeline.sent_due(9 * S, 10 * S + MS);
        timeline.response(9 * S, None, 11 * S);
        timeline.sent_due(10 * S, 10 * S + 3 * MS);
        timeline.sent_due(10 * S + 999 * MS, 11 * S + 4 * MS);
        timeline.response(10 * S, Some(3 * MS), 10 * S + 5 * MS);
        timeline.response(10 * S + 999 * MS, Some(5 * MS), 12 * S + MS);
        timeline.finish();
        let rows = timeline.rows(1);
        let seen: Vec<_> = rows.iter().map(|r| (r.offered, r.sent, r.delivered, r.in_flight)).collect();
        assert_eq!(seen, [(2, 1, 1, 0), (0, 1, 0, 1), (0, 0, 1, 0)]);
        assert_eq!(rows[1].send_lag_max_us, Some(5_000.0));
        assert_eq!(timeline.total().samples(), 2);
        assert_eq!(timeline.slow.stretches().len(), 1, "the second took a second");
        assert_eq!(timeline.service().share_within(3 * MS), Some(0.5));
        assert_eq!(rows[2].heat.iter().sum::<u32>(), 1);
    }

    #[test]
    fn threads_add_up_second_by_second() {
        let (mut one, mut other) = (Timeline::new(), Timeline::new());
        for (timeline, took) in [(&mut one, MS), (&mut other, 3 * MS)] {
            timeline.start(0);
            for second in 0..3 {
                timeline.sent(second * S, 100);
                for _ in 0..100 {
                    timeline.response(second * S, None, second * S + took);
                }
            }
        }
        one.add(&mut other);
        let rows = one.rows(1);
        assert_eq!(rows.len(), 3);
        for row in rows {
            assert_eq!((row.sent, row.delivered, row.in_flight), (200, 200, 0));
            assert!((row.p50_us.unwrap() - 1_000.0).abs() < 2.0, "{row:?}");
            assert!((row.max_us.unwrap() - 3_000.0).abs() < 4.0, "{row:?}");
        }
        assert_eq!(one.total().samples(), 600);
    }
}
