//! Confirms: the point at which the broker takes responsibility, and the level of safety promised.

use std::fmt;

/// Log sequence number: the number of a journal record, which rises by one throughout a store's
/// life.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lsn(pub u64);

impl Lsn {
    /// The number of a message that has no record.
    pub const NONE: Lsn = Lsn(0);
    /// A number that is never reached, so that a wait for it lasts until the broker ends.
    pub const NEVER: Lsn = Lsn(u64::MAX);

    /// The number `count` records later; [`Lsn::NONE`] stays as it is.
    #[must_use]
    pub fn plus(self, count: usize) -> Lsn {
        if self == Lsn::NONE { Lsn::NONE } else { Lsn(self.0.saturating_add(count as u64)) }
    }
}

/// The level of safety that a confirm promises; each includes the ones before it.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// The broker has the message in memory; it is lost if the broker ends.
    #[default]
    Memory,
    /// The operating system has its record; it survives the end of the broker, but not of the
    /// system.
    Os,
    /// The device has its record; it survives a power cut.
    Disk,
}

impl Level {
    /// Every level, lowest first.
    pub const ALL: [Level; 3] = [Level::Memory, Level::Os, Level::Disk];

    /// The name of the level in configuration, headers and metrics.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Level::Memory => "memory",
            Level::Os => "os",
            Level::Disk => "disk",
        }
    }

    /// The level with this name.
    #[must_use]
    pub fn parse(name: &[u8]) -> Option<Level> {
        Level::ALL.into_iter().find(|level| level.as_str().as_bytes() == name)
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The progress of the journal.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// All records up to this one have been written to the operating system.
    pub written: Lsn,
    /// All records up to this one are durable on the device.
    pub synced: Lsn,
}

impl Progress {
    /// The further progress in each field.
    #[must_use]
    pub fn max(self, other: Progress) -> Progress {
        Progress { written: self.written.max(other.written), synced: self.synced.max(other.synced) }
    }
}

/// A ticket for an answer that promises safety: what the journal has to reach first, and the level that is then
/// promised. The default waits for nothing.
///
/// Its contents are private: a verb gets tickets from its [`World`](crate::world::World) or from the records that
/// it has appended, joins them, and hands the result to the outbound half, which asks whether it is reached.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Confirm {
    /// The journal must be written up to here.
    written: Lsn,
    /// The journal must be durable up to here.
    synced: Lsn,
    level: Level,
}

impl Confirm {
    /// A confirm that waits for nothing and promises memory only.
    pub const NOW: Confirm = Confirm { written: Lsn::NONE, synced: Lsn::NONE, level: Level::Memory };

    /// The confirm for reaching `level` with this record.
    #[must_use]
    pub fn of(level: Level, lsn: Lsn) -> Confirm {
        let (written, synced) = match level {
            Level::Memory => (Lsn::NONE, Lsn::NONE),
            Level::Os => (lsn, Lsn::NONE),
            Level::Disk => (lsn, lsn),
        };
        Confirm { written, synced, level }
    }

    /// The lowest level among the queues that have the message.
    #[inline]
    #[must_use]
    pub fn level(&self) -> Level {
        self.level
    }

    /// Waits for the same, and promises this level.
    #[must_use]
    pub fn promising(self, level: Level) -> Confirm {
        Confirm { level, ..self }
    }

    /// Waits for both and promises the lower level, for one message in several queues.
    #[must_use]
    pub fn and(self, other: Confirm) -> Confirm {
        Confirm { level: self.level.min(other.level), ..self.after(other) }
    }

    /// Also waits for `earlier`, but promises the same level, for answers that are sent in order.
    #[must_use]
    pub fn after(self, earlier: Confirm) -> Confirm {
        Confirm {
            written: self.written.max(earlier.written),
            synced: self.synced.max(earlier.synced),
            level: self.level,
        }
    }

    /// Whether the journal has got far enough.
    #[inline]
    #[must_use]
    pub fn is_reached(&self, progress: Progress) -> bool {
        self.written <= progress.written && self.synced <= progress.synced
    }

    /// Whether the journal has made enough durable, so that at most a write is awaited.
    #[inline]
    pub(crate) fn is_synced(&self, progress: Progress) -> bool {
        self.synced <= progress.synced
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_confirm_waits_for_all_and_promises_the_least() {
        let (disk, os) = (Confirm::of(Level::Disk, Lsn(5)), Confirm::of(Level::Os, Lsn(7)));
        let progress = |written, synced| Progress { written: Lsn(written), synced: Lsn(synced) };
        for (confirm, level, reached, not_yet) in [
            (Confirm::NOW, Level::Memory, progress(0, 0), None),
            (disk, Level::Disk, progress(5, 5), Some(progress(9, 4))),
            (os, Level::Os, progress(7, 0), Some(progress(6, 6))),
            (disk.and(os), Level::Os, progress(7, 5), Some(progress(7, 4))),
            (disk.and(Confirm::NOW), Level::Memory, progress(5, 5), Some(progress(5, 4))),
            (Confirm::NOW.after(disk), Level::Memory, progress(5, 5), Some(progress(5, 4))),
            (disk.after(os), Level::Disk, progress(7, 5), Some(progress(6, 6))),
        ] {
            assert_eq!(confirm.level(), level, "{confirm:?}");
            assert!(confirm.is_reached(reached), "{confirm:?} {reached:?}");
            assert!(not_yet.is_none_or(|progress| !confirm.is_reached(progress)), "{confirm:?}");
        }
    }

    #[test]
    fn levels_are_named() {
        for level in Level::ALL {
            assert_eq!(Level::parse(level.to_string().as_bytes()), Some(level));
        }
        assert_eq!(Level::parse(b"tape"), None);
    }
}
