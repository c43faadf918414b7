//! The CPU time of a run, against its limits.

use std::time::Duration;

use crate::limits::{CPU_GRACE, CPU_WARNINGS_MAX, Limits};

/// What a run has used, over all its slices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    cpu: Duration,
    warnings: u32,
}

impl Usage {
    /// The CPU time since it was `before`.
    pub fn since(&self, before: Self) -> Duration {
        self.cpu.saturating_sub(before.cpu)
    }
}

/// The CPU time that the present slice may use; times count from its beginning.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    allowed: Duration,
    before: Usage,
    warnings: u32,
}

/// What becomes of a run that may be over its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It has this much CPU time left.
    GoOn(Duration),
    /// It is told by an exception.
    Raise,
    /// It was told often enough.
    Lose,
}

impl Budget {
    /// Begins a slice of a run that has used `before`. Nothing is left to one that has used all its time.
    pub fn new(limits: &Limits, before: Usage) -> Self {
        let allowed = limits.run_cpu.saturating_sub(before.cpu).min(limits.slice_cpu);
        Self { allowed, before, warnings: before.warnings }
    }

    /// The CPU time left to a slice that has used `used`.
    pub fn left(&self, used: Duration) -> Duration {
        self.allowed.saturating_sub(used)
    }

    /// Decides about a slice that has used `used`, and counts a warning if it is one.
    pub fn verdict(&mut self, used: Duration) -> Verdict {
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
    pub fn end(&self, used: Duration) -> Usage {
        Usage { cpu: self.before.cpu + used, warnings: self.warnings }
    }
}
