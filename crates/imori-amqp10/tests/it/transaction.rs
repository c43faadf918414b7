//! The transactions of a connection.

use std::time::Duration;

use imori_amqp10::codec::condition;
use imori_amqp10::for_tests::{LinkOf, NumberSet, Retired, Transactions};
use imori_amqp10::limits::{TRANSACTION_ANNOTATIONS_BYTES_MAX, TRANSACTION_STEPS_MAX, TRANSACTIONS_MAX};
use imori_core::broker::{Annotations, Step};
use imori_core::delivery::Outcome;
use imori_core::outbound::{Numbers, SessionId};
use imori_core::time::Time;

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
    assert_eq!(transactions.find(&id.bytes()).unwrap_err().condition(), condition::TRANSACTION_UNKNOWN_ID);
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
        let ranges = set.ranges().map(|(session, first, last)| (session.0, first, last)).collect::<Vec<_>>();
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
