//! Conversations with a consumer: what it would deliver, and what settles it.

use super::*;
use crate::stream::{PullEnd, PullRequest, RequestTerms};

const SECOND: Duration = Duration::from_secs(1);

fn settings(acks: AckPolicy) -> ConsumerSettings {
    ConsumerSettings { acks, ..ConsumerSettings::plain() }
}

fn consumer(settings: ConsumerSettings) -> StreamConsumer {
    StreamConsumer::new(Name::from("c"), settings, (1, VecDeque::new()), 5, Time(0))
}

/// Delivers the next message of a stream that has all numbers; returns its number, or 0 for none.
fn next(consumer: &mut StreamConsumer, now: Time) -> u64 {
    let Some(next) = consumer.next_message() else { return 0 };
    let sequence = match next {
        NextMessage::Redelivery(sequence) | NextMessage::Initial(sequence) | NextMessage::From(sequence) => {
            sequence
        }
    };
    consumer.deliver(next, sequence, now);
    sequence
}

/// Performs steps, a word each: `d` delivers, `a3` acknowledges message 3, `n3` gives it back, `t40` lets seconds pass.
fn check(settings: ConsumerSettings, steps: &str, delivered: &[u64], floor: (u64, u64), pending: usize) {
    let (mut consumer, mut now, mut given) = (consumer(settings), Time(0), Vec::new());
    for step in steps.split(' ') {
        let number = step.get(1..).and_then(|digits| digits.parse().ok()).unwrap_or(0);
        match step.as_bytes()[0] {
            b'd' => given.push(next(&mut consumer, now)),
            b'a' => drop(consumer.settle(number, Settlement::Ack, now)),
            b'n' => drop(consumer.settle(number, Settlement::Nak(None), now)),
            b'l' => drop(consumer.settle(number, Settlement::Nak(Some(10 * SECOND)), now)),
            b'w' => drop(consumer.settle(number, Settlement::Progress, now)),
            b'r' => consumer.removed(number, true),
            _ => now = now.after(SECOND * u32::try_from(number).unwrap()),
        }
        consumer.return_due(now);
    }
    assert_eq!(given, delivered, "{steps}");
    assert_eq!((consumer.floor.consumer, consumer.floor.stream), floor, "{steps}");
    assert_eq!(consumer.pending_len(), pending, "{steps}");
}

#[test]
fn deliveries_are_acknowledged_in_any_order() {
    let explicit = || settings(AckPolicy::Explicit);
    for (steps, delivered, floor, pending) in [
        ("d d d", &[1, 2, 3][..], (0, 0), 3),
        ("d d d a1", &[1, 2, 3], (1, 1), 2),
        ("d d d a2", &[1, 2, 3], (0, 0), 2),
        ("d d d a2 a1", &[1, 2, 3], (2, 2), 1),
        ("d d a1 a2", &[1, 2], (2, 2), 0),
        ("d d a1 a1 a2", &[1, 2], (2, 2), 0),
        ("d a9", &[1], (0, 0), 1),
        ("d d r1 a2", &[1, 2], (2, 2), 0),
    ] {
        check(explicit(), steps, delivered, floor, pending);
    }
}

#[test]
fn an_acknowledgement_of_all_speaks_for_those_before() {
    for (steps, floor, pending) in [("d d d a2", (2, 2), 1), ("d d d a3", (3, 3), 0)] {
        check(settings(AckPolicy::All), steps, &[1, 2, 3], floor, pending);
    }
    check(settings(AckPolicy::None), "d d", &[1, 2], (2, 2), 0);
}

#[test]
fn what_comes_back_comes_before_what_is_new() {
    for (steps, delivered) in [
        ("d d n1 d d", &[1, 2, 1, 3][..]),
        ("d d n2 n1 d d", &[1, 2, 2, 1]),
        ("d d t30 d d d", &[1, 2, 1, 2, 3]),
        ("d t29 w1 t29 d", &[1, 2]),
        ("d l1 d t9 d t1 d", &[1, 2, 3, 1]),
        ("d n1 a1 d", &[1, 2]),
        ("d n1 r1 d", &[1, 2]),
    ] {
        let (mut consumer, mut now, mut given) =
            (consumer(settings(AckPolicy::Explicit)), Time(0), Vec::new());
        for step in steps.split(' ') {
            let number = step.get(1..).and_then(|digits| digits.parse().ok()).unwrap_or(0);
            match step.as_bytes()[0] {
                b'd' => given.push(next(&mut consumer, now)),
                b'a' => drop(consumer.settle(number, Settlement::Ack, now)),
                b'n' => drop(consumer.settle(number, Settlement::Nak(None), now)),
                b'l' => drop(consumer.settle(number, Settlement::Nak(Some(10 * SECOND)), now)),
                b'w' => drop(consumer.settle(number, Settlement::Progress, now)),
                b'r' => consumer.removed(number, true),
                _ => now = now.after(SECOND * u32::try_from(number).unwrap()),
            }
            consumer.return_due(now);
        }
        assert_eq!(given, delivered, "{steps}");
    }
}

