//! Intervals in which operations were slow, from which stalls are found.
//!
//! Timed operations above a floor are noted, and overlapping intervals are merged. The verdict,
//! whether an interval is a stall and what caused it, is reached after the run.

/// Nanoseconds from which an operation is noted, and so the shortest possible stall.
pub(crate) const SLOW_NANOS: u64 = 20_000_000;

/// Intervals kept; later ones are only counted, because a run that is slow throughout does not need them listed.
const STRETCHES_MAX: usize = 100_000;

/// An interval in which operations waited, in nanoseconds of the run's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Slow {
    /// When the first operation was due.
    pub(crate) begin: u64,
    /// When the last operation ended.
    pub(crate) end: u64,
    /// Number of operations.
    pub(crate) operations: u64,
    /// Time that the slowest operation took.
    pub(crate) worst: u64,
    /// Time that all operations took together.
    pub(crate) sum: u64,
}

impl Slow {
    /// Merges another interval into this one.
    fn join(&mut self, other: &Slow) {
        self.begin = self.begin.min(other.begin);
        self.end = self.end.max(other.end);
        self.operations += other.operations;
        self.worst = self.worst.max(other.worst);
        self.sum = self.sum.saturating_add(other.sum);
    }
}

/// The slow intervals, ordered by their end.
#[derive(Debug, Default, Clone)]
pub(crate) struct SlowStretches {
    stretches: Vec<Slow>,
    /// Operations in intervals that were not kept.
    pub(crate) unkept: u64,
}

impl SlowStretches {
    /// Notes an operation with these due and end times if it was slow.
    pub(crate) fn note(&mut self, due: u64, ended: u64) {
        let took = ended.saturating_sub(due);
        if took < SLOW_NANOS {
            return;
        }
        self.push(Slow { begin: due, end: ended, operations: 1, worst: took, sum: took });
    }

    /// Adds the intervals of another thread.
    pub(crate) fn add(&mut self, other: &SlowStretches) {
        let mut all = std::mem::take(&mut self.stretches);
        all.extend_from_slice(&other.stretches);
        all.sort_unstable_by_key(|slow| slow.end);
        self.unkept += other.unkept;
        for slow in all {
            self.push(slow);
        }
    }

    /// The intervals, ordered by time and without overlap.
    pub(crate) fn stretches(&self) -> &[Slow] {
        &self.stretches
    }

    fn push(&mut self, mut slow: Slow) {
        // An interval that begins early may overlap several that ended before.
        while let Some(last) = self.stretches.pop_if(|last| last.end >= slow.begin) {
            slow.join(&last);
        }
        if self.stretches.len() >= STRETCHES_MAX {
            self.unkept += slow.operations;
            return;
        }
        self.stretches.push(slow);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn noted(operations: &[(u64, u64)]) -> SlowStretches {
        let mut slow = SlowStretches::default();
        for (due, ended) in operations {
            slow.note(due * MS, ended * MS);
        }
        slow
    }

    #[test]
    fn what_overlaps_is_one_stretch() {
        for (operations, expected) in [
            (vec![(0, 19)], vec![]),
            (vec![(0, 20)], vec![(0, 20, 1)]),
            (vec![(0, 100), (50, 100), (90, 120)], vec![(0, 120, 3)]),
            (vec![(0, 100), (200, 300)], vec![(0, 100, 1), (200, 300, 1)]),
            (vec![(10, 100), (200, 300), (0, 310)], vec![(0, 310, 3)]),
        ] {
            let slow = noted(&operations);
            let found: Vec<_> =
                slow.stretches().iter().map(|s| (s.begin / MS, s.end / MS, s.operations)).collect();
            assert_eq!(found, expected, "{operations:?}");
        }
    }

    #[test]
    fn threads_are_put_together() {
        let mut slow = noted(&[(0, 100), (500, 600)]);
        slow.add(&noted(&[(50, 150), (300, 400)]));
        let found: Vec<_> = slow.stretches().iter().map(|s| (s.begin / MS, s.end / MS)).collect();
        assert_eq!(found, [(0, 150), (300, 400), (500, 600)]);
        assert_eq!((slow.stretches()[0].worst, slow.stretches()[0].sum), (100 * MS, 200 * MS));
    }
}
