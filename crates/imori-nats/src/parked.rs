//! Operations that wait for the end of a memory alarm or for a queue to be shorter: publishes, and PINGs behind them, whose PONG says that
//! all before it is done.

use std::collections::VecDeque;
use std::mem::size_of;

use imori_core::memory::Gauge;

/// All that waits on one connection, in order and as it came, charged to the memory gauge.
#[derive(Debug, Default)]
pub(crate) struct Parked {
    waiting: VecDeque<Box<[u8]>>,
    bytes: usize,
    gauge: Gauge,
}

impl Parked {
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Bytes that wait.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Lets an operation wait.
    pub(crate) fn push(&mut self, operation: &[u8], gauge: &Gauge) {
        if self.waiting.is_empty() {
            self.gauge = gauge.clone();
        }
        let charge = charge(operation);
        self.bytes += charge;
        gauge.add(charge);
        self.waiting.push_back(operation.into());
    }

    /// What comes first.
    pub(crate) fn front(&self) -> Option<&[u8]> {
        self.waiting.front().map(|operation| &**operation)
    }

    /// Lets go what comes first.
    pub(crate) fn pop(&mut self) {
        let Some(operation) = self.waiting.pop_front() else { return };
        self.bytes -= charge(&operation);
        self.gauge.sub(charge(&operation));
    }

    /// Drops all that waits.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}

fn charge(operation: &[u8]) -> usize {
    operation.len() + size_of::<Box<[u8]>>()
}

impl Drop for Parked {
    fn drop(&mut self) {
        self.gauge.sub(self.bytes);
    }
}
