//! The only source of randomness: every decision of a run follows from its seed.

use std::cell::Cell;

/// A random number generator, seeded (SplitMix64).
#[derive(Debug)]
pub(crate) struct Random(Cell<u64>);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(Cell::new(seed ^ 0x5851_f42d_4c95_7f2d))
    }

    pub(crate) fn next(&self) -> u64 {
        let state = self.0.get().wrapping_add(0x9e37_79b9_7f4a_7c15);
        self.0.set(state);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`; 0 if `end` is 0.
    pub(crate) fn below(&self, end: usize) -> usize {
        (self.next() >> 11) as usize % end.max(1)
    }

    /// A number from `first` to `last`, both included.
    pub(crate) fn between(&self, first: usize, last: usize) -> usize {
        first + self.below(last.saturating_sub(first) + 1)
    }

    /// True with a probability of `part` in `whole`.
    pub(crate) fn chance(&self, part: usize, whole: usize) -> bool {
        self.below(whole) < part
    }

    /// A random item; `items` must not be empty.
    pub(crate) fn pick<'a, T>(&self, items: &'a [T]) -> &'a T {
        items.get(self.below(items.len())).expect("there is something to pick from")
    }

    /// A random index, weighted by these weights.
    pub(crate) fn weighted(&self, weights: &[usize]) -> usize {
        let mut left = self.below(weights.iter().sum());
        for (index, weight) in weights.iter().enumerate() {
            match left.checked_sub(*weight) {
                Some(rest) => left = rest,
                None => return index,
            }
        }
        0
    }
}
