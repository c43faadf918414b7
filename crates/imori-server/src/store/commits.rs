//! How long commits take: for whoever watches and measures.

use std::sync::Mutex;
use std::time::Duration;

use crate::slots::unpoisoned;

/// Upper bounds of the classes into which commits fall by their time, in microseconds; longer ones are in the last.
pub(crate) const BOUNDS_US: [u64; 12] =
    [100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 1_000_000];

/// Commits, counted.
#[derive(Debug, Default)]
pub(crate) struct Commits(Mutex<Counts>);

/// What was counted up to now.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Commits, by class.
    pub(crate) classes: [u64; BOUNDS_US.len() + 1],
    /// All commits.
    pub(crate) commits: u64,
    /// Their records.
    pub(crate) records: u64,
    /// Bytes of these.
    pub(crate) bytes: u64,
    /// The time of all commits.
    pub(crate) total: Duration,
    /// The longest commit since it was last asked for.
    pub(crate) longest: Duration,
}

impl Commits {
    /// Counts a commit.
    pub(crate) fn count(&self, records: usize, bytes: usize, took: Duration) {
        let mut counts = unpoisoned(self.0.lock());
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let class = BOUNDS_US.partition_point(|bound| *bound < micros);
        if let Some(count) = counts.classes.get_mut(class) {
            *count += 1;
        }
        counts.commits += 1;
        counts.records += records as u64;
        counts.bytes += bytes as u64;
        counts.total += took;
        counts.longest = counts.longest.max(took);
    }

    /// What was counted.
    pub(crate) fn counts(&self) -> Counts {
        unpoisoned(self.0.lock()).clone()
    }

    /// The longest commit since this was asked last.
    pub(crate) fn take_longest(&self) -> Duration {
        std::mem::take(&mut unpoisoned(self.0.lock()).longest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commits_fall_into_classes() {
        let commits = Commits::default();
        for (micros, class) in [(0, 0), (100, 0), (101, 1), (1_000_000, 11), (1_000_001, 12)] {
            let before = commits.counts().classes[class];
            commits.count(1, 10, Duration::from_micros(micros));
            assert_eq!(commits.counts().classes[class], before + 1, "{micros}");
        }
        let counts = commits.counts();
        assert_eq!((counts.commits, counts.records, counts.bytes), (5, 5, 50));
        assert_eq!(commits.take_longest(), Duration::from_micros(1_000_001));
        assert_eq!(commits.take_longest(), Duration::ZERO, "asked for once");
    }
}
