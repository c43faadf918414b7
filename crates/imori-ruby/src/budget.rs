//! The CPU time of a run, against its limits.

use std::time::Duration;

use crate::limits::{CPU_GRACE, CPU_WARNINGS_MAX, Limits};

/// What a run has used, over all its slices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    cpu: Duration,
    warnings: u32,
}

impl Usage {
    /// The CPU time since it was `before`.
    pub(crate) fn since(&self, before: Self) -> Duration {
        self.cpu.saturating_sub(before.cpu)
    }
}

/// The CPU time that the present slice may use; times count from its beginning.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    allowed: Duration,
    before: Usage,
    warnings: u32,
}

/// What becomes of a run that may be over its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It has this much CPU time left.
    GoOn(Duration),
    /// It is told by an exception.
    Raise,
    /// It was told often enough.
    Lose,
}

impl Budget {
    /// Begins a slice of a run that has used `before`. Nothing is left to one that has used all its time.
    pub(crate) fn new(limits: &Limits, before: Usage) -> Self {
        let allowed = limits.run_cpu.saturating_sub(before.cpu).min(limits.slice_cpu);
        Self { allowed, before, warnings: before.warnings }
    }

    /// The CPU time left to a slice that has used `used`.
    pub(crate) fn left(&self, used: Duration) -> Duration {
        self.allowed.saturating_sub(used)
    }

    /// Decides about a slice that has used `used`, and counts a warning if it is one.
    pub(crate) fn verdict(&mut self, used: Duration) -> Verdict {
        let left = self.left(used);
        if !left.is_zero() {
            return Verdict::GoOn(left);
        }
        if self.warnings == CPU_WARNINGS_MAX {
            return Verdict::Lose;
        }
        self.warnings += 1;
        self.allowed = used + CPU_GRACE;
        Verdict::Raise
    }

    /// What the run has used with a slice that ends after `used`.
    pub(crate) fn end(&self, used: Duration) -> Usage {
        Usage { cpu: self.before.cpu + used, warnings: self.warnings }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn script_is_warned_and_then_lost() {
        let limits = Limits { slice_cpu: 100 * MS, run_cpu: 150 * MS, ..Limits::default() };
        let mut budget = Budget::new(&limits, Usage::default());
        assert_eq!(budget.verdict(93 * MS), Verdict::GoOn(7 * MS));
        for warning in 0..CPU_WARNINGS_MAX {
            let used = 100 * MS + CPU_GRACE * warning;
            assert_eq!(budget.verdict(used), Verdict::Raise);
            assert_eq!(budget.verdict(used + CPU_GRACE - MS), Verdict::GoOn(MS));
        }
        assert_eq!(budget.verdict(200 * MS), Verdict::Lose);
    }

    #[test]
    fn slices_share_the_time_of_their_run() {
        let limits = Limits { slice_cpu: 100 * MS, run_cpu: 150 * MS, ..Limits::default() };
        let first = Budget::new(&limits, Usage::default()).end(90 * MS);
        let mut second = Budget::new(&limits, first);
        assert_eq!(second.verdict(Duration::ZERO), Verdict::GoOn(60 * MS));
        assert_eq!(second.verdict(60 * MS), Verdict::Raise);
        let mut third = Budget::new(&limits, second.end(70 * MS));
        assert_eq!(third.left(Duration::ZERO), Duration::ZERO);
        assert_eq!(third.verdict(Duration::ZERO), Verdict::Raise);
        assert_eq!(third.left(Duration::ZERO), CPU_GRACE, "the run may end in order");
    }
}
