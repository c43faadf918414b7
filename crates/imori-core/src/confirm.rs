//! When the broker may say that it has taken responsibility, and how far that goes.

use std::fmt;

/// The number of a record in the journal; it rises by one for each for the life of a store.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lsn(pub u64);

impl Lsn {
    /// The number of a message without a record.
    pub const NONE: Lsn = Lsn(0);
    /// A number that no journal reaches: whoever waits for it waits until the broker ends.
    pub const NEVER: Lsn = Lsn(u64::MAX);

    /// The number `count` records later; what has no record has none there either.
    #[must_use]
    pub fn plus(self, count: usize) -> Lsn {
        if self == Lsn::NONE { Lsn::NONE } else { Lsn(self.0.saturating_add(count as u64)) }
    }
}

/// How much a confirm promises; each level includes those before it.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// The broker has the message: it is lost with the broker.
    #[default]
    Memory,
    /// The operating system has its record: it outlives the broker, not the system.
    Os,
    /// The device has its record: it outlives a power cut.
    Disk,
}

impl Level {
    /// Every level, the least first.
    pub const ALL: [Level; 3] = [Level::Memory, Level::Os, Level::Disk];

    /// The level's name, as configuration, headers and metrics have it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Level::Memory => "memory",
            Level::Os => "os",
            Level::Disk => "disk",
        }
    }

    /// The level of this name.
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

/// How far the journal has come: all records up to these.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// The operating system has them.
    pub written: Lsn,
    /// The device has them.
    pub synced: Lsn,
}

impl Progress {
    /// The further of both.
    #[must_use]
    pub fn max(self, other: Progress) -> Progress {
        Progress { written: self.written.max(other.written), synced: self.synced.max(other.synced) }
    }
}

/// The journal positions that a confirm waits for, and the level that it then promises. The default waits for
/// nothing.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Confirm {
    /// The journal has to be written up to here.
    pub written: Lsn,
    /// The journal has to be durable up to here.
    pub synced: Lsn,
    /// The lowest level among the queues that have the message.
    pub level: Level,
}

impl Confirm {
    /// Waits for nothing and promises the broker's memory.
    pub const NOW: Confirm = Confirm { written: Lsn::NONE, synced: Lsn::NONE, level: Level::Memory };

    /// The confirm of what has to reach `level` and has this record.
    #[must_use]
    pub fn of(level: Level, lsn: Lsn) -> Confirm {
        let (written, synced) = match level {
            Level::Memory => (Lsn::NONE, Lsn::NONE),
            Level::Os => (lsn, Lsn::NONE),
            Level::Disk => (lsn, lsn),
        };
        Confirm { written, synced, level }
    }

    /// Waits for both and promises the lower level: of one message in several queues.
    #[must_use]
    pub fn and(self, other: Confirm) -> Confirm {
        Confirm { level: self.level.min(other.level), ..self.after(other) }
    }

    /// Waits for what came before too, and promises the same: of answers that leave in their order.
    #[must_use]
    pub fn after(self, earlier: Confirm) -> Confirm {
        Confirm {
            written: self.written.max(earlier.written),
            synced: self.synced.max(earlier.synced),
            level: self.level,
        }
    }

    /// Tells whether the journal has come far enough.
    #[must_use]
    pub fn is_reached(&self, progress: Progress) -> bool {
        self.written <= progress.written && self.synced <= progress.synced
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
            assert_eq!(confirm.level, level, "{confirm:?}");
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
