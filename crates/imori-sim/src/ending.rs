//! How the broker ends, and what outlives that.

use imori_core::confirm::Level;
use imori_core::time::Time;

/// How the broker ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The process is gone: what it has written is there.
    Kill,
    /// The power is gone: of what is not synced anything may be there.
    PowerCut,
}

impl Kind {
    /// The lowest level that outlives it.
    pub(crate) fn level(self) -> Level {
        match self {
            Kind::Kill => Level::Os,
            Kind::PowerCut => Level::Disk,
        }
    }
}

/// An end of the broker, in the order of all events.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Crash {
    pub(crate) at: u64,
    pub(crate) kind: Kind,
    /// When the next one began.
    pub(crate) back: Time,
}
