//! A connection's task between its turns: what it is doing, and what it waits for.

use std::cell::Cell;
use std::rc::Rc;

use imori_core::id::ConnectionId;
use imori_core::time::Time;
use imori_stomp::connection::Connection;

use crate::network::Network;

/// What the task is doing: the server's states.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    Open,
    Working,
    Pressed(Time),
    Parked,
    Draining(Time),
    Lingering(Time),
}

/// A connection, from its cell's point of view.
pub(crate) struct Task {
    pub(crate) id: ConnectionId,
    pub(crate) pipe: usize,
    pub(crate) signals: Rc<Signals>,
    pub(crate) protocol: Connection,
    pub(crate) state: State,
    pub(crate) carry: Vec<u8>,
    /// It is told when the memory alarm ends.
    pub(crate) is_listed: bool,
}

impl Task {
    /// Tells whether a turn would do something now.
    pub(crate) fn is_ready(&self, network: &Network, now: Time) -> bool {
        let pipe = network.pipe(self.pipe);
        let has = |signal| self.signals.has(signal);
        if pipe.is_reset {
            return true;
        }
        let signals = [Signal::Broken, Signal::End, Signal::Cut, Signal::AlarmEnded];
        if signals.into_iter().any(has) || has(Signal::Write) && pipe.is_writable() {
            return true;
        }
        let is_due = self.deadline().is_some_and(|at| at <= now);
        is_due
            || match self.state {
                State::Open => pipe.is_readable(),
                State::Working => true,
                State::Pressed(_) => has(Signal::Resume),
                State::Parked => false,
                State::Lingering(_) => pipe.client_closed || pipe.is_reset,
                State::Draining(_) => false,
            }
    }

    /// When a turn is due whatever else happens.
    pub(crate) fn deadline(&self) -> Option<Time> {
        match self.state {
            State::Draining(at) | State::Lingering(at) | State::Pressed(at) => Some(at),
            State::Open | State::Working | State::Parked => self.protocol.next_deadline(),
        }
    }
}

/// Something that a connection's task has to see to, as in the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Signal {
    /// What is unsent could not be written.
    Write = 1,
    /// Writing met an error.
    Broken = 2,
    /// The broker ends the connection once all is written.
    End = 4,
    /// A reader that was behind has room again.
    Resume = 8,
    /// The memory alarm is over.
    AlarmEnded = 16,
    /// The broker ends the connection, whether its client reads or not.
    Cut = 32,
}

/// The signals that were given and not seen to.
#[derive(Debug, Default)]
pub(crate) struct Signals(Cell<u8>);

impl Signals {
    pub(crate) fn set(&self, signal: Signal) {
        self.0.set(self.0.get() | signal as u8);
    }

    pub(crate) fn has(&self, signal: Signal) -> bool {
        self.0.get() & signal as u8 != 0
    }

    pub(crate) fn take(&self, signal: Signal) -> bool {
        let had = self.has(signal);
        self.0.set(self.0.get() & !(signal as u8));
        had
    }
}