#[test]
fn limits_hold_back_what_is_new_and_end_what_is_repeated() {
    let full = ConsumerSettings { pending_max: Some(2), ..settings(AckPolicy::Explicit) };
    check(full.clone(), "d d d a1 d", &[1, 2, 0, 3], (1, 1), 2);
    check(full, "d d n2 d", &[1, 2, 2], (0, 0), 2);
    let twice = ConsumerSettings { deliveries_max: Some(2), ..settings(AckPolicy::Explicit) };
    let mut consumer = consumer(twice);
    assert_eq!((next(&mut consumer, Time(0)), consumer.is_spent(1)), (1, false));
    consumer.settle(1, Settlement::Nak(None), Time(0));
    assert_eq!((next(&mut consumer, Time(0)), consumer.is_spent(1)), (1, true));
    consumer.settle(1, Settlement::Nak(None), Time(0));
    assert_eq!(consumer.next_message(), Some(NextMessage::Redelivery(1)));
    assert_eq!((consumer.give_up(1), consumer.pending_len()), (2, 0));
    assert_eq!(next(&mut consumer, Time(0)), 2);
}

#[test]
fn the_time_for_an_acknowledgement_grows_with_the_deliveries() {
    let backoff = vec![SECOND, 5 * SECOND];
    let settings = ConsumerSettings { backoff, ..settings(AckPolicy::Explicit) };
    let waits = [1, 2, 3, 9].map(|deliveries| settings.wait_of(deliveries).as_secs());
    assert_eq!(waits, [1, 5, 5, 5]);
}

#[test]
fn requests_take_turns_and_too_many_are_refused() {
    let request = |reply: &str, left| PullRequest {
        reply: Name::from(reply),
        left,
        got: 0,
        bytes_left: Some(100),
        is_impatient: false,
        expires: Some(Time(50)),
        heartbeat: None,
        terms: RequestTerms::default(),
    };
    let mut consumer = consumer(settings(AckPolicy::Explicit));
    for (reply, left) in [("a", 2), ("b", 1)] {
        assert_eq!(consumer.admit(&request(reply, left), Time(0)), Ok(()));
        consumer.requests.add(request(reply, left));
    }
    assert_eq!(consumer.admit(&request("c", 1), Time(0)), Err(PullEnd::TooManyWaiting));
    let mut served = Vec::new();
    while let Some(front) = consumer.requests.front() {
        served.push(front.reply.to_string());
        consumer.requests.served(10, Time(1));
    }
    assert_eq!(served, ["a", "b", "a"]);
    assert_eq!(consumer.requests.next_due(), None);
}

// SECURITY ROOM-11
#[test]
fn a_consumer_without_anything_to_do_has_no_turn() {
    let request = || PullRequest {
        reply: Name::from("in"),
        left: 1,
        got: 0,
        bytes_left: None,
        is_impatient: false,
        expires: Some(Time(500)),
        heartbeat: None,
        terms: RequestTerms::default(),
    };
    let mut consumer = consumer(ConsumerSettings { requests_max: 2, ..settings(AckPolicy::Explicit) });
    assert!(consumer.has_turn(Time(0), 1), "it is new");
    consumer.rest(1);
    assert!(!consumer.has_turn(Time(9_000), 2), "nobody asks it");
    consumer.requests.add(request());
    consumer.rest(2);
    assert!(!consumer.has_turn(Time(499), 2), "it has no message");
    assert!(consumer.has_turn(Time(499), 3), "a message came");
    assert!(consumer.has_turn(Time(500), 2), "the request ends");
    assert_eq!(consumer.due(), Some(Time(500)));
    assert_eq!(next(&mut consumer, Time(0)), 1);
    consumer.rest(3);
    consumer.removed(7, true);
    assert!(!consumer.has_turn(Time(0), 3), "no delivery is settled by that");
    consumer.removed(1, true);
    assert!(consumer.has_turn(Time(0), 3), "another delivery may be unsettled now");
}
