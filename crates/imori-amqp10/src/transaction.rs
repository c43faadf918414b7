//! The transactions of a connection: messages and settles that wait for their discharge.

use std::collections::BTreeMap;
use std::time::Duration;

use imori_core::broker::Step;
use imori_core::delivery::Outcome;
use imori_core::outbound::{Numbers, SessionId};
use imori_core::time::Time;

use crate::codec::condition;
use crate::limits::{TRANSACTION_ANNOTATIONS_BYTES_MAX, TRANSACTION_STEPS_MAX, TRANSACTIONS_MAX};
use crate::protocol_error::ProtocolError;

/// The number of a transaction, unique in its connection. Clients know it as four bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct TransactionId(u32);

/// A link, by channel and handle.
pub type LinkOf = (u16, u32);

/// A transaction and its steps. Its messages are charged to the memory gauge.
///
/// ```text
///  declare            the first step               time is over
///  ───────► Idle ───────────────────────► Working ──────────────► Over
///            │ discharge                      │ discharge, or its link ends │
///            └────────────► gone ◄────────────┴─────────────────────────────┘
/// ```
#[derive(Debug)]
pub struct Transaction {
    /// The link to the coordinator that declared the transaction; its end rolls it back.
    link: LinkOf,
    /// Publishes and settles, in order.
    pub steps: Vec<Step>,
    /// Bytes of the annotations that its settles add.
    annotations_bytes: usize,
    /// The deliveries that it settles.
    pub retired: Vec<Retired>,
    /// Deadline of the transaction; `None` before its first step, as clients declare transactions
    /// long in advance.
    ends: Option<Time>,
    /// The deadline has passed and the transaction was rolled back.
    is_over: bool,
}

/// A range of deliveries that a transaction settles.
#[derive(Debug, Clone, Copy)]
pub struct Retired {
    /// Their session.
    pub session: SessionId,
    /// Their numbers in it.
    pub numbers: Numbers,
    /// The first and last delivery id, as the client sent them.
    pub ids: (u32, Option<u32>),
    /// Their outcome if the transaction commits.
    pub outcome: Outcome,
    /// The client already considers them settled, so a rollback redelivers them.
    pub is_settled: bool,
}

/// All transactions of a connection that are not discharged.
#[derive(Debug, Default)]
pub struct Transactions {
    open: BTreeMap<TransactionId, Transaction>,
    last: u32,
    /// The deliveries that the transactions settle.
    held: NumberSet,
}

/// A set of delivery numbers per session, as disjoint ranges that do not touch: first to last
/// number.
#[derive(Debug, Default)]
pub struct NumberSet(BTreeMap<SessionId, BTreeMap<u64, u64>>);

impl NumberSet {
    /// Returns the set of the given deliveries.
    pub fn of<'a>(retired: impl IntoIterator<Item = &'a Retired>) -> NumberSet {
        let mut set = NumberSet::default();
        retired.into_iter().for_each(|retired| set.add(retired));
        set
    }

    fn add(&mut self, retired: &Retired) {
        let Numbers::Range(mut first, mut last) = retired.numbers else { return };
        let ranges = self.0.entry(retired.session).or_default();
        while let Some((begin, end)) =
            ranges.range(..=last.saturating_add(1)).next_back().map(|(begin, end)| (*begin, *end))
            && end.saturating_add(1) >= first
        {
            ranges.remove(&begin);
            (first, last) = (first.min(begin), last.max(end));
        }
        ranges.insert(first, last);
    }

    fn has_some_of(&self, session: SessionId) -> bool {
        self.0.contains_key(&session)
    }

    /// Whether the set has this number of a session.
    pub fn has(&self, session: SessionId, number: u64) -> bool {
        let last = self.0.get(&session).and_then(|ranges| ranges.range(..=number).next_back());
        last.is_some_and(|(_, last)| *last >= number)
    }

    /// Iterates over the ranges of all sessions, in order.
    pub fn ranges(&self) -> impl Iterator<Item = (SessionId, u64, u64)> {
        let sessions = self.0.iter();
        sessions.flat_map(|(session, ranges)| ranges.iter().map(|(first, last)| (*session, *first, *last)))
    }
}

impl TransactionId {
    /// Returns the id as bytes for the client.
    pub fn bytes(self) -> [u8; 4] {
        self.0.to_be_bytes()
    }
}

impl Transactions {
    /// Declares a transaction for a link to the coordinator.
    ///
    /// # Errors
    /// `amqp:resource-limit-exceeded` at the limit on transactions.
    pub fn declare(&mut self, link: LinkOf) -> Result<TransactionId, ProtocolError> {
        // SECURITY LIM-10.
        if self.open.len() >= TRANSACTIONS_MAX {
            let text =
                format_args!("{TRANSACTIONS_MAX} transactions are open, the limit; discharge one first");
            return Err(ProtocolError::new(condition::RESOURCE_LIMIT_EXCEEDED, text));
        }
        self.last = self.last.wrapping_add(1);
        let transaction = Transaction {
            link,
            steps: Vec::new(),
            annotations_bytes: 0,
            retired: Vec::new(),
            ends: None,
            is_over: false,
        };
        self.open.insert(TransactionId(self.last), transaction);
        Ok(TransactionId(self.last))
    }

