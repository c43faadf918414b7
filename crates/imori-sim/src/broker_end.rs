//! How the broker ends, and what outlives that.

use imori_core::confirm::Level;
use imori_core::time::Time;

/// How the broker ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EndKind {
    /// The process is gone: what it has written is there.
    Kill,
    /// The power is gone: of what is not synced anything may be there.
    PowerCut,
    /// The broker was told to stop, and has written all there was.
    Clean,
}

impl EndKind {
    /// The lowest level that outlives it.
    pub(crate) fn level(self) -> Level {
        match self {
            EndKind::Kill | EndKind::Clean => Level::Os,
            EndKind::PowerCut => Level::Disk,
        }
    }
}

/// How far the broker is with its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    Serving,
    /// Clients are told goodbye, and may read it.
    Stopping,
    /// Cells give back what connections have that are still there, and end.
    Ended,
    /// Those who write and read pages do what they were asked for, and end.
    Closing,
    /// The checkpointer makes its last checkpoint.
    Keeping,
}

/// An end of the broker, in the order of all events.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Crash {
    pub(crate) at: u64,
    pub(crate) kind: EndKind,
    /// When the next one began.
    pub(crate) back: Time,
    /// The next one took it for clean: what was with nobody bears no mark.
    pub(crate) was_clean: bool,
}
