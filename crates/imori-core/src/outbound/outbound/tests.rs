use std::collections::BTreeSet;
use std::slice;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::super::inbox::INBOX_PREFIX;
use super::super::readers::Subscription;
use super::*;
use crate::confirm::{Level, Lsn};
use crate::message::{Address, AddressView, Head, OriginId};
use crate::route::{BindingKey, Syntax};

const FEED_BYTES: usize = 100;
const UNSENT_BYTES_MAX: usize = 10_000;
const ME: ConnectionId = ConnectionId { cell: 3, slot: 5, generation: 7 };
const QUEUE: QueueId = QueueId { slot: 1, generation: 0 };

/// Writes `label#number:body;`, with a `?` where the delivery has to be settled.
struct Plain {
    kind: u16,
    after_cancel: AfterCancel,
    headers: Arc<AtomicUsize>,
}

impl Encoder for Plain {
    fn kind(&self) -> u16 {
        self.kind
    }

    fn head(&mut self, out: &mut Vec<u8>, label: &[u8], number: u64, needs_settle: bool, _: &Delivery<'_>) {
        out.extend_from_slice(label);
        out.extend_from_slice(format!("#{number}{}", if needs_settle { "?" } else { "" }).as_bytes());
    }

    fn headers(&mut self, out: &mut Vec<u8>, _: &Delivery<'_>) {
        self.headers.fetch_add(1, Ordering::Relaxed);
        out.push(b':');
    }

    fn body(&mut self, out: &mut Vec<u8>, delivery: &Delivery<'_>) {
        out.extend_from_slice(delivery.message.body);
        out.push(b';');
    }

    fn cancelled(&mut self, out: &mut Vec<u8>, label: &[u8], queue: &Name) -> AfterCancel {
        out.extend_from_slice(format!("cancelled {} {queue};", String::from_utf8_lossy(label)).as_bytes());
        self.after_cancel
    }

    fn cut(&mut self, out: &mut Vec<u8>, reason: &CutReason) {
        let text = match reason {
            CutReason::TooSlow { .. } => "too slow",
            _ => "cut",
        };
        out.extend_from_slice(format!("{text};").as_bytes());
    }
}

struct Stage {
    outbound: Outbound,
    gauge: Gauge,
    headers: Arc<AtomicUsize>,
    address: Arc<Address>,
    head: Head,
}

impl Stage {
    fn new() -> Stage {
        Stage::of_kind(1, AfterCancel::GoOn)
    }

    fn of_kind(kind: u16, after_cancel: AfterCancel) -> Stage {
        let (gauge, headers) = (Gauge::default(), Arc::new(AtomicUsize::new(0)));
        let encoder = Box::new(Plain { kind, after_cancel, headers: Arc::clone(&headers) });
        let limits =
            OutboundLimits { feed_bytes: FEED_BYTES, unsent_bytes_max: UNSENT_BYTES_MAX, inboxes_max: 2 };
        Stage {
            outbound: Outbound::new(ME, encoder, limits, gauge.clone()),
            gauge,
            headers,
            address: Arc::new(Address::new(b"", b"q")),
            head: Head::new(OriginId::BROKER),
        }
    }

    fn consume(&mut self, label: &str, queue: QueueId, settles: bool, credit: Credit) -> ReaderId {
        self.outbound.add_reader(ReaderSpec {
            session: SessionId(0),
            label: label.as_bytes().into(),
            source: Source::Queue(queue),
            settles,
            credit,
        })
    }

    fn subscribe(&mut self, label: &str) -> ReaderId {
        let key = BindingKey::new(Syntax::Amqp, b"a");
        let subscription = Subscription { exchange: Name::from("amq.topic"), key, group: None };
        self.outbound.add_reader(ReaderSpec {
            session: SessionId(0),
            label: label.as_bytes().into(),
            source: Source::Live(Box::new(subscription)),
            settles: false,
            credit: Credit::Unlimited,
        })
    }

