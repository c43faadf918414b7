//! Frames that wait for the end of an alarm or for a queue, and receipts that wait behind them.

use std::collections::BTreeSet;

/// A parked frame, or a receipt behind one.
#[derive(Debug)]
pub enum Parked {
    /// A whole frame.
    Frame(Box<[u8]>),
    /// The receipt of a frame whose work is done, so that receipts stay in frame order.
    Receipt(Box<[u8]>),
}

impl AsRef<[u8]> for Parked {
    fn as_ref(&self) -> &[u8] {
        let (Self::Frame(bytes) | Self::Receipt(bytes)) = self;
        bytes
    }
}

/// Facts about the parked frames, by which others have to stay behind them.
#[derive(Debug, Default)]
pub(crate) struct ParkedMarks {
    /// Transactions of which a frame is parked: their later frames are too.
    transactions: BTreeSet<Box<[u8]>>,
    /// A parked frame settles deliveries: later settles must not come before it.
    has_settles: bool,
}

impl ParkedMarks {
    /// Notes a parked frame, which may belong to a transaction and may settle deliveries.
    pub(crate) fn note(&mut self, transaction: Option<&[u8]>, settles: bool) {
        self.has_settles |= settles;
        if let Some(name) = transaction {
            self.transactions.insert(name.into());
        }
    }

    /// Tells whether a frame of this transaction is parked.
    pub(crate) fn has_transaction(&self, name: &[u8]) -> bool {
        self.transactions.contains(name)
    }

    /// Tells whether a parked frame settles deliveries.
    pub(crate) fn has_settles(&self) -> bool {
        self.has_settles
    }
}
