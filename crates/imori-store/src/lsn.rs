//! Log sequence numbers: the numbers of records, which rise by one throughout a store's life.

use std::fmt;

/// A record's log sequence number; the first is 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lsn(pub u64);

impl Lsn {
    /// The first LSN of a store.
    pub const FIRST: Lsn = Lsn(1);

    /// The next LSN.
    #[must_use]
    pub fn next(self) -> Lsn {
        Lsn(self.0.saturating_add(1))
    }
}

impl fmt::Display for Lsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A range of consecutive numbers, including both ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct LsnRange {
    /// The lowest number.
    pub first: Lsn,
    /// The highest number.
    pub last: Lsn,
}

impl LsnRange {
    /// The range of a single number.
    #[must_use]
    pub fn one(lsn: Lsn) -> LsnRange {
        LsnRange { first: lsn, last: lsn }
    }
}

impl fmt::Display for LsnRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.first == self.last {
            true => self.first.fmt(f),
            false => write!(f, "{}-{}", self.first, self.last),
        }
    }
}

/// Sorts ranges and joins those that touch or overlap.
pub(crate) fn join(mut ranges: Vec<LsnRange>) -> Vec<LsnRange> {
    ranges.sort_unstable();
    let mut joined: Vec<LsnRange> = Vec::new();
    for range in ranges {
        match joined.last_mut().filter(|last| range.first <= last.last.next()) {
            Some(last) => last.last = last.last.max(range.last),
            None => joined.push(range),
        }
    }
    joined
}

/// The parts of `whole` that are in none of the ranges `joined`, which must come from [`join`].
pub(crate) fn holes(whole: LsnRange, joined: &[LsnRange]) -> Vec<LsnRange> {
    let mut holes = Vec::new();
    let mut next = whole.first;
    for range in joined {
        if range.first > whole.last {
            break;
        }
        if range.first > next {
            holes.push(LsnRange { first: next, last: Lsn(range.first.0 - 1) });
        }
        next = next.max(range.last.next());
    }
    if next <= whole.last {
        holes.push(LsnRange { first: next, last: whole.last });
    }
    holes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranges(pairs: &[(u64, u64)]) -> Vec<LsnRange> {
        pairs.iter().map(|&(first, last)| LsnRange { first: Lsn(first), last: Lsn(last) }).collect()
    }

    #[test]
    fn ranges_that_touch_are_one() {
        for (given, expected) in [
            (vec![(1, 2), (3, 4)], vec![(1, 4)]),
            (vec![(5, 9), (1, 2), (2, 3)], vec![(1, 3), (5, 9)]),
            (vec![(1, 9), (2, 3)], vec![(1, 9)]),
            (vec![], vec![]),
        ] {
            assert_eq!(join(ranges(&given)), ranges(&expected), "{given:?}");
        }
    }

    #[test]
    fn what_is_in_no_range_is_a_hole() {
        for (whole, given, expected) in [
            ((1, 9), vec![(1, 9)], vec![]),
            ((1, 9), vec![(3, 4), (7, 7)], vec![(1, 2), (5, 6), (8, 9)]),
            ((5, 9), vec![(1, 2), (4, 6)], vec![(7, 9)]),
            ((1, 4), vec![(6, 9)], vec![(1, 4)]),
        ] {
            let whole = LsnRange { first: Lsn(whole.0), last: Lsn(whole.1) };
            assert_eq!(holes(whole, &ranges(&given)), ranges(&expected), "{given:?}");
        }
    }
}
