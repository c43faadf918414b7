//! Durations of journal commits, for the watch and the monitor.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::limits::COMMIT_SECONDS;
use crate::slots::unpoisoned;

/// Upper bounds of the histogram's buckets, in microseconds; longer commits fall into one more bucket.
pub const BOUNDS_US: [u64; 14] = [
    100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 1_000_000, 3_000_000,
    10_000_000,
];

/// Histogram of commits, and the longest commit of each recent second.
#[derive(Debug)]
pub(crate) struct Commits {
    started: Instant,
    counted: Mutex<Counted>,
}

#[derive(Debug)]
struct Counted {
    counts: Counts,
    /// Ring buffer of (second, longest commit in that second).
    seconds: [(u64, Duration); COMMIT_SECONDS],
}

/// Sums and histogram of all commits so far.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Counts {
    /// Commits per bucket.
    pub classes: [u64; BOUNDS_US.len() + 1],
    /// Number of commits.
    pub commits: u64,
    /// Records committed.
    pub records: u64,
    /// Bytes committed.
    pub bytes: u64,
    /// Time spent in all commits.
    pub total: Duration,
}

impl Counts {
    /// Mean duration of a commit.
    pub fn mean(&self) -> Duration {
        let nanos = self.total.as_nanos().checked_div(u128::from(self.commits)).unwrap_or(0);
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

impl Commits {
    /// Starts with nothing counted.
    pub(super) fn new() -> Commits {
        let counted = Counted { counts: Counts::default(), seconds: [Default::default(); COMMIT_SECONDS] };
        Commits { started: Instant::now(), counted: Mutex::new(counted) }
    }

    /// Counts a commit.
    pub(super) fn count(&self, records: usize, bytes: usize, took: Duration) {
        self.count_at(self.second(), records, bytes, took);
    }

    fn count_at(&self, second: u64, records: usize, bytes: usize, took: Duration) {
        let mut counted = unpoisoned(self.counted.lock());
        let counts = &mut counted.counts;
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let class = BOUNDS_US.partition_point(|bound| *bound < micros);
        if let Some(count) = counts.classes.get_mut(class) {
            *count += 1;
        }
        counts.commits += 1;
        counts.records += records as u64;
        counts.bytes += bytes as u64;
        counts.total += took;
        if let Some(place) = counted.seconds.get_mut(place(second)) {
            let longest = if place.0 == second { place.1.max(took) } else { took };
            *place = (second, longest);
        }
    }

    /// Returns a copy of the counts.
    pub(crate) fn counts(&self) -> Counts {
        unpoisoned(self.counted.lock()).counts.clone()
    }

    /// The longest commit that ended in the last whole second or since then.
    pub(crate) fn longest_of_second(&self) -> Duration {
        self.longest_since(self.second(), 1)
    }

    /// The longest commit of the last minute.
    pub(crate) fn longest_of_minute(&self) -> Duration {
        self.longest_since(self.second(), COMMIT_SECONDS as u64 - 1)
    }

    fn longest_since(&self, second: u64, seconds: u64) -> Duration {
        let counted = unpoisoned(self.counted.lock());
        let is_in = |of: u64| of <= second && second - of <= seconds;
        let longest = counted.seconds.iter().filter(|(of, _)| is_in(*of)).map(|(_, longest)| *longest).max();
        longest.unwrap_or_default()
    }

    /// Numbers seconds from 1, because 0 marks an unused slot of the ring.
    fn second(&self) -> u64 {
        self.started.elapsed().as_secs() + 1
    }
}

fn place(second: u64) -> usize {
    usize::try_from(second % COMMIT_SECONDS as u64).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commits_fall_into_classes() {
        let commits = Commits::new();
        for (micros, class) in
            [(0, 0), (100, 0), (101, 1), (1_000_000, 11), (1_000_001, 12), (10_000_001, 14)]
        {
            let before = commits.counts().classes[class];
            commits.count(1, 10, Duration::from_micros(micros));
            assert_eq!(commits.counts().classes[class], before + 1, "{micros}");
        }
        let counts = commits.counts();
        assert_eq!((counts.commits, counts.records, counts.bytes), (6, 6, 60));
        assert_eq!(counts.mean(), counts.total / 6);
        assert_eq!(Counts::default().mean(), Duration::ZERO);
    }

    #[test]
    fn the_longest_of_a_second_and_of_a_minute_is_kept() {
        let (commits, millis) = (Commits::new(), Duration::from_millis);
        for (second, took) in [(1, 9), (1, 4), (2, 3), (5, 7)] {
            commits.count_at(second, 1, 1, millis(took));
        }
        for (now, of_second, of_minute) in
            [(1, 9, 9), (2, 9, 9), (3, 3, 9), (5, 7, 9), (60, 0, 9), (61, 0, 7), (64, 0, 7), (65, 0, 0)]
        {
            assert_eq!(commits.longest_since(now, 1), millis(of_second), "at {now}");
            assert_eq!(commits.longest_since(now, 59), millis(of_minute), "at {now}");
        }
        commits.count_at(61, 1, 1, millis(1));
        assert_eq!(commits.longest_since(61, 59), millis(7), "it took the place of the first second");
    }
}
