//! Lets other threads see when a cell has ended its turn.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Counts a cell's turns, for other threads.
#[derive(Debug, Default)]
pub struct TurnCounter {
    count: AtomicU64,
    is_parked: AtomicBool,
}

impl TurnCounter {
    /// Notes that the cell is between two turns.
    pub fn pass(&self) {
        self.count.fetch_add(1, Ordering::SeqCst);
    }

    /// Notes that the cell is going to sleep or has woken.
    pub fn park(&self, is_parked: bool) {
        self.is_parked.store(is_parked, Ordering::SeqCst);
    }

    /// Number of turns so far.
    pub fn count(&self) -> u64 {
        self.count.load(Ordering::SeqCst)
    }

    /// Whether the turn that was current at `count` has ended.
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
