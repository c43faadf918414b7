//! Whether there is space to go on: high means that publishers to durable queues wait.
//!
//! A value that whoever asks keeps; there is no thread for it. Between the marks it stays what it was,
//! so that publishers are not stopped and let go by every file.

use crate::limits::{SPACE_HIGH_FILES, SPACE_LOW_FILES};

/// What becomes of publishers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Watermark {
    /// They go on.
    Low,
    /// They wait; settles, checkpoints and transient traffic go on.
    High,
}

/// The space of a store.
#[derive(Debug, Clone, Copy)]
pub struct Space {
    reserve_bytes: u64,
    file_bytes: u64,
    watermark: Watermark,
}

impl Space {
    /// Space of which `reserve_bytes` are kept for others, for journal files of `file_bytes`.
    #[must_use]
    pub fn new(reserve_bytes: u64, file_bytes: u64) -> Space {
        Space { reserve_bytes, file_bytes, watermark: Watermark::Low }
    }

    /// Looks at how much is left; `is_stalled` says that a journal file could not be made.
    pub fn look(&mut self, free_bytes: u64, is_stalled: bool) -> Watermark {
        if is_stalled || free_bytes < self.mark(SPACE_HIGH_FILES) {
            self.watermark = Watermark::High;
        } else if free_bytes >= self.mark(SPACE_LOW_FILES) {
            self.watermark = Watermark::Low;
        }
        self.watermark
    }

    /// Tells whether there is space for one more file, and for segments of what it replaces.
    #[must_use]
    pub fn has_room(&self, free_bytes: u64) -> bool {
        free_bytes >= self.mark(SPACE_HIGH_FILES)
    }

    /// The space in which so many files find room, and what is kept for others.
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
            assert_eq!(space.look(free_bytes, is_stalled), expected, "{free_bytes} {is_stalled}");
        }
    }
}
