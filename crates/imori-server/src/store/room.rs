//! Limits the disk space that segments take, so that work that frees space always has room.
//!
//! Draining a full disk means settling, and settles are written too. A journal file is removed only after its last
//! needed records are copied. Both need room before they give more back, so writes that give nothing back must leave
//! that room free.

use imori_store::journal::Space;
use imori_store::limits::{BLOCK_BYTES, CHECKPOINT_SPACE_BYTES, SPACE_HIGH_FILES};

/// Disk space that a segment takes beyond its content.
const SEGMENT_SLACK_BYTES: u64 = 2 * BLOCK_BYTES as u64;

/// Why pages are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// A queue exceeds its share of memory. Frees nothing on the disk.
    Memory,
    /// There are too many journal files.
    Files,
    /// Space is short: the oldest journal file is removed once these pages are written.
    Exchange,
}

/// Free space of the disk at one moment, and the space to leave.
#[derive(Debug, Clone, Copy)]
pub struct Room {
    free_bytes: u64,
    marks: Space,
}

impl Room {
    /// Room on a disk with `free_bytes` free, less the `marks` that segments have to leave.
    pub fn new(free_bytes: u64, marks: Space) -> Room {
        Room { free_bytes, marks }
    }

    /// Whether a segment of `bytes` may be written.
    pub fn has(&self, bytes: u64, purpose: Purpose) -> bool {
        let left = match purpose {
            // Leaves enough space to keep publishers unthrottled.
            Purpose::Memory => self.marks.mark(SPACE_HIGH_FILES),
            // Leaves room for one exchange.
            Purpose::Files => self.marks.mark(1),
            Purpose::Exchange => 0,
        };
        self.free_bytes >= left.saturating_add(bytes)
    }

    /// The most bytes of pages for which a journal file may be exchanged. Either the exchange gains space, or it
    /// leaves room for the next one. The next one may gain space where this does not, because what others settled
    /// lies behind this file.
    pub fn exchange_bytes_max(&self) -> u64 {
        let file_bytes = self.marks.mark(1) - self.marks.mark(0);
        let gains = file_bytes.saturating_sub(SEGMENT_SLACK_BYTES);
        let affords = self.free_bytes.saturating_add(file_bytes).saturating_sub(self.marks.mark(1));
        // The checkpoint that frees the file is written first.
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
