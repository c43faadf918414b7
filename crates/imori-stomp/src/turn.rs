//! One turn of a connection: how much it may do, and what its caller has to do next.

use imori_core::confirm::Confirm;
use imori_core::id::ConnectionId;

use crate::limits::{TURN_COMMANDS_MAX, TURN_RECEIVERS_MAX};

/// How much a turn may still do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    commands: usize,
    receivers: usize,
    /// A receiver who is behind.
    pressed: Option<ConnectionId>,
}

impl Default for Budget {
    fn default() -> Self {
        Self { commands: TURN_COMMANDS_MAX, receivers: TURN_RECEIVERS_MAX, pressed: None }
    }
}

impl Budget {
    /// Says that the turn is over.
    pub fn is_spent(&self) -> bool {
        self.commands == 0 || self.receivers == 0
    }

    /// What follows the turn. Who met a receiver that is behind waits for it now: once a turn, and not at
    /// each message, so that one that stopped cannot hold up a publisher for long.
    pub(crate) fn close(&mut self, next: Next) -> Next {
        self.pressed.take().map_or(next, Next::Press)
    }

    pub(crate) fn spend(&mut self, done: &Done<'_>) {
        self.commands = self.commands.saturating_sub(done.commands);
        self.receivers = self.receivers.saturating_sub(done.receivers);
        self.pressed = done.pressed.or(self.pressed);
    }
}

/// What a turn came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Received {
    /// Bytes of the input that are done with.
    pub consumed: usize,
    /// What follows.
    pub next: Next,
}

/// What the caller has to do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Read more.
    More {
        /// Bytes of the whole frame whose beginning is left, when that is known.
        frame_bytes: Option<usize>,
    },
    /// Give others a turn, then come back with what is left of the input.
    Again,
    /// Wait until this connection has room, but a few milliseconds at most, then come back.
    Press(ConnectionId),
    /// Read nothing until the memory alarm ends.
    Parked,
    /// Write what is unsent, then close.
    Close,
}

/// What one frame came to.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Done<'a> {
    /// The receipt that is still to be given, as it came.
    pub(crate) receipt: Option<&'a [u8]>,
    /// What the receipt waits for.
    pub(crate) confirm: Confirm,
    /// Commands that it stands for.
    pub(crate) commands: usize,
    /// Deliveries that it caused, or may have.
    pub(crate) receivers: usize,
    /// A receiver who is behind.
    pub(crate) pressed: Option<ConnectionId>,
}

impl<'a> Done<'a> {
    /// One command, whose receipt has nothing to wait for.
    pub(crate) fn with_receipt(receipt: Option<&'a [u8]>) -> Self {
        Self { receipt, commands: 1, ..Self::default() }
    }
}
