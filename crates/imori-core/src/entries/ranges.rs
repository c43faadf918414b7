//! A set of numbers, many of which are consecutive.

/// A set of numbers, stored as rising ranges that do not touch.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Ranges(Vec<(u64, u64)>);

impl Ranges {
    /// Whether the set is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether `number` is in the set.
    #[must_use]
    pub fn contains(&self, number: u64) -> bool {
        let at = self.0.partition_point(|(_, last)| *last < number);
        self.0.get(at).is_some_and(|(first, _)| *first <= number)
    }

    /// Inserts a number; `false` if it was there.
    pub fn insert(&mut self, number: u64) -> bool {
        let at = self.0.partition_point(|(_, last)| *last < number);
        let follows = at
            .checked_sub(1)
            .filter(|before| self.0.get(*before).is_some_and(|(_, last)| last + 1 == number));
        let next = self.0.get(at).copied();
        if next.is_some_and(|(first, _)| first <= number) {
            return false;
        }
        let precedes = next.is_some_and(|(first, _)| number + 1 == first);
        match (follows, precedes) {
            (Some(before), true) => {
                let last = next.map_or(number, |(_, last)| last);
                self.0.remove(at);
                if let Some(range) = self.0.get_mut(before) {
                    range.1 = last;
                }
            }
            (Some(before), false) => {
                if let Some(range) = self.0.get_mut(before) {
                    range.1 = number;
                }
            }
            (None, true) => {
                if let Some(range) = self.0.get_mut(at) {
                    range.0 = number;
                }
            }
            (None, false) => self.0.insert(at, (number, number)),
        }
        true
    }

    /// The set of these ranges, which may come in any order and overlap.
    pub(crate) fn merged(mut ranges: Vec<(u64, u64)>) -> Ranges {
        ranges.sort_unstable();
        ranges.dedup_by(|(first, last), (_, end)| {
            let meets = *first <= end.saturating_add(1);
            *end = if meets { (*last).max(*end) } else { *end };
            meets
        });
        Ranges(ranges)
    }

    /// The set without these numbers.
    pub(crate) fn without(self, mut numbers: Vec<u64>) -> Ranges {
        numbers.sort_unstable();
        let mut out = Vec::with_capacity(self.0.len());
        for (first, last) in self.0 {
            let from = numbers.partition_point(|number| *number < first);
            let mut next = Some(first);
            for number in numbers.iter().skip(from).take_while(|number| **number <= last) {
                out.extend(next.filter(|next| next < number).map(|next| (next, number - 1)));
                next = number.checked_add(1);
            }
            out.extend(next.filter(|next| *next <= last).map(|next| (next, last)));
        }
        Ranges(out)
    }

    /// Whether all numbers from `first` to `last` are in the set.
    pub(crate) fn covers(&self, first: u64, last: u64) -> bool {
        let at = self.0.partition_point(|(_, end)| *end < first);
        self.0.get(at).is_some_and(|(begin, end)| *begin <= first && last <= *end)
    }

    /// Whether any number from `first` to `last` is in the set.
    pub(crate) fn touches(&self, first: u64, last: u64) -> bool {
        let at = self.0.partition_point(|(_, end)| *end < first);
        self.0.get(at).is_some_and(|(begin, _)| *begin <= last)
    }

    /// The highest number in the set.
    pub(crate) fn last(&self) -> Option<u64> {
        self.0.last().map(|(_, last)| *last)
    }

    /// The ranges as first and last number, in rising order.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64)> {
        self.0.iter().copied()
    }

    /// Number of ranges.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }
}

impl FromIterator<(u64, u64)> for Ranges {
    /// Takes rising ranges that do not touch.
    fn from_iter<I: IntoIterator<Item = (u64, u64)>>(ranges: I) -> Ranges {
        Ranges(ranges.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn ranges_are_a_set(numbers in proptest::collection::vec(0u64..40, 0..60)) {
            let (mut ranges, mut set) = (Ranges::default(), BTreeSet::new());
            for number in numbers {
                prop_assert_eq!(ranges.insert(number), set.insert(number));
                for other in 0..41 {
                    prop_assert_eq!(ranges.contains(other), set.contains(&other));
                }
            }
            let all: Vec<(u64, u64)> = ranges.iter().collect();
            prop_assert!(all.windows(2).all(|pair| pair[0].1 + 1 < pair[1].0), "{:?}", all);
            prop_assert_eq!(all.iter().map(|(first, last)| last - first + 1).sum::<u64>(), set.len() as u64);
        }

        #[test]
        fn ranges_are_merged_and_cut_like_sets(
            ranges in proptest::collection::vec((0u64..40, 0u64..6), 0..10),
            cut in proptest::collection::vec(0u64..48, 0..20),
        ) {
            let ranges: Vec<(u64, u64)> = ranges.into_iter().map(|(first, len)| (first, first + len)).collect();
            let mut set: BTreeSet<u64> = ranges.iter().flat_map(|(first, last)| *first..=*last).collect();
            let merged = Ranges::merged(ranges);
            let all = |ranges: &Ranges| ranges.iter().flat_map(|(first, last)| first..=last).collect::<Vec<_>>();
            prop_assert_eq!(all(&merged), set.iter().copied().collect::<Vec<_>>());
            prop_assert!(merged.0.windows(2).all(|pair| pair[0].1 + 1 < pair[1].0), "{:?}", merged);
            let rest = merged.without(cut.clone());
            cut.iter().for_each(|number| _ = set.remove(number));
            prop_assert_eq!(all(&rest), set.iter().copied().collect::<Vec<_>>());
            prop_assert_eq!(rest.last(), set.last().copied());
            for first in 0..48 {
                for last in first..48 {
                    prop_assert_eq!(rest.covers(first, last), (first..=last).all(|number| set.contains(&number)));
                    prop_assert_eq!(rest.touches(first, last), set.range(first..=last).next().is_some());
                }
            }
        }
    }
}
