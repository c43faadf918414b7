use std::sync::atomic::Ordering;

use super::super::test_stage::{FEED_BYTES, QUEUE, Stage, UNSENT_BYTES_MAX, long};
use super::super::{AfterCancel, Credit, INBOX_PREFIX, Numbers, OutboundLimits, SessionId};
use super::*;
use crate::confirm::Confirm;
use crate::delivery::Outcome;
use crate::message::Address;

#[test]
fn a_consumer_gets_what_its_credit_allows() {
    use Taken::{Full, Settled, Unsettled};
    for (settles, credit, taken) in [
        (true, Credit::window(2), [Unsettled, Unsettled, Full]),
        (true, Credit::Granted { left: 1, used: 0 }, [Unsettled, Full, Full]),
        (true, Credit::Unlimited, [Unsettled, Unsettled, Unsettled]),
        (false, Credit::Unlimited, [Settled, Settled, Settled]),
        (false, Credit::Granted { left: 2, used: 0 }, [Settled, Settled, Full]),
        (true, Credit::window(0), [Full, Full, Full]),
    ] {
        let mut stage = Stage::new();
        let reader = stage.consume("a", QUEUE, settles, credit);
        let offered = [1, 2, 3].map(|sequence| stage.offer(reader, sequence, "m"));
        assert_eq!(offered, taken, "{settles} {credit:?}");
    }
}

#[test]
fn deliveries_of_all_kinds_are_numbered_by_their_session() {
    let mut stage = Stage::new();
    let consumer = stage.consume("c", QUEUE, true, Credit::window(9));
    let live = stage.subscribe("l");
    let inbox = stage.outbound.inbox(SessionId::FIRST, b"i", || (b"i".as_slice().into(), [1; 16])).unwrap();
    stage.offer(consumer, 1, "1");
    assert_eq!(stage.send(live, "2"), Live::Taken);
    assert_eq!(stage.reply(&inbox, "3"), Reply::Taken);
    stage.offer(consumer, 2, "4");
    assert_eq!(stage.written(), "c#1?:1;l#2:2;i#3:3;c#4?:4;");
    let unsettled =
        stage.outbound.settle(SessionId(0), Numbers::UpTo(4), usize::MAX, Outcome::Accept).deliveries;
    let places: Vec<u64> = unsettled.iter().map(|unsettled| unsettled.place.sequence).collect();
    assert_eq!(places, [1, 2]);
}

#[test]
fn a_backlog_waits_as_messages_and_keeps_its_order() {
    let mut stage = Stage::new();
    let reader = stage.subscribe("l");
    let consumer = stage.consume("c", QUEUE, false, Credit::Unlimited);
    let big = "b".repeat(WAITING_BODY_MIN);
    assert_eq!(stage.send(reader, "1"), Live::Taken);
    assert_eq!(stage.send(reader, &long("2")), Live::SlowReader);
    assert_eq!(stage.send(reader, "3"), Live::SlowReader);
    assert_eq!(stage.headers.load(Ordering::Relaxed), 3, "small ones wait as bytes");
    assert_eq!(stage.send(reader, &big), Live::SlowReader);
    assert_eq!(stage.send(reader, "5"), Live::SlowReader);
    assert_eq!(stage.headers.load(Ordering::Relaxed), 3, "what is behind a message waits as one");
    assert_eq!(stage.offer(consumer, 1, "6"), Taken::Full, "a queue does not overtake");
    let expected = format!("l#1:1;l#2:{};l#3:3;l#4:{big};l#5:5;", long("2"));
    assert!(stage.outbound.unsent() > big.len());
    assert_eq!(stage.written(), expected);
    assert_eq!(stage.outbound.unsent(), 0);
    assert!(stage.outbound.has_room());
    assert_eq!(stage.wakes(), [consumer]);
}

