//! The client's end of a connection, which one session has for itself or several share.

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
    /// The client closed it, or noticed its end, so that none of its sessions is there any more.
    pub(super) is_gone: Cell<bool>,
    /// An operator closes it.
    pub(super) is_unwanted: Cell<bool>,
    /// Sessions that have not ended.
    pub(super) sessions: Cell<usize>,
    /// Bytes of which it is not known yet which session they are for.
    pub(super) input: RefCell<Vec<u8>>,
    /// Channels that the broker closed, and that nobody opened again, in a protocol where that is answered.
    pub(super) closed_by_broker: RefCell<BTreeSet<u16>>,
}

impl Connection {
    /// The end of a transport that a cell takes over.
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

    /// Tells whether it has no session yet.
    pub(crate) fn is_new(&self) -> bool {
        self.sessions.get() == 0
    }

    /// Tells whether the client closed it, or noticed its end.
    pub(crate) fn is_gone(&self) -> bool {
        self.is_gone.get()
    }

    /// Ends all its sessions.
    pub(super) fn end(&self, shared: &Shared, model: &mut Model) {
        self.is_gone.set(true);
        model.connection_ended(self.pipe, shared.step.get());
    }
}
