//! What a cell has at hand for the turns of its connections, of which it runs one at a time.

use std::cell::{Cell, RefCell};

use imori_core::id::ConnectionId;
use imori_core::time::Time;

use crate::limits::{SPARE_BUFFER_BYTES_MAX, SPARE_BUFFERS_MAX};
use crate::protocol::Tables;

/// The memory that turns share, and the list of those whose bytes wait to be written.
#[derive(Debug)]
pub struct Desk {
    read_bytes: usize,
    /// What a connection reads into, behind what it has carried over: used within a turn only.
    pub(super) buffer: RefCell<Vec<u8>>,
    pub(super) tables: RefCell<Tables>,
    touched: RefCell<Vec<ConnectionId>>,
    touched_since: Cell<Time>,
    /// Emptied buffers for the next outbound halves to write into.
    spare: RefCell<Vec<Vec<u8>>>,
}

impl Desk {
    /// The desk of a cell that reads so much of a connection in a turn.
    pub fn new(read_bytes: usize) -> Desk {
        Desk {
            read_bytes,
            buffer: RefCell::new(vec![0; 2 * read_bytes]),
            tables: RefCell::default(),
            touched: RefCell::default(),
            touched_since: Cell::default(),
            spare: RefCell::default(),
        }
    }

    /// Bytes read of a connection in a turn.
    pub fn read_bytes(&self) -> usize {
        self.read_bytes
    }

    /// How many connections have something to be written.
    pub fn touched_len(&self) -> usize {
        self.touched.borrow().len()
    }

    /// Since when the first of them waits.
    pub fn touched_since(&self) -> Time {
        self.touched_since.get()
    }

    /// Notes that a connection has something to be written.
    pub fn note_touched(&self, id: ConnectionId, now: Time) {
        let mut touched = self.touched.borrow_mut();
        if touched.is_empty() {
            self.touched_since.set(now);
        }
        touched.push(id);
    }

    /// Takes the list of those that have something to be written.
    pub fn take_touched(&self) -> Vec<ConnectionId> {
        std::mem::take(&mut self.touched.borrow_mut())
    }

    /// Gives back such a list, so that the next one needs no memory.
    pub(super) fn recycle_touched(&self, mut list: Vec<ConnectionId>) {
        let mut touched = self.touched.borrow_mut();
        if touched.capacity() == 0 {
            list.clear();
            *touched = list;
        }
    }

    /// An empty buffer, if one is at hand.
    pub(super) fn spare(&self) -> Option<Vec<u8>> {
        self.spare.borrow_mut().pop()
    }

    /// Keeps an empty buffer for later use.
    pub(super) fn recycle(&self, buffer: Vec<u8>) {
        let mut spare = self.spare.borrow_mut();
        if spare.len() < SPARE_BUFFERS_MAX && (1..=SPARE_BUFFER_BYTES_MAX).contains(&buffer.capacity()) {
            spare.push(buffer);
        }
    }

    /// Keeps a buffer that was lent and is not needed: there was room for it.
    pub(super) fn give_back(&self, buffer: Option<Vec<u8>>) {
        self.spare.borrow_mut().extend(buffer);
    }
}
