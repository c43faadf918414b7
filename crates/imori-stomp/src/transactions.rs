//! The open transactions of a connection and their steps.

use std::collections::BTreeMap;

use imori_core::broker::Step;
use imori_core::memory::Gauge;
use imori_core::name::Name;

use crate::codec::error::Excerpt;
use crate::limits::Limits;
use crate::outcome::ReceiptKind;
use crate::protocol_error::ProtocolError;

/// A transaction whose steps wait for COMMIT.
#[derive(Debug, Default)]
pub(crate) struct Transaction {
    pub(crate) steps: Vec<Step>,
    /// Queues declared by its SENDs; they may be deleted before COMMIT.
    pub(crate) queues: Vec<Name>,
    /// Receipts of its frames, sent with COMMIT's own and dropped by ABORT.
    pub(crate) receipts: Vec<PendingReceipt>,
}

/// A receipt to send at COMMIT.
#[derive(Debug)]
pub(crate) struct PendingReceipt {
    /// The value of `receipt` as the client wrote it.
    pub(crate) id: Box<[u8]>,
    pub(crate) kind: ReceiptKind,
    /// The memory gauge charged for `id`, as for messages that wait for COMMIT.
    gauge: Gauge,
}

impl Drop for PendingReceipt {
    fn drop(&mut self) {
        self.gauge.sub(self.id.len());
    }
}

impl Transaction {
    /// Records the receipt that a frame of the transaction asks for.
    pub(crate) fn promise(&mut self, receipt: Option<&[u8]>, kind: ReceiptKind, gauge: &Gauge) {
        if let Some(id) = receipt {
            gauge.add(id.len());
            self.receipts.push(PendingReceipt { id: id.into(), kind, gauge: gauge.clone() });
        }
    }

    /// Whether the transaction publishes.
    pub(crate) fn publishes(&self) -> bool {
        self.steps.iter().any(|step| matches!(step, Step::Publish { .. }))
    }

    /// Whether the transaction settles deliveries.
    pub(crate) fn settles(&self) -> bool {
        self.steps.iter().any(|step| matches!(step, Step::Settle { .. }))
    }
}

/// All open transactions by name.
#[derive(Debug, Default)]
pub(crate) struct Transactions {
    open: BTreeMap<Box<[u8]>, Transaction>,
}

impl Transactions {
    pub(crate) fn begin(&mut self, name: &[u8], limits: &Limits) -> Result<(), ProtocolError> {
        let max = limits.transaction_count_max;
        if self.open.contains_key(name) {
            let text = format_args!("transaction `{}` is open already; use another name", Excerpt::new(name));
            return Err(ProtocolError::new("Bad transaction", text));
        }
        // SECURITY LIM-10.
        if self.is_full(limits) {
            let text = format_args!("{max} transactions are open, the limit; commit or abort one first");
            return Err(ProtocolError::new("Transaction limit exceeded", text));
        }
        self.open.insert(name.into(), Transaction::default());
        Ok(())
    }

    /// Whether BEGIN must wait until an open transaction ends.
    pub(crate) fn is_full(&self, limits: &Limits) -> bool {
        self.open.len() >= limits.transaction_count_max
    }

    /// Returns the transaction `name`, or an error if it is not open or is full.
    pub(crate) fn extend(&mut self, name: &[u8], limits: &Limits) -> Result<&mut Transaction, ProtocolError> {
        let max = limits.transaction_action_count_max;
        let transaction = self.open.get_mut(name).ok_or_else(|| unknown(name))?;
        if transaction.steps.len() >= max {
            let text = format_args!(
                "transaction `{}` has {max} actions, the limit; commit it and begin another",
                Excerpt::new(name)
            );
            return Err(ProtocolError::new("Transaction too large", text));
        }
        Ok(transaction)
    }

    /// Removes the transaction `name`, to commit or abort it.
    pub(crate) fn take(&mut self, name: &[u8]) -> Result<Transaction, ProtocolError> {
        self.open.remove(name).ok_or_else(|| unknown(name))
    }

    /// The steps of the transaction `name`; empty if it is not open.
    pub(crate) fn steps(&self, name: &[u8]) -> &[Step] {
        self.open.get(name).map_or(&[], |transaction| &transaction.steps)
    }

    /// Whether the transaction `name` is open and publishes.
    pub(crate) fn publishes(&self, name: &[u8]) -> bool {
        self.open.get(name).is_some_and(Transaction::publishes)
    }

    /// Whether the transaction `name` is open and settles deliveries.
    pub(crate) fn settles(&self, name: &[u8]) -> bool {
        self.open.get(name).is_some_and(Transaction::settles)
    }

    pub(crate) fn clear(&mut self) {
        self.open.clear();
    }
}

#[cold]
fn unknown(name: &[u8]) -> ProtocolError {
    let text = format_args!("there is no open transaction `{}`; send BEGIN first", Excerpt::new(name));
    ProtocolError::new("Bad transaction", text)
}
