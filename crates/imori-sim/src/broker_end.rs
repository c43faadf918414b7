//! The ways in which the broker ends, and its phases while it stops.

use imori_core::confirm::Level;
use imori_core::time::Time;

/// The way in which the broker ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EndKind {
    /// The process was killed: everything written is there.
    Kill,
    /// The power was cut: unsynced data may be there or not, in any part.
    PowerCut,
    /// The broker stopped in order and wrote everything.
    Clean,
}

impl EndKind {
    /// The lowest confirm level that survives this end.
    pub(crate) fn level(self) -> Level {
        match self {
            EndKind::Kill | EndKind::Clean => Level::Os,
            EndKind::PowerCut => Level::Disk,
        }
    }
}

/// The phases of the broker's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    Serving,
    /// Clients are told that the broker stops, and may still read.
    Stopping,
    /// Cells end the remaining connections, release their deliveries, and end.
    Ended,
    /// The page writer and reader finish their jobs and end.
    Closing,
    /// The checkpointer writes its last checkpoint.
    Keeping,
}

/// An end of the broker, at its place in the order of all events.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Crash {
    pub(crate) at: u64,
    pub(crate) kind: EndKind,
    /// When the next broker started.
    pub(crate) back: Time,
    /// Whether the next broker took it for a clean end; then ready messages are not marked as
    /// redelivered.
    pub(crate) was_clean: bool,
}
