//! Watches the disk's free space: publishers of persistent messages wait before it is full, and continue once there
//! is space again.

use std::time::{Duration, Instant};

use imori_store::journal::{Space, Watermark};
use imori_store::limits::{SPACE_HIGH_FILES, SPACE_LOW_FILES};
use tracing::{info, warn};

use crate::limits::{SPACE_LOOK, SPACE_LOOK_LOW};
use crate::shared::Shared;

/// Free space of the data folder's disk.
pub(crate) struct SpaceWatch {
    space: Space,
    next: Instant,
    was_high: bool,
    was_unknown: bool,
}

impl SpaceWatch {
    /// Takes the first sample, of a disk on which `reserve_bytes` stay free.
    pub(crate) fn begin(shared: &Shared, reserve_bytes: u64) -> SpaceWatch {
        let space = Space::new(reserve_bytes, shared.journal.file_bytes());
        let mut watch = SpaceWatch { space, next: Instant::now(), was_high: false, was_unknown: false };
        watch.look(shared);
        watch
    }

    /// Takes a sample, if one is due.
    pub(super) fn look(&mut self, shared: &Shared) {
        if Instant::now() < self.next {
            return;
        }
        self.next = Instant::now() + self.look_again();
        let looked = match shared.journal.sample_space(&mut self.space) {
            Ok(Some(looked)) => looked,
            Ok(None) => return,
            Err(error) => {
                if !std::mem::replace(&mut self.was_unknown, true) {
                    warn!(%error, "the space that is left for the data folder cannot be asked for");
                }
                return;
            }
        };
        let is_high = looked.watermark == Watermark::High;
        if is_high {
            shared.journal.waiters().want_all(true);
            // Raised at every sample, because a cell may have just ended an alarm that had another cause.
            shared.memory.raise_disk_alarm();
        }
        if std::mem::replace(&mut self.was_high, is_high) == is_high {
            return;
        }
        let (folder, free_bytes) = (shared.journal.folder().path().display(), looked.free_bytes);
        if is_high {
            self.next = Instant::now() + SPACE_LOOK_LOW;
            let (mark_bytes, needed_bytes) =
                (self.space.mark(SPACE_HIGH_FILES), self.space.mark(SPACE_LOW_FILES));
            // A later sample may find more space than the mark.
            let lacks_file = free_bytes >= mark_bytes;
            warn!(
                %folder, free_bytes, mark_bytes, needed_bytes, lacks_file,
                "the disk is nearly full{}, publishers of persistent messages wait; make space, or consume",
                if lacks_file { ": there was no room for another journal file" } else { "" }
            );
        } else {
            info!(%folder, free_bytes, "the disk has space again, publishers go on");
            // A cell that wakes ends the alarm, unless the journal is behind too.
            shared.journal.waiters().wake_all();
        }
    }

    /// Time until the next sample.
    fn look_again(&self) -> Duration {
        if self.was_high { SPACE_LOOK_LOW } else { SPACE_LOOK }
    }
}