#[test]
fn a_backlog_of_a_reader_that_is_gone_is_not_written() {
    let mut stage = Stage::new();
    let (gone, stays) = (stage.subscribe("gone"), stage.subscribe("stays"));
    stage.send(gone, &long("x"));
    let big = "b".repeat(WAITING_BODY_MIN);
    stage.send(gone, &big);
    stage.send(stays, "m");
    stage.outbound.remove_reader(gone);
    assert_eq!(stage.written(), format!("gone#1:{};stays#2:m;", long("x")));
}

#[test]
fn headers_are_written_once_for_receivers_of_one_kind() {
    let mut stages = [1, 1, 2, 2].map(|kind| Stage::of_kind(kind, AfterCancel::GoOn));
    let mut shared = SharedHeaders::for_receivers(stages.len());
    for stage in &mut stages {
        let reader = stage.subscribe("l");
        assert_eq!(stage.send_with(reader, "m", &mut shared), Live::Taken);
        assert_eq!(stage.written(), "l#1:m;");
    }
    let headers = stages.map(|stage| stage.headers.load(Ordering::Relaxed));
    assert_eq!(headers, [1, 0, 1, 0]);
}

#[test]
fn who_reads_too_slowly_is_cut_and_told_last() {
    let mut stage = Stage::new();
    let reader = stage.subscribe("l");
    let inbox = stage.outbound.inbox(SessionId::FIRST, b"i", || (b"i".as_slice().into(), [1; 16])).unwrap();
    let big = "b".repeat(WAITING_BODY_MIN);
    let mut sent = 0;
    while stage.send(reader, &big) != Live::Cut {
        sent += 1;
        assert!(sent < 2 * UNSENT_BYTES_MAX / WAITING_BODY_MIN);
    }
    assert!(sent > 2, "{sent}");
    assert_eq!(stage.outbound.ended(), Some(&CutReason::TooSlow { unsent_max: UNSENT_BYTES_MAX }));
    assert_eq!(stage.send(reader, "m"), Live::Gone);
    assert_eq!(stage.reply(&inbox, "m"), Reply::Gone);
    stage.answer(Confirm::NOW, "receipt;");
    stage.outbound.beat(b"\n");
    let text = stage.written();
    assert!(text.starts_with("l#1:b"), "{text}");
    assert!(text.ends_with(";too slow;"), "{text}");
    // Deliveries that waited as messages were not encoded for a client that does not read.
    assert_eq!(stage.headers.load(Ordering::Relaxed), 1);
    drop(stage.outbound);
    assert_eq!(stage.gauge.bytes(), 0);
}

#[test]
fn a_reply_to_an_owner_who_is_behind_cuts_the_owner() {
    let mut stage = Stage::new();
    let inbox = stage.outbound.inbox(SessionId::FIRST, b"i", || (b"i".as_slice().into(), [1; 16])).unwrap();
    let replies: Vec<Reply> = (0..1000).map(|_| stage.reply(&inbox, &long("r"))).collect();
    let taken = replies.iter().take_while(|reply| **reply == Reply::Taken).count();
    assert!(taken >= UNSENT_BYTES_MAX / 200);
    assert_eq!(replies.get(taken), Some(&Reply::Cut));
    assert!(replies[taken + 1..].iter().all(|reply| *reply == Reply::Gone));
}

