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
pub(crate) struct TransactionId(u32);

/// A link, by channel and handle.
pub(crate) type LinkOf = (u16, u32);

/// A transaction and its steps. Its messages are charged to the memory gauge.
///
/// ```text
///  declare            the first step               time is over
///  ───────► Idle ───────────────────────► Working ──────────────► Over
///            │ discharge                      │ discharge, or its link ends │
///            └────────────► gone ◄────────────┴─────────────────────────────┘
/// ```
#[derive(Debug)]
pub(crate) struct Transaction {
    /// The link to the coordinator that declared the transaction; its end rolls it back.
    link: LinkOf,
    /// Publishes and settles, in order.
    pub(crate) steps: Vec<Step>,
    /// Bytes of the annotations that its settles add.
    annotations_bytes: usize,
    /// The deliveries that it settles.
    pub(crate) retired: Vec<Retired>,
    /// Deadline of the transaction; `None` before its first step, as clients declare transactions
    /// long in advance.
    ends: Option<Time>,
    /// The deadline has passed and the transaction was rolled back.
    is_over: bool,
}

/// A range of deliveries that a transaction settles.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Retired {
    /// Their session.
    pub(crate) session: SessionId,
    /// Their numbers in it.
    pub(crate) numbers: Numbers,
    /// The first and last delivery id, as the client sent them.
    pub(crate) ids: (u32, Option<u32>),
    /// Their outcome if the transaction commits.
    pub(crate) outcome: Outcome,
    /// The client already considers them settled, so a rollback redelivers them.
    pub(crate) is_settled: bool,
}

/// All transactions of a connection that are not discharged.
#[derive(Debug, Default)]
pub(crate) struct Transactions {
    open: BTreeMap<TransactionId, Transaction>,
    last: u32,
    /// The deliveries that the transactions settle.
    held: NumberSet,
}

/// A set of delivery numbers per session, as disjoint ranges that do not touch: first to last
/// number.
#[derive(Debug, Default)]
pub(crate) struct NumberSet(BTreeMap<SessionId, BTreeMap<u64, u64>>);

impl NumberSet {
    /// Returns the set of the given deliveries.
    pub(crate) fn of<'a>(retired: impl IntoIterator<Item = &'a Retired>) -> NumberSet {
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

    fn has(&self, session: SessionId, number: u64) -> bool {
        let last = self.0.get(&session).and_then(|ranges| ranges.range(..=number).next_back());
        last.is_some_and(|(_, last)| *last >= number)
    }

    /// Iterates over the ranges of all sessions, in order.
    pub(crate) fn ranges(&self) -> impl Iterator<Item = (SessionId, u64, u64)> {
        let sessions = self.0.iter();
        sessions.flat_map(|(session, ranges)| ranges.iter().map(|(first, last)| (*session, *first, *last)))
    }
}

impl TransactionId {
    /// Returns the id as bytes for the client.
    pub(crate) fn bytes(self) -> [u8; 4] {
        self.0.to_be_bytes()
    }
}

