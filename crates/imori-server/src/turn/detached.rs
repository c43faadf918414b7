//! Limits for detached publishers: their peers are gone, and their messages wait for room on the disk.
//!
//! A detached publisher uses a slot that clients need to drain the disk, and memory for which all publishers would have
//! to wait in the end. So only a few are kept.

use std::sync::Mutex;

use crate::limits::{DETACHED_MAX, DETACHED_SHARE_OF_MARK, DETACHED_SHARE_OF_PLACES};
use crate::slots::unpoisoned;

/// The number of detached publishers, and the bytes they keep.
#[derive(Debug)]
pub struct DetachedPublishers {
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    count_max: usize,
    bytes_max: usize,
    count: usize,
    bytes: usize,
}

impl DetachedPublishers {
    /// No detached publishers yet, with limits for this memory mark and number of connection slots.
    pub(super) fn new(mark_bytes: usize, places: usize) -> DetachedPublishers {
        let detached = DetachedPublishers { held: Mutex::default() };
        detached.limit(mark_bytes, places);
        detached
    }

    /// Sets the limits for a new memory mark and number of connection slots. Publishers that were admitted stay.
    pub(super) fn limit(&self, mark_bytes: usize, places: usize) {
        let mut held = unpoisoned(self.held.lock());
        held.count_max = DETACHED_MAX.min(places / DETACHED_SHARE_OF_PLACES);
        held.bytes_max = mark_bytes / DETACHED_SHARE_OF_MARK;
    }

    /// Tells whether a publisher that keeps `bytes` may stay. If so, it counts until [`DetachedPublishers::forget`].
    pub fn admit(&self, bytes: usize) -> bool {
        let mut held = unpoisoned(self.held.lock());
        let is_admitted = held.count < held.count_max && bytes <= held.bytes_max.saturating_sub(held.bytes);
        if is_admitted {
            (held.count, held.bytes) = (held.count + 1, held.bytes + bytes);
        }
        is_admitted
    }

    /// Stops counting a publisher that kept `bytes`.
    pub fn forget(&self, bytes: usize) {
        let mut held = unpoisoned(self.held.lock());
        (held.count, held.bytes) = (held.count.saturating_sub(1), held.bytes.saturating_sub(bytes));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MARK: usize = 8 << 20;

    #[test]
    fn they_leave_places_and_memory_to_others() {
        for (places, bytes, expected) in [
            (1 << 20, 1, DETACHED_MAX),
            (1 << 20, 0, DETACHED_MAX),
            (1 << 20, MARK / DETACHED_SHARE_OF_MARK / 3, 3),
            (1 << 20, MARK / DETACHED_SHARE_OF_MARK, 1),
            (1 << 20, MARK, 0),
            (100, 1, 25),
            (3, 1, 0),
        ] {
            let detached = DetachedPublishers::new(MARK, places);
            let admitted = (0..2 * DETACHED_MAX).filter(|_| detached.admit(bytes)).count();
            assert_eq!(admitted, expected, "{bytes} bytes each, of {places} places");
            if expected > 0 {
                detached.forget(bytes);
                assert!(detached.admit(bytes) && !detached.admit(bytes), "one went");
            }
        }
    }
}
