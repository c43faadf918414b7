//! The journal records that a queue still needs, counted well enough to name the lowest.
//!
//! Records are counted in buckets of neighbours. While they are few, a bucket holds one record, so that a
//! large message holds only its own journal file. When they are many, a bucket holds more, so that a queue of
//! millions has no more buckets.

use std::collections::VecDeque;

use crate::confirm::Lsn;
use crate::limits::RECORD_BUCKETS_MAX;

/// Counts of needed records: the lowest is found at once, in whatever order they are removed.
#[derive(Debug)]
pub(crate) struct LiveRecords {
    /// By rising number; the first bucket has a needed record.
    buckets: VecDeque<Bucket>,
    /// The highest number that was ever added.
    last: Lsn,
    /// Number of records that the last bucket takes.
    bucket_max: u32,
}

/// The records from `first` up to the next bucket.
#[derive(Debug, Clone, Copy)]
struct Bucket {
    first: Lsn,
    /// Number of records that are needed.
    needed: u32,
    /// Number of records that were ever added.
    added: u32,
}

impl Default for LiveRecords {
    fn default() -> LiveRecords {
        LiveRecords { buckets: VecDeque::new(), last: Lsn::NONE, bucket_max: 1 }
    }
}

impl LiveRecords {
    pub(crate) fn add(&mut self, lsn: Lsn) {
        // The journal failed, and the broker is about to end: there will be no checkpoint.
        if lsn == Lsn::NEVER {
            return;
        }
        let is_newest = lsn > self.last || self.buckets.is_empty();
        self.last = self.last.max(lsn);
        if is_newest && self.buckets.back().is_none_or(|bucket| bucket.added >= self.bucket_max) {
            self.begin(lsn);
        }
        let at = match is_newest {
            true => self.buckets.len() - 1,
            false => self.buckets.partition_point(|bucket| bucket.first <= lsn).saturating_sub(1),
        };
        if let Some(bucket) = self.buckets.get_mut(at) {
            bucket.first = bucket.first.min(lsn);
            bucket.needed += 1;
            bucket.added = bucket.added.saturating_add(1);
        }
    }

    pub(crate) fn remove(&mut self, lsn: Lsn) {
        if lsn == Lsn::NEVER {
            return;
        }
        // The oldest are mostly removed first.
        let at = match self.buckets.get(1) {
            Some(second) if second.first <= lsn => {
                self.buckets.partition_point(|bucket| bucket.first <= lsn) - 1
            }
            _ => 0,
        };
        if let Some(bucket) = self.buckets.get_mut(at) {
            bucket.needed = bucket.needed.saturating_sub(1);
        }
        while self.buckets.front().is_some_and(|bucket| bucket.needed == 0) {
            self.buckets.pop_front();
        }
        if self.buckets.is_empty() {
            *self = LiveRecords { last: self.last, ..LiveRecords::default() };
        }
    }

    /// The lowest record that may be needed; `None` if none is needed.
    pub(crate) fn floor(&self) -> Option<Lsn> {
        self.buckets.front().map(|bucket| bucket.first)
    }

    /// The number of needed records up to the end of the bucket of `lsn`, and that end.
    pub(crate) fn through(&self, lsn: Lsn) -> (usize, Lsn) {
        let buckets = self.buckets.partition_point(|bucket| bucket.first <= lsn);
        let end = match self.buckets.get(buckets) {
            Some(next) => Lsn(next.first.0 - 1),
            None => self.last.max(lsn),
        };
        (self.buckets.iter().take(buckets).map(|bucket| bucket.needed as usize).sum(), end)
    }