    fn offer(&mut self, reader: ReaderId, sequence: u64, body: &str) -> Taken {
        let publication = Publication::new(&self.head, b"", body.as_bytes());
        let address = AddressView::new(&self.address);
        let delivery = delivery(&publication, &address);
        self.outbound.offer(reader, Place { queue: QUEUE, sequence }, &delivery)
    }

    fn send(&mut self, reader: ReaderId, body: &str) -> Live {
        self.send_with(reader, body, &mut SharedHeaders::for_receivers(1))
    }

    fn send_with(&mut self, reader: ReaderId, body: &str, shared: &mut SharedHeaders) -> Live {
        let publication = Publication::new(&self.head, b"", body.as_bytes());
        let about = About { address: &AddressView::new(&self.address), deaths: None };
        self.outbound.send(reader, slice::from_ref(&publication), about, shared)
    }

    fn send_run(&mut self, reader: ReaderId, bodies: &[&'static str], shared: &mut SharedHeaders) -> Live {
        let publication = |body: &&'static str| Publication::new(&self.head, b"", body.as_bytes());
        let run: Vec<Publication<'_>> = bodies.iter().map(publication).collect();
        let about = About { address: &AddressView::new(&self.address), deaths: None };
        self.outbound.send(reader, &run, about, shared)
    }

    fn reply(&mut self, to: &InboxAddress, body: &str) -> Reply {
        self.outbound.reply(to, &Publication::new(&self.head, b"", body.as_bytes()))
    }

    fn answer(&mut self, confirm: Confirm, text: &str) {
        self.outbound.answer(confirm, |out| out.extend_from_slice(text.as_bytes()));
    }

    fn settle(&mut self, numbers: Numbers) -> (Vec<u64>, Vec<ReaderId>) {
        let (settled, wakes) = self.outbound.settle(SessionId(0), numbers);
        let numbers = settled.into_iter().map(|unsettled| unsettled.number).collect();
        (numbers, wakes.into_iter().map(|wake| wake.reader).collect())
    }

    /// What the writer finds, all of which it writes.
    fn written(&mut self) -> String {
        let mut text = Vec::new();
        while let Some((bytes, written)) = self.outbound.take_unsent() {
            text.extend_from_slice(&bytes[written..]);
            let len = bytes.len();
            self.outbound.put_back(bytes, len);
        }
        String::from_utf8(text).unwrap()
    }

    fn wakes(&mut self) -> Vec<ReaderId> {
        self.outbound.written().0.into_iter().map(|wake| wake.reader).collect()
    }
}

fn delivery<'a>(publication: &'a Publication<'_>, address: &'a AddressView<'a>) -> Delivery<'a> {
    Delivery { message: publication.view(), address, deaths: None, failures: 0, is_redelivered: false }
}

/// A body of which one fills the room for feeding.
fn long(letter: &str) -> String {
    letter.repeat(FEED_BYTES)
}

fn synced(lsn: u64) -> Progress {
    Progress { written: Lsn(lsn), synced: Lsn(lsn) }
}

#[test]
fn a_consumer_gets_what_its_credit_allows() {
    use Taken::{Full, Settled, Unsettled};
    for (settles, credit, taken) in [
        (true, Credit::window(2), [Unsettled, Unsettled, Full]),
        (true, Credit::Granted { left: 1 }, [Unsettled, Full, Full]),
        (true, Credit::Unlimited, [Unsettled, Unsettled, Unsettled]),
        (false, Credit::Unlimited, [Settled, Settled, Settled]),
        (false, Credit::Granted { left: 2 }, [Settled, Settled, Full]),
        (true, Credit::window(0), [Full, Full, Full]),
    ] {
        let mut stage = Stage::new();
        let reader = stage.consume("a", QUEUE, settles, credit);
        let offered = [1, 2, 3].map(|sequence| stage.offer(reader, sequence, "m"));
        assert_eq!(offered, taken, "{settles} {credit:?}");
    }
}

#[test]
fn settling_wakes_a_consumer_once_and_only_if_it_was_refused() {
    let mut stage = Stage::new();
    let reader = stage.consume("a", QUEUE, true, Credit::window(2));
    assert_eq!(stage.offer(reader, 1, "m"), Taken::Unsettled);
    assert_eq!(stage.settle(Numbers::One(1)), (vec![1], vec![]), "it was never refused");
    for sequence in 2..4 {
        stage.offer(reader, sequence, "m");
    }
    assert_eq!(stage.offer(reader, 4, "m"), Taken::Full);
    assert_eq!(stage.settle(Numbers::UpTo(3)), (vec![2, 3], vec![reader]));
    assert_eq!(stage.settle(Numbers::UpTo(3)), (vec![], vec![]));
    assert_eq!(stage.offer(reader, 4, "m"), Taken::Unsettled);
}

#[test]
fn a_grant_wakes_and_settling_does_not_give_it_back() {
    let mut stage = Stage::new();
    let reader = stage.consume("a", QUEUE, true, Credit::Granted { left: 1 });
    stage.offer(reader, 1, "m");
    assert_eq!(stage.offer(reader, 2, "m"), Taken::Full);
    assert_eq!(stage.settle(Numbers::One(1)), (vec![1], vec![]));
    assert_eq!(stage.outbound.set_credit(reader, Credit::Granted { left: 0 }), None);
    let wake = stage.outbound.set_credit(reader, Credit::Granted { left: u32::MAX });
    assert_eq!(wake, Some(Wake { queue: QUEUE, reader }));
    let gone = ReaderId { slot: 9, generation: 0 };
    assert_eq!(stage.outbound.set_credit(gone, Credit::Unlimited), None);
}

#[test]
fn a_consumer_without_room_is_woken_when_half_is_written() {
    let mut stage = Stage::new();
    let reader = stage.consume("a", QUEUE, true, Credit::window(3));
    assert_eq!(stage.offer(reader, 1, &long("x")), Taken::Unsettled);
    assert_eq!(stage.offer(reader, 2, "m"), Taken::Full);
    let (bytes, _) = stage.outbound.take_unsent().unwrap();
    let len = bytes.len();
    assert_eq!(stage.outbound.take_unsent(), None, "there is one writer");
    stage.outbound.put_back(bytes, len - FEED_BYTES / 2 - 1);
    assert_eq!(stage.wakes(), []);
    let (bytes, _) = stage.outbound.take_unsent().unwrap();
    stage.outbound.put_back(bytes, len - FEED_BYTES / 2);
    assert_eq!(stage.wakes(), [reader]);
    assert_eq!(stage.wakes(), [], "it was told");
}

#[test]
fn credit_that_comes_back_without_room_wakes_when_there_is_room() {
    let mut stage = Stage::new();
    let reader = stage.consume("a", QUEUE, true, Credit::window(1));
    stage.offer(reader, 1, &long("x"));
    assert_eq!(stage.offer(reader, 2, "m"), Taken::Full);
    assert_eq!(stage.settle(Numbers::One(1)), (vec![1], vec![]), "there is no room");
    stage.written();
    assert_eq!(stage.wakes(), [reader]);
}

#[test]
fn room_that_comes_back_without_credit_wakes_when_there_is_credit() {
    let mut stage = Stage::new();
    let reader = stage.consume("a", QUEUE, true, Credit::window(1));
    stage.offer(reader, 1, &long("x"));
    assert_eq!(stage.offer(reader, 2, "m"), Taken::Full);
    stage.written();
    assert_eq!(stage.wakes(), []);
    assert_eq!(stage.settle(Numbers::One(1)), (vec![1], vec![reader]));
}

#[test]
fn consumers_of_one_connection_are_first_by_turns() {
    let mut stage = Stage::new();
    let readers = ["a", "b", "c"].map(|label| stage.consume(label, QUEUE, false, Credit::Unlimited));
    stage.offer(readers[0], 1, &long("x"));
    let mut first = BTreeSet::new();
    for sequence in 2..5 {
        // All are refused; when there is room again, the one told first takes it all.
        for reader in readers {
            assert_eq!(stage.offer(reader, sequence, "m"), Taken::Full);
        }
        stage.written();
        let wakes = stage.wakes();
        assert_eq!(wakes.iter().collect::<BTreeSet<_>>(), readers.iter().collect());
        first.insert(wakes[0]);
        assert_eq!(stage.offer(wakes[0], sequence, &long("x")), Taken::Settled);
    }
    assert_eq!(first.len(), 3, "each was first once");
}

#[test]
fn what_is_not_there_takes_nothing() {
    let mut stage = Stage::new();
    let reader = stage.consume("a", QUEUE, true, Credit::window(1));
    assert_eq!(stage.outbound.source(reader), Some(&Source::Queue(QUEUE)));
    assert_eq!(stage.outbound.remove_reader(reader), Some(Source::Queue(QUEUE)));
    assert_eq!(stage.outbound.remove_reader(reader), None);
    let again = stage.consume("b", QUEUE, true, Credit::window(1));
    assert_eq!((again.slot, again.generation), (reader.slot, reader.generation + 1));
    assert_eq!(stage.offer(reader, 1, "m"), Taken::Gone, "its slot is another's now");
    assert_eq!(stage.send(reader, "m"), Live::Gone);
    assert_eq!(stage.outbound.readers_len(), 1);
    assert_eq!(stage.settle(Numbers::One(1)), (vec![], vec![]));
    let (unsettled, wakes) = stage.outbound.settle(SessionId(9), Numbers::UpTo(u64::MAX));
    assert_eq!((unsettled, wakes), (vec![], vec![]));
    assert_eq!(stage.outbound.meant(SessionId(9), Numbers::One(0)), []);
}

#[test]
fn unsettled_deliveries_outlive_their_reader() {
    let mut stage = Stage::new();
    let reader = stage.consume("a", QUEUE, true, Credit::window(1));
    stage.offer(reader, 1, "m");
    stage.outbound.remove_reader(reader);
    assert_eq!(stage.outbound.unsettled_len(), 1);
    assert_eq!(
        stage.outbound.find_unsettled(SessionId(0), 1).map(|unsettled| unsettled.reader),
        Some(reader)
    );
    assert_eq!(stage.settle(Numbers::One(1)), (vec![1], vec![]));
}

#[test]
fn deliveries_of_all_kinds_are_numbered_by_their_session() {
    let mut stage = Stage::new();
    let consumer = stage.consume("c", QUEUE, true, Credit::window(9));
    let live = stage.subscribe("l");
    let inbox = stage.outbound.inbox(b"i", || (b"i".as_slice().into(), [1; 16])).unwrap();
    stage.offer(consumer, 1, "1");
    assert_eq!(stage.send(live, "2"), Live::Taken);
    assert_eq!(stage.reply(&inbox, "3"), Reply::Taken);
    stage.offer(consumer, 2, "4");
    assert_eq!(stage.written(), "c#1?:1;l#2:2;i#3:3;c#4?:4;");
    let (unsettled, _) = stage.outbound.settle(SessionId(0), Numbers::UpTo(4));
    let places: Vec<u64> = unsettled.iter().map(|unsettled| unsettled.place.sequence).collect();
    assert_eq!(places, [1, 2]);
}

#[test]
fn answers_that_wait_for_the_journal_leave_in_order() {
    let pending = |position| Confirm::of(Level::Disk, Lsn(position));
    let mut stage = Stage::new();
    stage.answer(Confirm::NOW, "a;");
    stage.answer(pending(2), "b;");
    stage.answer(Confirm::NOW, "c;");
    stage.answer(pending(1), "d;");
    stage.answer(pending(5), "e;");
    assert_eq!(stage.written(), "a;");
    for (position, expected, held) in [(1, "", true), (2, "b;c;d;", true), (4, "", true), (9, "e;", false)] {
        assert_eq!(stage.outbound.confirmed(synced(position)).0, []);
        assert_eq!(stage.written(), expected, "{position}");
        assert_eq!(stage.outbound.has_held_answers(), held);
    }
    stage.answer(pending(9), "f;");
    assert_eq!(stage.written(), "f;", "it is durable already");
    assert_eq!(stage.outbound.confirmed(synced(3)).0, []);
    stage.answer(pending(9), "g;");
    assert_eq!(stage.written(), "g;", "the journal does not go back");
}

#[test]
fn a_reader_gets_nothing_before_the_answer_that_it_waits_for() {
    let mut stage = Stage::new();
    stage.answer(Confirm::of(Level::Disk, Lsn(3)), "receipt;");
    let reader = stage.consume("c", QUEUE, true, Credit::Unlimited);
    stage.outbound.start_after_answers(reader);
    stage.answer(Confirm::of(Level::Disk, Lsn(9)), "later;");
    assert_eq!(stage.offer(reader, 1, "x"), Taken::Full);
    assert_eq!(stage.outbound.confirmed(synced(2)).0, []);
    assert_eq!(stage.offer(reader, 1, "x"), Taken::Full);
    assert_eq!(stage.outbound.confirmed(synced(3)).0, [Wake { queue: QUEUE, reader }]);
    assert_eq!(stage.offer(reader, 1, "x"), Taken::Unsettled);
    assert_eq!(stage.written(), "receipt;c#1?:x;");
    let at_once = stage.consume("d", QUEUE, false, Credit::Unlimited);
    assert_eq!(stage.outbound.confirmed(synced(9)).0, []);
    stage.outbound.start_after_answers(at_once);
    assert_eq!(stage.offer(at_once, 2, "y"), Taken::Settled, "no answer waits");
}

#[test]
fn a_backlog_waits_as_messages_and_keeps_its_order() {
    let mut stage = Stage::new();
    let reader = stage.subscribe("l");
    let consumer = stage.consume("c", QUEUE, false, Credit::Unlimited);
    let big = "b".repeat(WAITING_BODY_MIN);
    assert_eq!(stage.send(reader, "1"), Live::Taken);
    assert_eq!(stage.send(reader, &long("2")), Live::Pressed);
    assert_eq!(stage.send(reader, "3"), Live::Pressed);
    assert_eq!(stage.headers.load(Ordering::Relaxed), 3, "small ones wait as bytes");
    assert_eq!(stage.send(reader, &big), Live::Pressed);
    assert_eq!(stage.send(reader, "5"), Live::Pressed);
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
fn a_backlog_does_not_follow_a_good_bye() {
    let mut stage = Stage::new();
    let reader = stage.subscribe("s");
    for letter in ["a", "b", "c"] {
        stage.send(reader, &long(letter));
    }
    stage.answer(Confirm::NOW, "last;");
    stage.outbound.finish();
    let written = stage.written();
    assert!(written.ends_with("last;"), "{written}");
    assert_eq!(stage.gauge.bytes(), stage.outbound.unsent());
}

#[test]
fn the_last_answer_of_a_good_bye_is_the_last_even_if_it_is_one_too_many() {
    let mut stage = Stage::new();
    stage.answer(Confirm::NOW, &"a".repeat(UNSENT_BYTES_MAX - 1));
    stage.outbound.finish();
    stage.answer(Confirm::NOW, "last;");
    let written = stage.written();
    assert!(written.ends_with("alast;"), "{written}");
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
    let inbox = stage.outbound.inbox(b"i", || (b"i".as_slice().into(), [1; 16])).unwrap();
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
    // What waited as messages was not turned into bytes for somebody who does not read.
    assert_eq!(stage.headers.load(Ordering::Relaxed), 1);
    drop(stage.outbound);
    assert_eq!(stage.gauge.bytes(), 0);
}

#[test]
fn a_reply_to_an_owner_who_is_behind_cuts_the_owner() {
    let mut stage = Stage::new();
    let inbox = stage.outbound.inbox(b"i", || (b"i".as_slice().into(), [1; 16])).unwrap();
    let replies: Vec<Reply> = (0..1000).map(|_| stage.reply(&inbox, &long("r"))).collect();
    let taken = replies.iter().take_while(|reply| **reply == Reply::Taken).count();
    assert!(taken >= UNSENT_BYTES_MAX / 200);
    assert_eq!(replies.get(taken), Some(&Reply::Cut));
    assert!(replies[taken + 1..].iter().all(|reply| *reply == Reply::Gone));
}

#[test]
fn answers_that_nobody_reads_end_the_connection() {
    let mut stage = Stage::new();
    for _ in 0..UNSENT_BYTES_MAX / FEED_BYTES {
        assert_eq!(stage.outbound.ended(), None);
        stage.answer(Confirm::NOW, &long("r"));
    }
    assert!(stage.outbound.ended().is_some());
    assert!(stage.written().ends_with("rtoo slow;"));
}

#[test]
fn a_promise_is_counted_when_it_leaves() {
    let mut stage = Stage::new();
    let mut promise = |level, position| {
        let confirm = Confirm::of(level, Lsn(position));
        stage.outbound.promise(confirm, level, |out| out.push(b'p'))
    };
    assert!(promise(Level::Memory, 0), "it leaves at once");
    for (level, position) in [(Level::Disk, 2), (Level::Memory, 0), (Level::Os, 1), (Level::Disk, 9)] {
        assert!(!promise(level, position), "what stands behind one that waits waits too");
    }
    stage.answer(Confirm::NOW, "a;");
    for (position, expected) in [
        (1, vec![]),
        (2, vec![(Level::Memory, 1), (Level::Os, 1), (Level::Disk, 1)]),
        (9, vec![(Level::Disk, 1)]),
        (9, vec![]),
    ] {
        let (_, given) = stage.outbound.confirmed(synced(position));
        assert_eq!(given.by_level().collect::<Vec<_>>(), expected, "at {position}");
    }
}

#[test]
fn held_answers_are_dropped_with_the_connection_and_kept_by_a_good_bye() {
    let mut stage = Stage::new();
    stage.answer(Confirm::of(Level::Disk, Lsn(1)), "a;");
    stage.outbound.finish();
    let reader = stage.subscribe("l");
    assert_eq!(stage.send(reader, "m"), Live::Gone);
    assert_eq!(stage.outbound.confirmed(synced(1)).0, []);
    assert_eq!(stage.written(), "a;");

    let mut stage = Stage::new();
    stage.answer(Confirm::of(Level::Disk, Lsn(1)), "a;");
    stage.outbound.cut(CutReason::ShuttingDown);
    stage.outbound.cut(CutReason::Fault);
    assert_eq!(stage.outbound.confirmed(synced(1)).0, []);
    assert_eq!(stage.written(), "cut;", "nothing follows the last word");
    assert!(!stage.outbound.has_held_answers());
}

#[test]
fn a_reader_whose_queue_is_deleted_is_told() {
    for (after_cancel, is_ended) in [(AfterCancel::GoOn, false), (AfterCancel::End, true)] {
        let mut stage = Stage::of_kind(1, after_cancel);
        let (reader, live) = (stage.consume("a", QUEUE, true, Credit::window(9)), stage.subscribe("l"));
        stage.send(live, &long("x"));
        stage.send(live, &"b".repeat(WAITING_BODY_MIN));
        stage.outbound.cancel_reader(reader, &Name::from("q"));
        stage.outbound.cancel_reader(reader, &Name::from("q"));
        assert_eq!(stage.outbound.is_ended(), is_ended);
        let text = stage.written();
        assert_eq!(text.matches("cancelled a q;").count(), 1);
        assert_eq!(text.ends_with("cancelled a q;"), is_ended, "{text}");
    }
}

#[test]
fn an_inbox_opens_to_its_secret_alone() {
    let mut stage = Stage::new();
    let address = stage.outbound.inbox(b"a", || (b"A".as_slice().into(), [1; 16])).unwrap();
    let same = stage.outbound.inbox(b"a", || unreachable!("it is known")).unwrap();
    assert_eq!(address, same);
    let other = stage.outbound.inbox(b"b", || (b"B".as_slice().into(), [2; 16])).unwrap();
    assert_eq!(stage.outbound.inbox(b"c", || (b"C".as_slice().into(), [3; 16])), None, "LIM: two");
    // SECURITY AUTH-06: one wrong bit, another's secret, another index.
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
    stage.outbound.close(9);
    assert_eq!(stage.reply(&address, "m"), Reply::Gone);
    assert!(!stage.outbound.has_inbox(&address));
}

#[test]
fn a_publisher_who_presses_is_let_go_on() {
    let (one, two) = (ConnectionId { slot: 1, ..ME }, ConnectionId { slot: 2, ..ME });
    let mut stage = Stage::new();
    let reader = stage.subscribe("l");
    assert!(!stage.outbound.press(one), "there is room");
    assert_eq!(stage.send(reader, &long("x")), Live::Pressed);
    assert!(stage.outbound.press(one) && stage.outbound.press(two) && stage.outbound.press(one));
    assert_eq!(stage.outbound.written().1, []);
    stage.written();
    assert_eq!(stage.outbound.written().1, [one, two]);
    assert_eq!(stage.outbound.written().1, []);

    stage.send(reader, &long("x"));
    assert!(stage.outbound.press(two));
    assert_eq!(stage.outbound.close(9).pressing, [two], "also when it is gone");
    assert!(!stage.outbound.press(one));
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
        assert!((until..until + 64).contains(&unsent), "{subject} presses at {unsent}, not {until}");
    }
}

#[test]
fn closing_gives_all_that_is_left_once() {
    let mut stage = Stage::new();
    let reader = stage.consume("a", QUEUE, true, Credit::window(9));
    let live = stage.subscribe("l");
    for sequence in 1..4 {
        stage.offer(reader, sequence, "m");
    }
    stage.settle(Numbers::One(2));
    let (bytes, _) = stage.outbound.take_unsent().unwrap();
    let mut readers: Vec<ReaderId> = Vec::new();
    for is_all in [false, true] {
        let remains = stage.outbound.close(1);
        readers.extend(remains.readers.iter().map(|(id, _)| *id));
        let numbers: Vec<u64> = remains.unsettled.iter().map(|unsettled| unsettled.number).collect();
        // Not before the last reader is gone, or what is released would be offered to it.
        assert_eq!((remains.is_all, numbers), if is_all { (true, vec![1, 3]) } else { (false, vec![]) });
    }
    assert_eq!(readers, [live, reader]);
    assert_eq!(stage.offer(reader, 9, "m"), Taken::Gone);
    stage.answer(Confirm::NOW, "answer");
    // The writer that was under way finds nothing to go on with.
    assert_eq!(stage.outbound.put_back(bytes, 1), Some(Vec::new()));
    assert_eq!(stage.outbound.take_unsent(), None);
    assert!(!stage.outbound.has_unsent());
    let again = stage.outbound.close(9);
    assert!(again.unsettled.is_empty() && again.readers.is_empty());
    assert_eq!(stage.gauge.bytes(), 0);
}

#[test]
fn what_waits_for_a_slow_reader_is_charged_while_it_waits() {
    let mut stage = Stage::new();
    stage.outbound.limits =
        OutboundLimits { feed_bytes: 100_000, unsent_bytes_max: 10_000_000, inboxes_max: 0 };
    let reader = stage.subscribe("l");
    // Nobody calls: the socket is full and nothing is written.
    for body in ["s".repeat(WAITING_BODY_MIN - 1), "b".repeat(WAITING_BODY_MIN)] {
        for _ in 0..2000 {
            stage.send(reader, &body);
        }
        let (charged, unsent) = (stage.gauge.bytes(), stage.outbound.unsent());
        assert!(charged * 10 > unsent * 8, "{charged} of {unsent} unsent bytes are charged");
        assert!(charged <= unsent, "{charged} of {unsent} unsent bytes are charged");
    }
    stage.written();
    stage.outbound.written();
    assert_eq!(stage.gauge.bytes(), 0);
}

#[test]
fn unsettled_deliveries_are_charged_until_they_are_settled() {
    let mut stage = Stage::new();
    let reader = stage.consume("a", QUEUE, true, Credit::Unlimited);
    for count in [UNCHARGED_UNSETTLED_MAX, 1000, 100_000] {
        for sequence in 0..count {
            assert_eq!(stage.offer(reader, sequence as u64, "m"), Taken::Unsettled);
            stage.written();
        }
        stage.outbound.written();
        let expected = (count - UNCHARGED_UNSETTLED_MAX) * Session::UNSETTLED_BYTES;
        assert_eq!(stage.gauge.bytes(), expected);
        assert_eq!(stage.outbound.unsettled_len(), count);
        let last = stage.outbound.sessions[0].next_number() - 1;
        assert_eq!(stage.settle(Numbers::UpTo(last)).0.len(), count);
        assert_eq!(stage.gauge.bytes(), 0, "though nothing is written");
    }
}

#[test]
fn storage_that_is_lent_comes_back() {
    let mut stage = Stage::new();
    let (storage, other) = (Vec::with_capacity(1000), Vec::with_capacity(10));
    assert!(stage.outbound.lend(|| Some(storage)));
    assert!(!stage.outbound.lend(|| Some(other)), "it has some");
    assert_eq!(stage.outbound.reclaim().map(|storage| storage.capacity()), Some(1000));
    assert_eq!(stage.outbound.reclaim(), None);
    assert!(!stage.outbound.lend(|| None));
    assert!(stage.outbound.lend(|| Some(Vec::with_capacity(1000))));
    stage.answer(Confirm::NOW, "a");
    assert_eq!(stage.outbound.reclaim(), None, "it is in use");
    let (bytes, written) = stage.outbound.take_unsent().unwrap();
    assert_eq!((&bytes[..], written), (&b"a"[..], 0));
    let spare = stage.outbound.put_back(bytes, 1).unwrap();
    assert_eq!((spare.len(), spare.capacity()), (0, 1000));
}

#[test]
fn it_is_on_one_list_of_those_to_write() {
    let mut stage = Stage::new();
    assert!(stage.outbound.touch());
    assert!(!stage.outbound.touch());
    stage.outbound.untouch();
    assert!(stage.outbound.touch());
}

#[test]
fn what_a_connection_was_sent_is_known_until_it_is_forgotten() {
    let mut stage = Stage::new();
    let (queue, gone) = (stage.consume("q", QUEUE, true, Credit::Unlimited), stage.subscribe("gone"));
    let live = stage.subscribe("live");
    stage.outbound.remove_reader(gone);
    let slots =
        |stage: &Stage, from| stage.outbound.readers_from(from).map(|(slot, _)| slot).collect::<Vec<_>>();
    assert_eq!((slots(&stage, 0), slots(&stage, 1), slots(&stage, 3)), (vec![0, 2], vec![2], vec![]));
    stage.offer(queue, 1, "one");
    stage.send(live, "two");
    let appended = stage.outbound.appended();
    assert_eq!((stage.outbound.delivered(), appended), (2, "q#1?:one;live#2:two;".len() as u64));
    stage.outbound.close(usize::MAX);
    assert_eq!((stage.outbound.delivered(), stage.outbound.appended()), (2, appended));
    assert_eq!(stage.outbound.unsent(), 0);
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
    stage.outbound.limits = OutboundLimits { feed_bytes: 20, unsent_bytes_max: 30, inboxes_max: 0 };
    let mut shared = SharedHeaders::for_repetition(1);
    assert_eq!(stage.send_run(reader, &["1111", "2222", "3333", "4444"], &mut shared), Live::Pressed);
    assert_eq!(stage.send_run(reader, &["5555", "6666"], &mut shared), Live::Cut);
    assert_eq!(stage.send_run(reader, &["7777", "8888"], &mut shared), Live::Gone);
    assert!(stage.written().ends_with(";too slow;"));
}
