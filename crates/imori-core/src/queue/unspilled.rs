//! Which records a queue still needs in the journal, well enough to say below which it needs none.

use std::collections::VecDeque;

use crate::confirm::Lsn;

/// Counts of records by their numbers, in buckets: the lowest is found at once, whatever order they go in.
#[derive(Debug)]
pub(super) struct Unspilled {
    /// Numbers that are counted together are this power of two.
    bits: u32,
    /// The bucket that the first count is of.
    first: u64,
    counts: VecDeque<u32>,
}

impl Unspilled {
    /// None yet, of which those are counted together that are the same but for so many bits.
    pub(super) fn new(bits: u32) -> Unspilled {
        Unspilled { bits, first: 0, counts: VecDeque::new() }
    }

    pub(super) fn add(&mut self, lsn: Lsn) {
        // The journal failed, and the broker is about to end: there will be no checkpoint.
        if lsn == Lsn::NEVER {
            return;
        }
        let bucket = lsn.0 >> self.bits;
        if self.counts.is_empty() {
            self.first = bucket;
        }
        while bucket < self.first {
            self.counts.push_front(0);
            self.first -= 1;
        }
        let at = usize::try_from(bucket - self.first).unwrap_or(usize::MAX);
        if at >= self.counts.len() {
            self.counts.resize(at.saturating_add(1), 0);
        }
        if let Some(count) = self.counts.get_mut(at) {
            *count += 1;
        }
    }

    pub(super) fn remove(&mut self, lsn: Lsn) {
        let at = (lsn.0 >> self.bits).checked_sub(self.first).and_then(|at| usize::try_from(at).ok());
        if let Some(count) = at.and_then(|at| self.counts.get_mut(at)) {
            *count = count.saturating_sub(1);
        }
        while self.counts.front() == Some(&0) {
            self.counts.pop_front();
            self.first += 1;
        }
        if self.counts.is_empty() && self.counts.capacity() > 64 {
            self.counts = VecDeque::new();
        }
    }

    /// No record below this one is needed; none where none is needed at all.
    pub(super) fn floor(&self) -> Option<Lsn> {
        (!self.counts.is_empty()).then_some(Lsn(self.first << self.bits))
    }

    /// How many are needed up to the end of the bucket of `lsn`, and where that ends.
    pub(super) fn through(&self, lsn: Lsn) -> (usize, Lsn) {
        let bucket = lsn.0 >> self.bits;
        let end = Lsn((bucket << self.bits) | ((1 << self.bits) - 1));
        let buckets = (bucket + 1).checked_sub(self.first).filter(|_| !self.counts.is_empty()).unwrap_or(0);
        let buckets = usize::try_from(buckets).unwrap_or(usize::MAX);
        (self.counts.iter().take(buckets).map(|count| *count as usize).sum(), end)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    const BITS: u32 = 12;

    proptest! {
        #[test]
        fn the_floor_is_never_above_what_is_needed(steps in proptest::collection::vec((1u64..40_000, any::<bool>()), 0..80)) {
            let (mut unspilled, mut model) = (Unspilled::new(BITS), BTreeMap::<u64, usize>::new());
            for (lsn, adds) in steps {
                if adds {
                    unspilled.add(Lsn(lsn));
                    *model.entry(lsn).or_default() += 1;
                } else if let Some((lsn, count)) = model.iter().next().map(|(lsn, count)| (*lsn, *count)) {
                    unspilled.remove(Lsn(lsn));
                    if count == 1 { model.remove(&lsn); } else { model.insert(lsn, count - 1); }
                }
                let lowest = model.keys().next().copied();
                prop_assert_eq!(unspilled.floor(), lowest.map(|lsn| Lsn(lsn >> BITS << BITS)));
                let (count, end) = unspilled.through(Lsn(lsn));
                prop_assert_eq!(count, model.range(..=end.0).map(|(_, count)| count).sum::<usize>());
            }
        }
    }
}
