//! A connection's task between its turns, and the events it waits for.

use std::cell::Cell;
use std::rc::Rc;
use std::task::Poll;

use imori_core::id::ConnectionId;
use imori_core::internal;
use imori_core::time::Time;
use imori_server::turn::{Host, Transport};
use imori_testkit::toy;

use super::command_pipe::CommandPipe;
use super::network::Network;

/// A connection, as its cell keeps it.
pub(crate) struct Task {
    pub(crate) task: Served,
    pub(crate) pipe: usize,
    pub(crate) waits: Waits,
    pub(crate) woken: Rc<Cell<bool>>,
}

/// The server's task, for each kind of inbound half.
pub(crate) enum Served {
    Product(Box<imori_server::turn::Task>),
    Toy(Box<imori_server::turn::Task<toy::Connection>>),
    Internal(Box<imori_server::turn::Task<internal::Connection<CommandPipe>>>),
}

impl Served {
    pub(crate) fn id(&self) -> ConnectionId {
        match self {
            Served::Product(task) => task.id(),
            Served::Toy(task) => task.id(),
            Served::Internal(task) => task.id(),
        }
    }

    pub(crate) fn poll<H: Host>(&mut self, host: &H, transport: &mut impl Transport) -> Poll<()> {
        match self {
            Served::Product(task) => task.poll(host, transport),
            Served::Toy(task) => task.poll(host, transport),
            Served::Internal(task) => task.poll(host, transport),
        }
    }

    pub(crate) fn end<H: Host>(&mut self, host: &H) -> bool {
        match self {
            Served::Product(task) => task.end(host),
            Served::Toy(task) => task.end(host),
            Served::Internal(task) => task.end(host),
        }
    }
}

/// The events a task waits for, set by its last turn. Only these or a wake-up give it another turn.
#[derive(Debug, Default)]
pub(crate) struct Waits {
    pub(crate) reads: bool,
    pub(crate) writes: bool,
    pub(crate) for_gone: bool,
    pub(crate) until: Option<Time>,
}

impl Task {
    /// Whether the task is due for a turn.
    pub(crate) fn is_ready(&self, network: &Network, now: Time) -> bool {
        let pipe = network.pipe(self.pipe);
        self.woken.get()
            || self.waits.reads && pipe.is_readable()
            || self.waits.writes && pipe.is_writable()
            || self.waits.for_gone && pipe.is_reset
            || self.waits.until.is_some_and(|at| at <= now)
    }

    /// The time at which a turn is due in any case.
    pub(crate) fn deadline(&self) -> Option<Time> {
        self.waits.until
    }
}
