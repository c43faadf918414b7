//! The message numbers that have arrived from one publisher: one bit each, in order of sending.

/// A set of message numbers, with its size.
#[derive(Debug, Default)]
pub(crate) struct ArrivedSet {
    bits: Vec<u64>,
    count: u64,
}

impl ArrivedSet {
    /// Adds a number; returns false if it was already there.
    pub(crate) fn insert(&mut self, number: u32) -> bool {
        let word = (number / 64) as usize;
        let bit = 1u64 << (number % 64);
        if word >= self.bits.len() {
            self.bits.resize(word.saturating_add(1), 0);
        }
        let Some(bits) = self.bits.get_mut(word) else {
            return false;
        };
        let is_new = *bits & bit == 0;
        *bits |= bit;
        self.count += u64::from(is_new);
        is_new
    }

    /// Whether a number has arrived.
    pub(crate) fn contains(&self, number: u32) -> bool {
        self.bits.get((number / 64) as usize).is_some_and(|bits| bits & 1 << (number % 64) != 0)
    }

    /// Number of different messages that have arrived.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_is_new_once() {
        let mut seen = ArrivedSet::default();
        for (number, is_new) in [(0, true), (63, true), (64, true), (0, false), (1_000, true), (64, false)] {
            assert_eq!(seen.insert(number), is_new, "{number}");
        }
        assert_eq!(seen.count(), 4);
        assert!(seen.contains(1_000) && !seen.contains(999) && !seen.contains(u32::MAX));
    }
}
