//! Parked frames, which wait for the end of an alarm or for a queue, and the receipts queued behind
//! them.

use std::collections::BTreeSet;

/// Precedes a parked receipt; no frame begins with it.
const RECEIPT: u8 = 0;

/// A parked frame, or a receipt behind one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Parked<'a> {
    /// A whole frame.
    Frame(&'a [u8]),
    /// The receipt of a frame already performed, queued to keep receipts in frame order.
    Receipt(&'a [u8]),
}

impl<'a> Parked<'a> {
    /// The bytes to park.
    pub(crate) fn encode(self) -> Box<[u8]> {
        match self {
            Parked::Frame(bytes) => bytes.into(),
            Parked::Receipt(id) => [&[RECEIPT], id].concat().into(),
        }
    }

    /// Reads parked bytes.
    pub(crate) fn decode(bytes: &'a [u8]) -> Parked<'a> {
        match bytes {
            [RECEIPT, id @ ..] => Parked::Receipt(id),
            _ => Parked::Frame(bytes),
        }
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