    /// Finds the transaction with the id `bytes`.
    ///
    /// # Errors
    /// `amqp:transaction:unknown-id`, or `amqp:transaction:timeout` after its deadline.
    pub fn find(&self, bytes: &[u8]) -> Result<TransactionId, ProtocolError> {
        let id = <[u8; 4]>::try_from(bytes).ok().map(|bytes| TransactionId(u32::from_be_bytes(bytes)));
        match id.and_then(|id| Some((id, self.open.get(&id)?))) {
            None => {
                let text = "there is no transaction of this id; declare one first";
                Err(ProtocolError::new(condition::TRANSACTION_UNKNOWN_ID, text))
            }
            Some((_, transaction)) if transaction.is_over => {
                let text = "the transaction took too long and was rolled back; declare another";
                Err(ProtocolError::new(condition::TRANSACTION_TIMEOUT, text))
            }
            Some((id, _)) => Ok(id),
        }
    }

    /// Adds a step to a transaction, with the deliveries that it settles.
    ///
    /// # Errors
    /// `amqp:resource-limit-exceeded` at the limit on steps or annotations.
    pub fn add(
        &mut self,
        id: TransactionId,
        step: Step,
        retired: Option<Retired>,
        (now, time_max): (Time, Duration),
    ) -> Result<(), ProtocolError> {
        let Some(transaction) = self.open.get_mut(&id) else { return Ok(()) };
        if transaction.steps.len() >= TRANSACTION_STEPS_MAX {
            let text = format_args!(
                "a transaction has {TRANSACTION_STEPS_MAX} messages and settlements at most; discharge more often"
            );
            return Err(ProtocolError::new(condition::RESOURCE_LIMIT_EXCEEDED, text));
        }
        if let Step::Settle { annotations: Some(annotations), .. } = &step {
            let bytes = transaction.annotations_bytes + annotations.added.len();
            if bytes > TRANSACTION_ANNOTATIONS_BYTES_MAX {
                let text = format_args!(
                    "a transaction adds {TRANSACTION_ANNOTATIONS_BYTES_MAX} bytes of annotations at most; discharge more often"
                );
                return Err(ProtocolError::new(condition::RESOURCE_LIMIT_EXCEEDED, text));
            }
            transaction.annotations_bytes = bytes;
        }
        transaction.ends.get_or_insert_with(|| now.after(time_max));
        transaction.steps.push(step);
        transaction.retired.extend(retired);
        retired.iter().for_each(|retired| self.held.add(retired));
        Ok(())
    }

    /// Whether a transaction settles deliveries of this session.
    pub fn hold_some_of(&self, session: SessionId) -> bool {
        self.held.has_some_of(session)
    }

    /// Whether a transaction settles this delivery.
    pub fn hold(&self, session: SessionId, number: u64) -> bool {
        self.held.has(session, number)
    }

    /// The steps of a transaction.
    pub fn steps(&self, id: TransactionId) -> &[Step] {
        self.open.get(&id).map_or(&[], |transaction| &transaction.steps)
    }

    /// Removes a transaction, to discharge it.
    pub fn take(&mut self, id: TransactionId) -> Option<Transaction> {
        let transaction = self.open.remove(&id)?;
        self.forget_held(std::slice::from_ref(&transaction));
        Some(transaction)
    }

    /// Removes the deliveries of `taken` from the set of held deliveries.
    fn forget_held(&mut self, taken: &[Transaction]) {
        if taken.iter().any(|transaction| !transaction.retired.is_empty()) {
            self.held = NumberSet::of(self.open.values().flat_map(|transaction| &transaction.retired));
        }
    }

    /// Removes the transactions declared by the link `handle` of a channel, or by all of its links.
    pub fn take_of(&mut self, channel: u16, handle: Option<u32>) -> Vec<Transaction> {
        let is_of = |transaction: &Transaction| {
            transaction.link.0 == channel && handle.is_none_or(|handle| transaction.link.1 == handle)
        };
        let ids = self.open.iter().filter(|(_, transaction)| is_of(transaction));
        let ids: Vec<TransactionId> = ids.map(|(id, _)| *id).collect();
        let taken: Vec<Transaction> = ids.into_iter().filter_map(|id| self.open.remove(&id)).collect();
        self.forget_held(&taken);
        taken
    }

    /// Returns the next deadline of a transaction.
    pub fn next_end(&self) -> Option<Time> {
        self.open.values().filter_map(|transaction| transaction.ends).min()
    }

    /// Takes the steps of transactions after their deadline. Their ids stay known, so that a
    /// late discharge is refused with the reason.
    pub fn take_late(&mut self, now: Time) -> Vec<Transaction> {
        let late =
            self.open.values_mut().filter(|transaction| transaction.ends.is_some_and(|end| end <= now));
        let taken = late
            .map(|transaction| {
                let over = Transaction {
                    link: transaction.link,
                    steps: Vec::new(),
                    annotations_bytes: 0,
                    retired: Vec::new(),
                    ends: None,
                    is_over: true,
                };
                std::mem::replace(transaction, over)
            })
            .collect::<Vec<_>>();
        self.forget_held(&taken);
        taken
    }

    /// Removes all transactions.
    pub fn clear(&mut self) {
        self.open.clear();
        self.held = NumberSet::default();
    }
}
