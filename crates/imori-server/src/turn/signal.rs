//! Signals to a connection's task, which any cell can give.

use std::sync::atomic::{AtomicU16, Ordering};

/// An event that a connection's task has to handle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u16)]
pub enum Signal {
    /// Bytes could not be written, or only the task may write them.
    Write = 1,
    /// Writing met an error: the peer is gone.
    Broken = 2,
    /// The broker ends the connection, and all is written.
    End = 4,
    /// A slow reader has room again.
    Resume = 8,
    /// The memory alarm is over.
    AlarmEnded = 16,
    /// The connection closes at once, unless it has logged in, to make room for a new one.
    Evict = 32,
    /// The broker has decided to end the connection; unsent bytes may still be written.
    Ending = 64,
    /// The broker has begun to stop.
    Stopping = 128,
    /// A queue that the connection publishes to has become shorter, or is gone.
    Unthrottled = 256,
    /// The result of the connection's login is in its link.
    Verified = 512,
    /// There may now be memory for the long frame that the connection has begun to read.
    Room = 1024,
    /// Changes of users are in the connection's link.
    Renewed = 2048,
    /// An operator asked for a description of the connection's sessions; the callbacks are in its link.
    Inspected = 4096,
}

/// The signals that the task has not taken yet.
#[derive(Debug, Default)]
pub struct Signals(AtomicU16);

impl Signals {
    /// Gives a signal. Callers other than the task itself have to wake it too: see
    /// [`Link::signal`](super::Link::signal).
    pub fn set(&self, signal: Signal) {
        self.0.fetch_or(signal as u16, Ordering::AcqRel);
    }

    /// Takes a signal; returns whether it was given.
    pub fn take(&self, signal: Signal) -> bool {
        self.has(signal) && self.0.fetch_and(!(signal as u16), Ordering::AcqRel) & signal as u16 != 0
    }

    /// Tells whether a signal was given.
    pub fn has(&self, signal: Signal) -> bool {
        self.0.load(Ordering::Acquire) & signal as u16 != 0
    }

    /// Whether a signal ends a connection that has no task yet. Other signals wait for the task.
    pub fn has_end(&self) -> bool {
        [Signal::Broken, Signal::End, Signal::Evict, Signal::Ending, Signal::Stopping]
            .into_iter()
            .any(|signal| self.has(signal))
    }

    /// Tells whether any signal was given.
    pub fn has_any(&self) -> bool {
        self.0.load(Ordering::Acquire) != 0
    }
}