    /// Begins a bucket behind all others, and joins buckets if there are too many.
    fn begin(&mut self, first: Lsn) {
        if self.buckets.len() >= RECORD_BUCKETS_MAX {
            // The records fit into half as many buckets, except where late records made a bucket larger.
            self.bucket_max = self.bucket_max.saturating_mul(2);
            let mut joined: VecDeque<Bucket> = VecDeque::with_capacity(RECORD_BUCKETS_MAX);
            for bucket in self.buckets.drain(..) {
                match joined.back_mut() {
                    Some(before) if before.added.saturating_add(bucket.added) <= self.bucket_max => {
                        before.needed += bucket.needed;
                        before.added += bucket.added;
                    }
                    // None of its records is needed, so the bucket before may extend over it.
                    Some(_) if bucket.needed == 0 => {}
                    _ => joined.push_back(bucket),
                }
            }
            self.buckets = joined;
        } else if self.buckets.len() < RECORD_BUCKETS_MAX / 4 {
            self.bucket_max = (self.bucket_max / 2).max(1);
        }
        self.buckets.push_back(Bucket { first, needed: 0, added: 0 });
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    /// Adds and removes records, and compares every answer with plain counts.
    fn check(steps: impl IntoIterator<Item = (u64, Option<usize>)>) {
        let (mut live_records, mut model) = (LiveRecords::default(), BTreeMap::<u64, usize>::new());
        for (lsn, removed) in steps {
            match removed {
                None => {
                    live_records.add(Lsn(lsn));
                    *model.entry(lsn).or_default() += 1;
                }
                Some(nth) => {
                    let Some(lsn) = model.keys().nth(nth % model.len().max(1)).copied() else { continue };
                    live_records.remove(Lsn(lsn));
                    *model.entry(lsn).or_default() -= 1;
                    model.retain(|_, count| *count > 0);
                }
            }
            let lowest = model.keys().next().copied();
            let floor = live_records.floor().map(|floor| floor.0);
            assert_eq!(floor.is_some(), lowest.is_some());
            assert!(floor <= lowest, "{floor:?} is above {lowest:?}");
            let needed: usize = live_records.buckets.iter().map(|bucket| bucket.needed as usize).sum();
            assert_eq!(needed, model.values().sum::<usize>());
            assert!(live_records.buckets.len() <= RECORD_BUCKETS_MAX + 1);
            let (count, end) = live_records.through(Lsn(lsn));
            assert!(end.0 >= lsn);
            assert_eq!(count, model.range(..=end.0).map(|(_, count)| count).sum::<usize>());
        }
    }

    proptest! {
        #[test]
        fn the_floor_is_never_above_what_is_needed(
            steps in proptest::collection::vec((1u64..40_000, proptest::option::of(0usize..64)), 0..80),
        ) {
            check(steps);
        }
    }

    #[test]
    fn many_are_counted_together_and_none_is_missed() {
        let many = RECORD_BUCKETS_MAX as u64 * 5;
        let overtaking = |lsn: u64| if lsn.is_multiple_of(7) { lsn.saturating_sub(9).max(1) } else { lsn };
        let grows = (1..many).map(|lsn| (overtaking(lsn), None));
        let shrinks = (0..many).map(|step| (step, Some((step % 3) as usize * 11)));
        check(grows.chain(shrinks));
    }

    #[test]
    fn a_few_are_known_one_by_one() {
        let mut live_records = LiveRecords::default();
        (0..RECORD_BUCKETS_MAX as u64).for_each(|lsn| live_records.add(Lsn(3 * lsn + 5)));
        for lsn in 0..RECORD_BUCKETS_MAX as u64 {
            assert_eq!(live_records.floor(), Some(Lsn(3 * lsn + 5)));
            assert_eq!(live_records.through(Lsn(3 * lsn + 6)).0, 1);
            live_records.remove(Lsn(3 * lsn + 5));
        }
        assert_eq!(live_records.floor(), None);
    }

    #[test]
    fn of_many_the_floor_is_near() {
        let mut live_records = LiveRecords::default();
        let many = RECORD_BUCKETS_MAX as u64 * 100;
        (1..=many).for_each(|lsn| live_records.add(Lsn(lsn)));
        for lsn in 1..many {
            live_records.remove(Lsn(lsn));
            let behind = lsn + 1 - live_records.floor().map_or(0, |floor| floor.0);
            assert!(behind <= many * 4 / RECORD_BUCKETS_MAX as u64, "{behind} behind at {lsn}");
        }
    }

    #[test]
    fn after_many_went_the_next_are_known_one_by_one_again() {
        let mut live_records = LiveRecords::default();
        let many = RECORD_BUCKETS_MAX as u64 * 8;
        (1..=many).for_each(|lsn| live_records.add(Lsn(lsn)));
        (1..many).for_each(|lsn| live_records.remove(Lsn(lsn)));
        (many + 1..many + 100).for_each(|lsn| live_records.add(Lsn(lsn)));
        (many..many + 50).for_each(|lsn| live_records.remove(Lsn(lsn)));
        for lsn in many + 50..many + 100 {
            assert_eq!(live_records.floor(), Some(Lsn(lsn)));
            live_records.remove(Lsn(lsn));
        }
    }

    #[test]
    fn what_nobody_needs_any_more_takes_no_bucket_of_those_that_come() {
        let mut live_records = LiveRecords::default();
        let many = RECORD_BUCKETS_MAX as u64;
        (1..=many).for_each(|number| live_records.add(Lsn(10 * number)));
        // Other records come in between, so that no two of these buckets can be joined.
        let between = |number: u64| [10 * number + 1, 10 * number + 2].map(Lsn);
        (1..many).for_each(|number| between(number).into_iter().for_each(|lsn| live_records.add(lsn)));
        for number in 2..many {
            live_records.remove(Lsn(10 * number));
            between(number).into_iter().for_each(|lsn| live_records.remove(lsn));
        }
        assert_eq!(live_records.buckets.len(), RECORD_BUCKETS_MAX);
        live_records.add(Lsn(20 * many));
        assert_eq!(live_records.buckets.len(), 3, "the first, the last and the new one");
        [10, 11, 12].into_iter().for_each(|lsn| live_records.remove(Lsn(lsn)));
        assert_eq!(live_records.floor(), Some(Lsn(10 * many)));
    }

    #[test]
    fn what_is_needed_twice_is_needed_until_both_are_done_with_it() {
        let mut live_records = LiveRecords::default();
        [5, 5, 6].into_iter().for_each(|lsn| live_records.add(Lsn(lsn)));
        assert_eq!((live_records.buckets.len(), live_records.through(Lsn(5))), (2, (2, Lsn(5))));
        for (removed, floor) in [(5, Some(Lsn(5))), (5, Some(Lsn(6))), (6, None)] {
            live_records.remove(Lsn(removed));
            assert_eq!(live_records.floor(), floor);
        }
    }
}
