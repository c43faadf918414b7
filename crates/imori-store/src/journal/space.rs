//! The space watermark: while it is high, publishers to durable queues wait.
//!
//! A value without a thread, which its owner updates. Between the two marks the watermark keeps its
//! state, so that publishers are not stopped and released by every file.

use crate::limits::{SPACE_HIGH_FILES, SPACE_LOW_FILES};

/// Whether publishers may continue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Watermark {
    /// Publishers continue.
    Low,
    /// Publishers wait; settles, checkpoints and transient traffic continue.
    High,
}

/// The free space of a store, with its watermark.
#[derive(Debug, Clone, Copy)]
pub struct Space {
    reserve_bytes: u64,
    file_bytes: u64,
    watermark: Watermark,
}

impl Space {
    /// Leaves `reserve_bytes` to others, for journal files of `file_bytes`.
    #[must_use]
    pub fn new(reserve_bytes: u64, file_bytes: u64) -> Space {
        Space { reserve_bytes, file_bytes, watermark: Watermark::Low }
    }

    /// Updates the watermark from the free bytes; `is_stalled` means that a journal file could not
    /// be created.
    pub fn update(&mut self, free_bytes: u64, is_stalled: bool) -> Watermark {
        if is_stalled || free_bytes < self.mark(SPACE_HIGH_FILES) {
            self.watermark = Watermark::High;
        } else if free_bytes >= self.mark(SPACE_LOW_FILES) {
            self.watermark = Watermark::Low;
        }
        self.watermark
    }

    /// Whether there is space for one more file, and for segments of the file it replaces.
    #[must_use]
    pub fn has_room(&self, free_bytes: u64) -> bool {
        free_bytes >= self.mark(SPACE_HIGH_FILES)
    }

    /// The free bytes needed for `files` journal files plus the reserve.
    #[must_use]
    pub fn mark(&self, files: u64) -> u64 {
        self.reserve_bytes.saturating_add(self.file_bytes.saturating_mul(files))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_high_below_two_files_and_low_again_at_four() {
        let mut space = Space::new(100, 10);
        for (free_bytes, is_stalled, expected) in [
            (120, false, Watermark::Low),
            (119, false, Watermark::High),
            (139, false, Watermark::High),
            (140, true, Watermark::High),
            (140, false, Watermark::Low),
            (120, false, Watermark::Low),
            (0, false, Watermark::High),
            (u64::MAX, false, Watermark::Low),
        ] {
            assert_eq!(space.update(free_bytes, is_stalled), expected, "{free_bytes} {is_stalled}");
        }
    }
}
