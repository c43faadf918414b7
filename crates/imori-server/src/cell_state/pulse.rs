//! How late a cell comes to its work: measured by itself once a second, and seen from beside while it lasts.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use imori_core::time::Time;

/// The times by which other threads judge how late a cell is.
#[derive(Debug, Default)]
pub(crate) struct Pulse {
    /// When it last came from one turn to another, or from sleep.
    boundary: AtomicU64,
    /// When it wants to be woken next; zero until it has said so.
    due: AtomicU64,
    /// How late it was at most since that was last asked for, in microseconds.
    late: AtomicU64,
    /// How late it was at most in the last whole second, in microseconds.
    shown: AtomicU64,
}

impl Pulse {
    /// A turn begins, or the cell woke.
    pub(crate) fn at_boundary(&self, now: Time) {
        self.boundary.store(now.0, Ordering::Release);
    }

    /// The cell wants to be woken then.
    pub(crate) fn expect(&self, due: Time) {
        self.due.store(due.0, Ordering::Release);
    }

    /// The cell was woken for what it expected.
    pub(crate) fn woken(&self, now: Time) {
        let late = now.since(Time(self.due.load(Ordering::Acquire)));
        self.due.store(0, Ordering::Release);
        self.note(late);
    }

    /// How late the cell is now: behind its timer, or in one turn for so long.
    pub(crate) fn lag(&self, now: Time, is_parked: bool) -> Duration {
        let due = self.due.load(Ordering::Acquire);
        let behind = if due == 0 { Duration::ZERO } else { now.since(Time(due)) };
        let boundary = Time(self.boundary.load(Ordering::Acquire));
        if is_parked || boundary == Time::default() { behind } else { behind.max(now.since(boundary)) }
    }

    /// Notes how late the cell was at one look; the greatest lateness is kept.
    pub(crate) fn note(&self, late: Duration) {
        let micros = u64::try_from(late.as_micros()).unwrap_or(u64::MAX);
        self.late.fetch_max(micros, Ordering::Relaxed);
    }

    /// A second is over.
    pub(crate) fn end_second(&self) {
        self.shown.store(self.late.swap(0, Ordering::Relaxed), Ordering::Relaxed);
    }

    /// How late it was at most in the last whole second and since then.
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
