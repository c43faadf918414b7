//! The part of a connection that every cell can reach, under its lock.

use std::any::Any;
use std::fmt;
use std::mem;
use std::sync::Arc;

use imori_core::authorize::Renewal;
use imori_core::login::Verdict;
use imori_core::outbound::Outbound;
use imori_core::time::Time;

use super::signal::{Signal, Signals};

/// Receives the description of a connection's sessions, as [`Inbound::details`](imori_core::inbound::Inbound::details)
/// returns it.
pub type Inspector = Box<dyn FnOnce(Option<Box<dyn Any + Send>>) + Send>;

/// The part of a connection that other cells may touch.
pub struct Link<W> {
    /// The outbound half of the connection.
    pub outbound: Outbound,
    /// Writes the socket and wakes the task.
    pub wire: W,
    signals: Arc<Signals>,
    /// The verdict of a pending login, until the task takes it.
    pub(super) verdict: Option<Box<Verdict>>,
    /// Changes of users that the task has not seen, only the last of each user.
    pub(super) renewals: Vec<Renewal>,
    /// Callbacks that the task has yet to call with a description of its sessions.
    inspectors: Vec<Inspector>,
    /// The task was told that the connection ends.
    pub(super) is_ending: bool,
    /// The connection is on its cell's list of connections with answers that wait for the journal.
    pub(super) awaits_journal: bool,
}

/// Writes a connection's socket and wakes its task, from any cell.
pub trait Wire {
    /// The type that writes the transport.
    type Writer;

    /// The writer, for use outside the lock; `None` if only the connection's own cell may write.
    fn writer(&self, is_own_cell: bool) -> Option<Self::Writer>;

    /// Notes when bytes are written.
    fn wrote(&mut self, _now: Time) {}

    /// Gives the connection's task a turn.
    fn wake(&self);
}

impl<W> fmt::Debug for Link<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link").field("id", &self.outbound.id()).finish_non_exhaustive()
    }
}

impl<W: Wire> Link<W> {
    /// The link of a connection whose task watches these signals.
    pub fn new(outbound: Outbound, wire: W, signals: Arc<Signals>) -> Link<W> {
        Link {
            outbound,
            wire,
            signals,
            verdict: None,
            renewals: Vec::new(),
            inspectors: Vec::new(),
            is_ending: false,
            awaits_journal: false,
        }
    }

    /// Passes the verdict of a login to the task and wakes it.
    pub fn tell_verdict(&mut self, verdict: Verdict) {
        self.verdict = Some(Box::new(verdict));
        self.signal(Signal::Verified);
    }

    /// Tells the task that a user has changed, possibly its own, and wakes it.
    pub fn renew(&mut self, renewal: Renewal) {
        self.renewals.retain(|earlier| earlier.user != renewal.user);
        self.renewals.push(renewal);
        self.signal(Signal::Renewed);
    }

    /// Takes the changes of users that the task has not seen.
    pub fn take_renewals(&mut self) -> Vec<Renewal> {
        mem::take(&mut self.renewals)
    }

    /// Asks the task to describe its sessions, and wakes it. If the connection ends first, `inspector` is dropped.
    pub fn inspect(&mut self, inspector: Inspector) {
        self.inspectors.push(inspector);
        self.signal(Signal::Inspected);
    }

    /// Takes the callbacks that wait for a description of the sessions.
    pub(super) fn take_inspectors(&mut self) -> Vec<Inspector> {
        mem::take(&mut self.inspectors)
    }

    /// Gives the task a signal and wakes it.
    pub fn signal(&self, signal: Signal) {
        self.signals.set(signal);
        self.wire.wake();
    }
}
