//! Parked frames, which wait for the end of an alarm or for a queue, and the receipts queued behind
//! them.

use std::collections::BTreeSet;

/// A parked frame, or a receipt behind one.
#[derive(Debug)]
pub enum Parked {
    /// A whole frame.
    Frame(Box<[u8]>),
    /// The receipt of a frame already performed, queued to keep receipts in frame order.
    Receipt(Box<[u8]>),
}

impl AsRef<[u8]> for Parked {
    fn as_ref(&self) -> &[u8] {
        let (Self::Frame(bytes) | Self::Receipt(bytes)) = self;
        bytes
    }
}

/// Properties of the parked frames that hold up later frames.
#[derive(Debug, Default)]
pub(crate) struct ParkedMarks {
    /// Transactions with a parked frame; their later frames must be parked too.
    transactions: BTreeSet<Box<[u8]>>,
    /// A parked frame settles deliveries; later settles must not overtake it.
    has_settles: bool,
}

impl ParkedMarks {
    /// Records a parked frame.
    pub(crate) fn note(&mut self, transaction: Option<&[u8]>, settles: bool) {
        self.has_settles |= settles;
        if let Some(name) = transaction {
            self.transactions.insert(name.into());
        }
    }

    /// Whether a frame of the transaction `name` is parked.
    pub(crate) fn has_transaction(&self, name: &[u8]) -> bool {
        self.transactions.contains(name)
    }

    /// Whether a parked frame settles deliveries.
    pub(crate) fn has_settles(&self) -> bool {
        self.has_settles
    }
}
