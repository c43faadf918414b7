//! Whether a cell has ended what it was at.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The turns of a cell, as others see them.
#[derive(Debug, Default)]
pub struct TurnCounter {
    count: AtomicU64,
    is_parked: AtomicBool,
}

impl TurnCounter {
    /// The cell is between two turns.
    pub fn pass(&self) {
        self.count.fetch_add(1, Ordering::SeqCst);
    }

    /// The cell sleeps, or does not any more.
    pub fn park(&self, is_parked: bool) {
        self.is_parked.store(is_parked, Ordering::SeqCst);
    }

    /// How often it was between two turns.
    pub fn count(&self) -> u64 {
        self.count.load(Ordering::SeqCst)
    }

    /// Tells whether it has ended the turn in which it was at this count.
    pub fn has_passed(&self, count: u64) -> bool {
        self.is_parked.load(Ordering::SeqCst) || self.count() != count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_has_passed_when_another_begins_or_the_cell_sleeps() {
        let turns = TurnCounter::default();
        let before = turns.count();
        assert!(!turns.has_passed(before));
        turns.park(true);
        assert!(turns.has_passed(before));
        turns.park(false);
        assert!(!turns.has_passed(before));
        turns.pass();
        assert!(turns.has_passed(before));
    }
}
