//! Frames that wait for the end of a memory alarm or for a queue to be shorter, and receipts that wait behind them.

use std::collections::{BTreeSet, VecDeque};
use std::mem::size_of;

use imori_core::memory::Gauge;

/// Something that waits, in frame order.
#[derive(Debug)]
pub(crate) enum Waiting {
    /// A whole frame.
    Frame(Box<[u8]>),
    /// The receipt of a frame whose work is done.
    Receipt(Box<[u8]>),
}

impl Waiting {
    fn charge(&self) -> usize {
        let (Self::Frame(bytes) | Self::Receipt(bytes)) = self;
        bytes.len() + size_of::<Self>()
    }
}

/// All that waits on one connection, charged to the memory gauge.
#[derive(Debug, Default)]
pub(crate) struct Parked {
    waiting: VecDeque<Waiting>,
    /// Transactions of which a frame waits: their later frames wait too.
    transactions: BTreeSet<Box<[u8]>>,
    /// Some of what waits settles deliveries: later settles must not come before it.
    has_settles: bool,
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

    /// Says that a frame of this transaction waits.
    pub(crate) fn has_transaction(&self, name: &[u8]) -> bool {
        self.transactions.contains(name)
    }

    /// Says that something that waits settles deliveries.
    pub(crate) fn has_settles(&self) -> bool {
        self.has_settles
    }

    /// Lets a frame wait, which may belong to a transaction and may settle deliveries.
    pub(crate) fn park(&mut self, frame: &[u8], transaction: Option<&[u8]>, settles: bool, gauge: &Gauge) {
        self.has_settles |= settles;
        if let Some(name) = transaction {
            self.transactions.insert(name.into());
        }
        self.push(Waiting::Frame(frame.into()), gauge);
    }

    /// Lets a receipt wait, so that receipts stay in frame order.
    pub(crate) fn park_receipt(&mut self, receipt: &[u8], gauge: &Gauge) {
        self.push(Waiting::Receipt(receipt.into()), gauge);
    }

    /// What comes first.
    pub(crate) fn front(&self) -> Option<&Waiting> {
        self.waiting.front()
    }

    /// Lets go what comes first.
    pub(crate) fn pop(&mut self) {
        let Some(waiting) = self.waiting.pop_front() else { return };
        self.bytes -= waiting.charge();
        self.gauge.sub(waiting.charge());
        if self.waiting.is_empty() {
            *self = Self::default();
        }
    }

    /// Drops all that waits.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    fn push(&mut self, waiting: Waiting, gauge: &Gauge) {
        if self.waiting.is_empty() {
            self.gauge = gauge.clone();
        }
        self.bytes += waiting.charge();
        gauge.add(waiting.charge());
        self.waiting.push_back(waiting);
    }
}

impl Drop for Parked {
    fn drop(&mut self) {
        self.gauge.sub(self.bytes);
    }
}
