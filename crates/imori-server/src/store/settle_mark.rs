//! The mark below which settles wait for the checkpointer's next check, while space is low.
//!
//! Only settles free anything, and a checkpoint behind them frees files. So settles may take half of the remaining room
//! between two checks, and a checkpoint still has room to free what can be freed. Waiting for room alone could last for
//! ever if nothing is freed without more settles; the mark falls with the room, so settles continue. Settles of
//! internal clients and of transactions do not wait; both are bounded.

use std::sync::atomic::{AtomicUsize, Ordering};

/// A mark in bytes of room, set anew at each pass of the checkpointer.
#[derive(Debug)]
pub(super) struct SettleMark {
    /// The highest mark: half a journal file.
    max: usize,
    mark: AtomicUsize,
}

impl SettleMark {
    /// The mark for a journal with files of `file_bytes`.
    pub(super) fn new(file_bytes: usize) -> SettleMark {
        let max = file_bytes / 2;
        SettleMark { max, mark: AtomicUsize::new(max) }
    }

    /// Whether settles have to wait with `room` bytes left.
    pub(super) fn is_above(&self, room: usize) -> bool {
        room < self.mark.load(Ordering::Relaxed)
    }

    /// Sets the mark after the checkpointer has looked and left `room` bytes.
    pub(super) fn looked(&self, room: usize) {
        self.mark.store(self.max.min(room / 2), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_what_is_left_may_be_taken_between_two_looks() {
        let mark = SettleMark::new(1000);
        // Room, and whether settles wait before the next look and after it.
        for (room, before, after) in [
            (2000, false, false),
            (500, false, false),
            (249, true, false),
            (124, false, false),
            (61, true, false),
        ] {
            assert_eq!(mark.is_above(room), before, "{room} before the look");
            mark.looked(room);
            assert_eq!(mark.is_above(room), after, "{room} after the look");
        }
        mark.looked(0);
        assert!(!mark.is_above(0), "nothing goes without them");
        mark.looked(5000);
        assert!(mark.is_above(499) && !mark.is_above(500), "a file was freed");
    }
}
