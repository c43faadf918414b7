//! The lateness of a cell: measured by the cell once a second, and by other threads while it is late.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use imori_core::time::Time;

/// Timestamps by which other threads judge a cell's lag.
#[derive(Debug, Default)]
pub(crate) struct Pulse {
    /// When a turn last began or the cell last woke.
    boundary: AtomicU64,
    /// When the cell's timer is due; zero if none is set.
    due: AtomicU64,
    /// Longest lag since the last whole second, in microseconds.
    late: AtomicU64,
    /// Longest lag of the last whole second, in microseconds.
    shown: AtomicU64,
}

impl Pulse {
    /// Notes that a turn begins or the cell woke.
    pub(crate) fn at_boundary(&self, now: Time) {
        self.boundary.store(now.0, Ordering::Release);
    }

    /// Notes when the cell's timer is due.
    pub(crate) fn expect(&self, due: Time) {
        self.due.store(due.0, Ordering::Release);
    }

    /// Notes that the timer fired, and how late.
    pub(crate) fn woken(&self, now: Time) {
        let late = now.since(Time(self.due.load(Ordering::Acquire)));
        self.due.store(0, Ordering::Release);
        self.note(late);
    }

    /// Current lag: the time past the timer, or spent in the current turn.
    pub(crate) fn lag(&self, now: Time, is_parked: bool) -> Duration {
        let due = self.due.load(Ordering::Acquire);
        let behind = if due == 0 { Duration::ZERO } else { now.since(Time(due)) };
        let boundary = Time(self.boundary.load(Ordering::Acquire));
        if is_parked || boundary == Time::default() { behind } else { behind.max(now.since(boundary)) }
    }

    /// Records a lag; only the longest is kept.
    pub(crate) fn note(&self, late: Duration) {
        let micros = u64::try_from(late.as_micros()).unwrap_or(u64::MAX);
        self.late.fetch_max(micros, Ordering::Relaxed);
    }

    /// Ends a second of measurement.
    pub(crate) fn end_second(&self) {
        self.shown.store(self.late.swap(0, Ordering::Relaxed), Ordering::Relaxed);
    }

    /// Longest lag in the last whole second and since then.
    pub(crate) fn latest(&self) -> Duration {
        let micros = self.shown.load(Ordering::Relaxed).max(self.late.load(Ordering::Relaxed));
        Duration::from_micros(micros)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_is_late_behind_its_timer_or_in_its_turn() {
        let micros = Duration::from_micros;
        let pulse = Pulse::default();
        assert_eq!(pulse.lag(Time(500), false), micros(0), "nothing is known yet");
        pulse.at_boundary(Time(1_000));
        for (now, is_parked, expected) in [(1_000, false, 0), (1_400, false, 400), (1_400, true, 0)] {
            assert_eq!(pulse.lag(Time(now), is_parked), micros(expected), "{now} {is_parked}");
        }
        pulse.expect(Time(2_000));
        for (now, expected) in [(1_999, 0), (2_000, 0), (2_700, 700)] {
            assert_eq!(pulse.lag(Time(now), true), micros(expected), "{now}");
        }
        pulse.woken(Time(2_800));
        assert_eq!((pulse.lag(Time(9_000), true), pulse.latest()), (micros(0), micros(800)));
        pulse.end_second();
        assert_eq!(pulse.latest(), micros(800));
        pulse.note(micros(5));
        pulse.end_second();
        assert_eq!(pulse.latest(), micros(5));
    }
}
