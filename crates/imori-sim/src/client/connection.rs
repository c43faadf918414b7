//! The client's end of a connection, which belongs to one session or is shared by several.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;

use crate::machine::Shared;
use crate::model::Model;

/// The client's end of a connection.
#[derive(Debug)]
pub(crate) struct Connection {
    /// The transport.
    pub(crate) pipe: usize,
    pub(crate) cell: usize,
    pub(crate) is_reading: Cell<bool>,
    /// Whether the client closed it or noticed its end; none of its sessions exists any more.
    pub(super) is_gone: Cell<bool>,
    /// Whether an operator is closing it.
    pub(super) is_unwanted: Cell<bool>,
    /// The number of sessions that have not ended.
    pub(super) sessions: Cell<usize>,
    /// Bytes that are not assigned to a session yet.
    pub(super) input: RefCell<Vec<u8>>,
    /// Channels that the broker closed and that no client has reopened, in protocols that answer
    /// such a close.
    pub(super) closed_by_broker: RefCell<BTreeSet<u16>>,
}

impl Connection {
    /// The client's end of a transport in this cell.
    pub(crate) fn new(pipe: usize, cell: usize) -> Connection {
        Connection {
            pipe,
            cell,
            is_reading: Cell::new(true),
            is_gone: Cell::new(false),
            is_unwanted: Cell::new(false),
            sessions: Cell::new(0),
            input: RefCell::default(),
            closed_by_broker: RefCell::default(),
        }
    }

    /// Whether it has no session yet.
    pub(crate) fn is_new(&self) -> bool {
        self.sessions.get() == 0
    }

    /// Whether the client closed it or noticed its end.
    pub(crate) fn is_gone(&self) -> bool {
        self.is_gone.get()
    }

    /// Ends all its sessions.
    pub(super) fn end(&self, shared: &Shared, model: &mut Model) {
        self.is_gone.set(true);
        model.connection_ended(self.pipe, shared.step.get());
    }
}