impl Transactions {
    /// Declares a transaction for a link to the coordinator.
    ///
    /// # Errors
    /// `amqp:resource-limit-exceeded` at the limit on transactions.
    pub(crate) fn declare(&mut self, link: LinkOf) -> Result<TransactionId, ProtocolError> {
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
    pub(crate) fn find(&self, bytes: &[u8]) -> Result<TransactionId, ProtocolError> {
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
    pub(crate) fn add(
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
    pub(crate) fn hold_some_of(&self, session: SessionId) -> bool {
        self.held.has_some_of(session)
    }

    /// Whether a transaction settles this delivery.
    pub(crate) fn hold(&self, session: SessionId, number: u64) -> bool {
        self.held.has(session, number)
    }

    /// The steps of a transaction.
    pub(crate) fn steps(&self, id: TransactionId) -> &[Step] {
        self.open.get(&id).map_or(&[], |transaction| &transaction.steps)
    }

    /// Removes a transaction, to discharge it.
    pub(crate) fn take(&mut self, id: TransactionId) -> Option<Transaction> {
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
    pub(crate) fn take_of(&mut self, channel: u16, handle: Option<u32>) -> Vec<Transaction> {
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
    pub(crate) fn next_end(&self) -> Option<Time> {
        self.open.values().filter_map(|transaction| transaction.ends).min()
    }

    /// Takes the steps of transactions after their deadline. Their ids stay known, so that a
    /// late discharge is refused with the reason.
    pub(crate) fn take_late(&mut self, now: Time) -> Vec<Transaction> {
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
    pub(crate) fn clear(&mut self) {
        self.open.clear();
        self.held = NumberSet::default();
    }
}

#[cfg(test)]
mod tests {
    use imori_core::broker::Annotations;

    use super::*;

    const LINK: LinkOf = (3, 7);

    fn step() -> Step {
        Step::Settle {
            session: SessionId(4),
            numbers: Numbers::One(1),
            outcome: Outcome::Accept,
            annotations: None,
        }
    }

    #[test]
    fn the_time_of_a_transaction_begins_with_its_first_step() {
        let mut transactions = Transactions::default();
        let id = transactions.declare(LINK).unwrap();
        assert_eq!(transactions.find(&id.bytes()), Ok(id));
        assert_eq!(transactions.next_end(), None);
        let time = (Time(5), Duration::from_micros(10));
        transactions.add(id, step(), None, time).unwrap();
        transactions.add(id, step(), None, (Time(9), time.1)).unwrap();
        assert_eq!(transactions.next_end(), Some(Time(15)));
        assert!(transactions.take_late(Time(14)).is_empty());
        assert_eq!(transactions.take_late(Time(15)).first().map(|late| late.steps.len()), Some(2));
        assert_eq!(transactions.find(&id.bytes()).unwrap_err().condition(), condition::TRANSACTION_TIMEOUT);
        assert_eq!(transactions.next_end(), None);
        assert!(transactions.take(id).is_some());
        assert_eq!(
            transactions.find(&id.bytes()).unwrap_err().condition(),
            condition::TRANSACTION_UNKNOWN_ID
        );
    }

    /// SECURITY LIM-10.
    #[test]
    fn there_are_so_many_transactions_and_steps_at_most() {
        let mut transactions = Transactions::default();
        let ids: Vec<_> = (0..TRANSACTIONS_MAX).map(|_| transactions.declare(LINK).unwrap()).collect();
        let refused = transactions.declare(LINK).unwrap_err();
        assert_eq!(refused.condition(), condition::RESOURCE_LIMIT_EXCEEDED);
        let time = (Time(0), Duration::from_secs(1));
        for _ in 0..TRANSACTION_STEPS_MAX {
            transactions.add(ids[0], step(), None, time).unwrap();
        }
        let refused = transactions.add(ids[0], step(), None, time).unwrap_err();
        assert_eq!(refused.condition(), condition::RESOURCE_LIMIT_EXCEEDED);
        assert_eq!(transactions.take_of(3, Some(8)).len(), 0);
        assert_eq!(transactions.take_of(3, Some(7)).len(), TRANSACTIONS_MAX);
        transactions.declare(LINK).unwrap();
    }

    /// SECURITY LIM-10.
    #[test]
    fn a_transaction_adds_so_many_annotations_at_most() {
        let mut transactions = Transactions::default();
        let id = transactions.declare(LINK).unwrap();
        let time = (Time(0), Duration::from_secs(1));
        let mut add = |bytes| {
            let annotations = Annotations { added: vec![0; bytes].into_boxed_slice(), merge: |_, _| None };
            let Step::Settle { session, numbers, outcome, .. } = step() else { unreachable!() };
            let step = Step::Settle { session, numbers, outcome, annotations: Some(annotations) };
            transactions.add(id, step, None, time).map_err(|refused| refused.condition())
        };
        assert_eq!(add(TRANSACTION_ANNOTATIONS_BYTES_MAX - 1), Ok(()));
        assert_eq!(add(2), Err(condition::RESOURCE_LIMIT_EXCEEDED));
        assert_eq!(add(1), Ok(()));
    }

    #[test]
    fn bytes_that_are_no_number_are_unknown() {
        let mut transactions = Transactions::default();
        transactions.declare(LINK).unwrap();
        for bytes in [&b""[..], &[0, 0, 1], &[0, 0, 0, 2], &[0, 0, 0, 1, 0]] {
            let refused = transactions.find(bytes).unwrap_err();
            assert_eq!(refused.condition(), condition::TRANSACTION_UNKNOWN_ID, "{bytes:?}");
        }
    }

    fn retired(session: u16, first: u64, last: u64) -> Retired {
        let numbers = Numbers::Range(first, last);
        Retired {
            session: SessionId(session),
            numbers,
            ids: (0, None),
            outcome: Outcome::Accept,
            is_settled: true,
        }
    }

    #[test]
    fn numbers_are_kept_as_ranges_that_do_not_touch() {
        let of = |ranges: &[(u16, u64, u64)]| {
            let retired: Vec<_> =
                ranges.iter().map(|(session, first, last)| retired(*session, *first, *last)).collect();
            let set = NumberSet::of(&retired);
            let ranges =
                set.ranges().map(|(session, first, last)| (session.0, first, last)).collect::<Vec<_>>();
            for session in 0..4 {
                for number in 0..40 {
                    let expected = ranges
                        .iter()
                        .any(|(of, first, last)| *of == session && (*first..=*last).contains(&number));
                    assert_eq!(set.has(SessionId(session), number), expected, "{number} of {session}");
                }
            }
            ranges
        };
        assert_eq!(of(&[(1, 5, 9), (1, 20, 30), (1, 1, 2)]), [(1, 1, 2), (1, 5, 9), (1, 20, 30)]);
        assert_eq!(of(&[(1, 5, 9), (1, 10, 12), (1, 3, 4)]), [(1, 3, 12)], "neighbours are one");
        assert_eq!(of(&[(1, 5, 9), (1, 20, 30), (1, 7, 22)]), [(1, 5, 30)]);
        assert_eq!(of(&[(1, 5, 9), (1, 11, 12), (1, 1, 30)]), [(1, 1, 30)]);
        assert_eq!(of(&[(1, 1, 30), (1, 5, 9), (2, 5, 5)]), [(1, 1, 30), (2, 5, 5)]);
    }

    #[test]
    fn what_ends_holds_nothing() {
        let mut transactions = Transactions::default();
        let time = (Time(0), Duration::from_secs(1));
        let (one, other) = (transactions.declare(LINK).unwrap(), transactions.declare(LINK).unwrap());
        transactions.add(one, step(), Some(retired(4, 1, 5)), time).unwrap();
        transactions.add(other, step(), Some(retired(4, 4, 8)), time).unwrap();
        assert!(transactions.hold(SessionId(4), 1) && transactions.hold(SessionId(4), 8));
        transactions.take(one).unwrap();
        assert!(!transactions.hold(SessionId(4), 3) && transactions.hold(SessionId(4), 4));
        transactions.take_late(Time(u64::MAX));
        assert!(!transactions.hold_some_of(SessionId(4)));
    }
}
