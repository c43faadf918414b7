//! The space of the disk that segments may take, so that the work that frees space always has room.
//!
//! A full disk is drained by settling, and settles are written too. A journal file goes only after its last
//! needed records are copied. Each of these takes room first and gives back more. Writes that give nothing
//! back must therefore leave that room.

use imori_store::journal::Space;
use imori_store::limits::{BLOCK_BYTES, CHECKPOINT_SPACE_BYTES, SPACE_HIGH_FILES};

/// Bytes of the disk that a segment takes beside what is in it.
const SEGMENT_SLACK_BYTES: u64 = 2 * BLOCK_BYTES as u64;

/// The purpose for which pages are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Memory: a queue is longer than its share of it. Nothing on the disk goes for that.
    Memory,
    /// Journal files, as there are more than there should be.
    Files,
    /// The oldest journal file, as space is short: it goes as soon as these are written.
    Exchange,
}

/// The bytes that are free at one moment, and those of them that are spoken for.
#[derive(Debug, Clone, Copy)]
pub struct Room {
    free_bytes: u64,
    marks: Space,
}

impl Room {
    /// The room on a disk with these marks and this much free space.
    pub fn new(free_bytes: u64, marks: Space) -> Room {
        Room { free_bytes, marks }
    }

    /// Tells whether a segment of `bytes` may be written.
    pub fn has(&self, bytes: u64, purpose: Purpose) -> bool {
        let left = match purpose {
            // Publishers are not stopped by it.
            Purpose::Memory => self.marks.mark(SPACE_HIGH_FILES),
            // The next exchange has room.
            Purpose::Files => self.marks.mark(1),
            Purpose::Exchange => 0,
        };
        self.free_bytes >= left.saturating_add(bytes)
    }

    /// Gives the most bytes for which a journal file may be exchanged. Either the file takes none for good,
    /// or there is room for the next one afterwards, too. Where it gives nothing back either, the next may:
    /// what others settled is behind it.
    pub fn exchange_bytes_max(&self) -> u64 {
        let file_bytes = self.marks.mark(1) - self.marks.mark(0);
        let gains = file_bytes.saturating_sub(SEGMENT_SLACK_BYTES);
        let affords = self.free_bytes.saturating_add(file_bytes).saturating_sub(self.marks.mark(1));
        // The checkpoint that frees the file has to be written first.
        gains.max(affords).min(self.free_bytes.saturating_sub(CHECKPOINT_SPACE_BYTES))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_gives_nothing_back_leaves_room_for_what_does() {
        let marks = Space::new(100, 64);
        for (free_bytes, bytes, expected) in [
            (1_000, 10, [true, true, true]),
            (238, 10, [true, true, true]),
            (237, 10, [false, true, true]),
            (174, 10, [false, true, true]),
            (173, 10, [false, false, true]),
            (10, 10, [false, false, true]),
            (9, 10, [false, false, false]),
        ] {
            let room = Room::new(free_bytes, marks);
            let found =
                [Purpose::Memory, Purpose::Files, Purpose::Exchange].map(|for_| room.has(bytes, for_));
            assert_eq!(found, expected, "{bytes} of {free_bytes}");
        }
    }

    #[test]
    fn a_file_is_exchanged_for_less_or_where_the_next_one_can_be_too() {
        let marks = Space::new(1000 << 10, 640 << 10);
        for (free_kib, kib_max) in
            [(0, 0), (256, 0), (266, 10), (888, 632), (900, 632), (1632, 632), (1640, 640), (2000, 1000)]
        {
            let (free_bytes, bytes_max) = (free_kib << 10, kib_max << 10);
            assert_eq!(Room::new(free_bytes, marks).exchange_bytes_max(), bytes_max, "of {free_bytes}");
        }
    }
}
