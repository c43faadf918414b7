//! A connection's task between its turns: what it waits for, and whether that is there.

use std::cell::Cell;
use std::rc::Rc;

use imori_core::time::Time;

use super::network::Network;

/// A connection, from its cell's point of view.
pub(crate) struct Task {
    pub(crate) task: imori_server::turn::Task,
    pub(crate) pipe: usize,
    pub(crate) waits: Waits,
    pub(crate) woken: Rc<Cell<bool>>,
}

/// Events that a task waits for, as its last turn said. Nothing else gives it another turn, unless it is woken.
#[derive(Debug, Default)]
pub(crate) struct Waits {
    pub(crate) reads: bool,
    pub(crate) writes: bool,
    pub(crate) for_gone: bool,
    pub(crate) until: Option<Time>,
}

impl Task {
    /// Tells whether it is to have a turn now.
    pub(crate) fn is_ready(&self, network: &Network, now: Time) -> bool {
        let pipe = network.pipe(self.pipe);
        self.woken.get()
            || self.waits.reads && pipe.is_readable()
            || self.waits.writes && pipe.is_writable()
            || self.waits.for_gone && pipe.is_reset
            || self.waits.until.is_some_and(|at| at <= now)
    }

    /// When a turn is due whatever else happens.
    pub(crate) fn deadline(&self) -> Option<Time> {
        self.waits.until
    }
}
