//! Disk room under the control of a test.

use std::cell::Cell;

use imori_core::room::{Reserve, Room, RoomState};

/// The disk room of a test world: ample until the test makes it scarce.
#[derive(Debug)]
pub struct TestRoom {
    reserve_bytes: Cell<Option<usize>>,
    reserve: Reserve,
    /// Bytes that the dead letters of one command may fill while room is ample.
    pub command_bytes_max: Cell<usize>,
    /// Whether there is room for more declarations.
    pub may_declare: Cell<bool>,
    /// Whether publishers of persistent messages must wait.
    pub is_alarmed: Cell<bool>,
    /// Whether clients must wait before they settle.
    pub settles_wait: Cell<bool>,
}

impl Default for TestRoom {
    fn default() -> Self {
        TestRoom {
            reserve_bytes: Cell::default(),
            reserve: Reserve::default(),
            command_bytes_max: Cell::new(usize::MAX),
            may_declare: Cell::new(true),
            is_alarmed: Cell::default(),
            settles_wait: Cell::default(),
        }
    }
}

impl TestRoom {
    /// Makes room scarce, with this reserve in bytes, or ample again with `None`.
    pub fn set(&self, reserve_bytes: Option<usize>) {
        self.reserve_bytes.set(reserve_bytes);
    }
}

impl Room for TestRoom {
    fn state(&self) -> RoomState {
        match self.reserve_bytes.get() {
            Some(_) => RoomState::Scarce,
            None => RoomState::Ample { command_bytes_max: self.command_bytes_max.get() },
        }
    }

    fn reserve(&self) -> &Reserve {
        &self.reserve
    }

    fn reserve_bytes(&self) -> usize {
        self.reserve_bytes.get().unwrap_or_default()
    }

    fn is_alarmed(&self) -> bool {
        self.is_alarmed.get()
    }

    fn must_settle_wait(&self) -> bool {
        self.settles_wait.get()
    }

    fn may_declare(&self) -> bool {
        self.may_declare.get()
    }
}