#[test]
fn an_inbox_opens_to_its_secret_alone() {
    let mut stage = Stage::new();
    let address = stage.outbound.inbox(SessionId::FIRST, b"a", || (b"A".as_slice().into(), [1; 16])).unwrap();
    let same = stage.outbound.inbox(SessionId::FIRST, b"a", || unreachable!("it is known")).unwrap();
    assert_eq!(address, same);
    let other = stage.outbound.inbox(SessionId::FIRST, b"b", || (b"B".as_slice().into(), [2; 16])).unwrap();
    assert_eq!(
        stage.outbound.inbox(SessionId::FIRST, b"c", || (b"C".as_slice().into(), [3; 16])),
        None,
        "LIM: two"
    );
    // SECURITY AUTH-06: one wrong bit, the secret of another inbox, another index.
    let mut wrong_bit = address;
    wrong_bit.secret[15] ^= 1;
    for (to, expected) in [
        (address, Reply::Taken),
        (other, Reply::Taken),
        (wrong_bit, Reply::Gone),
        (InboxAddress { secret: other.secret, ..address }, Reply::Gone),
        (InboxAddress { index: other.index, ..address }, Reply::Gone),
        (InboxAddress { index: u16::MAX, ..address }, Reply::Gone),
    ] {
        assert_eq!(stage.outbound.has_inbox(&to), expected == Reply::Taken, "{to:?}");
        assert_eq!(stage.reply(&to, "m"), expected, "{to:?}");
    }
    assert_eq!(stage.written(), "A#1:m;B#2:m;");
    assert!(address.to_key().starts_with(INBOX_PREFIX));
    stage.outbound.close(9, usize::MAX);
    assert_eq!(stage.reply(&address, "m"), Reply::Gone);
    assert!(!stage.outbound.has_inbox(&address));
}

#[test]
fn who_replies_waits_for_a_reader_that_is_half_full() {
    for (subject, until) in
        [("_INBOX.a.1", UNSENT_BYTES_MAX / 2), ("_INBOXES.a", FEED_BYTES), ("a", FEED_BYTES)]
    {
        let mut stage = Stage::new();
        stage.address = Arc::new(Address::new(b"amq.topic", subject.as_bytes()));
        let reader = stage.subscribe("l");
        let body = "x".repeat(16);
        while stage.send(reader, &body) == Live::Taken {}
        let unsent = stage.outbound.unsent();
        assert!((until..until + 64).contains(&unsent), "{subject} throttles at {unsent}, not {until}");
    }
}

#[test]
fn a_run_arrives_as_its_messages_one_by_one_would() {
    const BODIES: [&str; 5] = ["1111", "2222", "3333", "4444", "5555"];
    for messages in 0..=BODIES.len() {
        for feed_bytes in [0, 5, 12, 60, 1000] {
            for receivers in [1, 2] {
                let (mut stages, mut sent) = ([Stage::new(), Stage::new()], Vec::new());
                for stage in &mut stages {
                    stage.outbound.limits.feed_bytes = feed_bytes;
                    sent.push(stage.subscribe("l"));
                    stage.answer(Confirm::NOW, "a;");
                }
                let [one_by_one, at_once] = &mut stages;
                let bodies = &BODIES[..messages];
                let mut shared = SharedHeaders::for_repetition(receivers);
                for body in bodies {
                    one_by_one.send_with(sent[0], body, &mut shared);
                }
                at_once.send_run(sent[1], bodies, &mut SharedHeaders::for_repetition(receivers));
                let what = format!("{messages} messages, room for {feed_bytes}, {receivers} receivers");
                assert_eq!(one_by_one.outbound.unsent(), at_once.outbound.unsent(), "{what}");
                assert_eq!(one_by_one.written(), at_once.written(), "{what}");
                assert_eq!(one_by_one.send(sent[0], "x"), at_once.send(sent[1], "x"), "{what}");
                assert_eq!(one_by_one.written(), at_once.written(), "{what}");
            }
        }
    }
}

#[test]
fn a_run_that_is_too_much_cuts_its_reader() {
    let mut stage = Stage::new();
    let reader = stage.subscribe("l");
    stage.outbound.limits = OutboundLimits { feed_bytes: 20, unsent_bytes_max: 30, ..stage.outbound.limits };
    let mut shared = SharedHeaders::for_repetition(1);
    assert_eq!(stage.send_run(reader, &["1111", "2222", "3333", "4444"], &mut shared), Live::SlowReader);
    assert_eq!(stage.send_run(reader, &["5555", "6666"], &mut shared), Live::Cut);
    assert_eq!(stage.send_run(reader, &["7777", "8888"], &mut shared), Live::Gone);
    assert!(stage.written().ends_with(";too slow;"));
}
