//! A connection as every cell can reach it, under its lock.

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
    /// How its socket is written, and its task woken.
    pub wire: W,
    signals: Arc<Signals>,
    /// The verdict of a login that was pending, until its task takes it.
    pub(super) verdict: Option<Box<Verdict>>,
    /// Changes of users that its task has not seen, the last of each.
    pub(super) renewals: Vec<Renewal>,
    /// Those whom its task is to show its sessions.
    inspectors: Vec<Inspector>,
    /// Its task was told that it ends.
    pub(super) is_ending: bool,
    /// The connection is on its cell's list of those with answers that wait for the journal.
    pub(super) awaits_journal: bool,
}

/// How a connection's socket is written and its task woken, from any cell.
pub trait Wire {
    /// The type that writes the transport.
    type Writer;

    /// Gives what writes it, outside the lock; `None` where that is for the connection's own cell alone.
    fn writer(&self, is_own_cell: bool) -> Option<Self::Writer>;

    /// Something of it is being written.
    fn wrote(&mut self, _now: Time) {}

    /// Lets the connection's task have a turn.
    fn wake(&self);
}

impl<W> fmt::Debug for Link<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link").field("id", &self.outbound.id()).finish_non_exhaustive()
    }
}

impl<W: Wire> Link<W> {
    /// A connection whose task sees to these signals.
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

    /// Tells its task the verdict of its login and wakes it.
    pub fn tell_verdict(&mut self, verdict: Verdict) {
        self.verdict = Some(Box::new(verdict));
        self.signal(Signal::Verified);
    }

    /// Tells its task that a user has changed, who may be its own, and wakes it.
    pub fn renew(&mut self, renewal: Renewal) {
        self.renewals.retain(|earlier| earlier.user != renewal.user);
        self.renewals.push(renewal);
        self.signal(Signal::Renewed);
    }

    /// Takes the changes of users that its task has to see to.
    pub fn take_renewals(&mut self) -> Vec<Renewal> {
        mem::take(&mut self.renewals)
    }

    /// Lets its task show its sessions, and wakes it. Where the connection ends before, `inspector` is dropped.
    pub fn inspect(&mut self, inspector: Inspector) {
        self.inspectors.push(inspector);
        self.signal(Signal::Inspected);
    }

    /// Takes those whom its task is to show its sessions.
    pub(super) fn take_inspectors(&mut self) -> Vec<Inspector> {
        mem::take(&mut self.inspectors)
    }

    /// Tells its task something and wakes it.
    pub fn signal(&self, signal: Signal) {
        self.signals.set(signal);
        self.wire.wake();
    }
}
