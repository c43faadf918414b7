use std::time::Duration;

use imori_core::broker::{self, Actor, Repetition, Step, renew_seen};
use imori_core::confirm::{Confirm, Level, Lsn};
use imori_core::delivery::Outcome;
use imori_core::error::BrokerError;
use imori_core::message::{Address, Message, MessageView, Publication};
use imori_core::outbound::Numbers;
use imori_core::paging::PageWork;
use imori_core::queue::{Overflow, QueueSettings};
use imori_core::record::{MessageRecord, RecordKind};
use imori_core::world::World;
use imori_testkit::{Caller, TestMessage, TestWorld, dying_to};

use crate::restored::{Journal, ready, restored};

const MS: Duration = Duration::from_millis(1);

fn once(window_ms: u32) -> QueueSettings {
    let dedup_window = Some(window_ms * MS);
    QueueSettings { is_durable: true, dedup_window, ..QueueSettings::default() }
}

fn outgoing(id: &str) -> TestMessage<'_> {
    TestMessage { body: "m", id, ..TestMessage::default() }
}

fn step(client: &Caller<'_>, exchange: &str, subject: &str, id: &str) -> Step {
    let properties = outgoing(id).properties();
    let view = MessageView { properties: &properties, text: id.as_bytes(), body: b"m" };
    let message = Message::store(&view, None, client.world.gauge());
    Step::Publish {
        address: Address::new(exchange.as_bytes(), subject.as_bytes()),
        copies: Vec::new(),
        message,
    }
}

fn commit(client: &Caller<'_>, steps: &[Step]) -> Result<(usize, Confirm), BrokerError> {
    let report = broker::commit(client.world, &client.actor(), steps)?;
    Ok((report.receivers, report.confirm))
}

fn journal(world: &TestWorld) -> Journal {
    world.journal.borrow().clone()
}

/// Number of queues in each message record.
fn listed(journal: &Journal) -> Vec<usize> {
    let messages = journal.iter().filter(|(_, record, _)| record.kind == RecordKind::Message);
    messages
        .map(|(_, record, _)| MessageRecord::decode(&record.payload).expect("the core wrote it").queues.len())
        .collect()
}

#[test]
fn a_message_looks_at_each_queue_once_before_it_is_given_to_them() {
    for (id, is_transient) in [("", true), ("a", true), ("", false), ("a", false)] {
        let world = TestWorld::new();
        let client = world.connect(1);
        for name in ["q", "r"] {
            let settings = QueueSettings { is_durable: true, ..QueueSettings::default() };
            let queue = client.declare_with(name, &settings).unwrap();
            client.bind("amq.fanout", "", queue).unwrap();
        }
        let before = world.queue_locks.get();
        assert_eq!(
            client.outgoing("amq.fanout", "k", &TestMessage { is_transient, ..outgoing(id) }).receivers,
            2
        );
        let locks = world.queue_locks.get() - before;
        assert_eq!(locks, 2 + 2, "id `{id}`, transient: {is_transient}");
        // A remembered route has its durability plan, so no queue is locked to make one.
        client.outgoing("amq.fanout", "k", &TestMessage { is_transient, ..outgoing(id) });
        let before = world.queue_locks.get();
        client.outgoing("amq.fanout", "k", &TestMessage { is_transient, ..outgoing(id) });
        assert_eq!(world.queue_locks.get() - before, 2, "later, id `{id}`, transient: {is_transient}");
    }
}

#[test]
fn a_second_message_of_an_id_is_confirmed_as_the_first_and_not_enqueued() {
    let world = TestWorld::new();
    let client = world.connect(1);
    client.declare_with("q", &once(10)).unwrap();
    let first = client.outgoing("", "q", &outgoing("a"));
    let other = client.outgoing("", "q", &outgoing("b"));
    assert_eq!(first.confirm, Confirm::of(Level::Disk, Lsn(2)));
    assert_eq!(other.confirm, Confirm::of(Level::Disk, Lsn(3)));
    assert_eq!(client.outgoing("", "q", &outgoing("a")), first);
    // A message that is settled still counts.
    client.consume("q", "c", 9);
    client.settle(Numbers::UpTo(2), Outcome::Accept).unwrap();
    world.pass(9 * MS);
    assert_eq!(client.outgoing("", "q", &outgoing("a")), first);
    assert_eq!((world.depth("q"), listed(&journal(&world))), (Some((0, 0)), vec![1, 1]));
    world.pass(MS);
    client.outgoing("", "q", &outgoing("a"));
    assert_eq!(world.depth("q"), Some((0, 1)));
    for without_id in [outgoing(""), outgoing("")] {
        client.outgoing("", "q", &without_id);
    }
    assert_eq!(world.depth("q"), Some((0, 3)));
    assert_eq!(client.read_all(), "c:m;c:m;c:m;c:m;c:m;");
}

#[test]
fn what_was_kept_in_memory_alone_is_confirmed_so() {
    let world = TestWorld::new();
    let client = world.connect(1);
    client.declare_with("q", &once(10)).unwrap();
    client.outgoing("", "q", &TestMessage { is_transient: true, ..outgoing("a") });
    let again = client.outgoing("", "q", &outgoing("a"));
    assert_eq!((again.receivers, again.confirm), (1, Confirm::NOW));
    let back = restored(&journal(&world), world.now());
    back.connect(1).outgoing("", "q", &outgoing("a"));
    assert_eq!(back.depth("q"), Some((1, 0)), "it went with the broker, so it may come again");
}

#[test]
fn the_window_outlives_the_broker_whatever_became_of_the_messages() {
    let world = TestWorld::new();
    let client = world.connect(1);
    client.declare_with("q", &once(10)).unwrap();
    for id in ["waits", "accepted"] {
        client.outgoing("", "q", &outgoing(id));
    }
    client.consume("q", "c", 2);
    client.accept(2);
    world.pass(5 * MS);
    client.outgoing("", "q", &TestMessage { delay_ms: 90, ..outgoing("late") });
    broker::cancel_delayed(&world, &client.actor(), b"q", b"late").unwrap();
    let back = restored(&journal(&world), world.now().after(4 * MS));
    let client = back.connect(1);
    for id in ["waits", "accepted", "late"] {
        assert_eq!(client.outgoing("", "q", &outgoing(id)).receivers, 1, "{id}");
    }
    assert_eq!(back.depth("q"), Some((1, 0)));
    back.pass(MS);
    for (id, expected) in [("accepted", 2), ("late", 2), ("accepted", 2)] {
        client.outgoing("", "q", &outgoing(id));
        assert_eq!(back.depth("q"), Some((expected, 0)), "{id}");
    }
}

#[test]
fn only_the_queues_that_took_it_stand_in_its_record() {
    let world = TestWorld::new();
    let client = world.connect(1);
    let plain = QueueSettings { is_durable: true, ..QueueSettings::default() };
    for (name, settings) in [("once", once(10)), ("short", once(2)), ("plain", plain)] {
        let queue = client.declare_with(name, &settings).unwrap();
        client.bind("amq.fanout", "", queue).unwrap();
    }
    let depths = || ["once", "short", "plain"].map(|name| world.depth(name).unwrap().0);
    for (pass, expected, takers) in [(0, [1, 1, 1], 3), (1, [1, 1, 2], 1), (1, [1, 2, 3], 2)] {
        world.pass(pass * MS);
        let report = client.outgoing("amq.fanout", "", &outgoing("a"));
        assert_eq!((depths(), report.receivers, report.confirm.level()), (expected, 3, Level::Disk));
        assert_eq!(listed(&journal(&world)).last(), Some(&takers));
    }
    let back = restored(&journal(&world), world.now());
    for (name, expected) in [("once", 1), ("short", 2), ("plain", 3)] {
        assert_eq!(ready(&back, name).len(), expected, "{name}");
    }
}

#[test]
fn what_is_refused_may_come_again() {
    for overflow in [Overflow::RejectPublish, Overflow::RejectPublishDeadLetter] {
        let world = TestWorld::new();
        let client = world.connect(1);
        let dead_letter = dying_to("", Some("dead")).dead_letter;
        client
            .declare_with("q", &QueueSettings { length_max: Some(1), overflow, dead_letter, ..once(99) })
            .unwrap();
        client.outgoing("", "q", &outgoing("a"));
        for _ in 0..2 {
            assert_eq!(client.outgoing("", "q", &outgoing("b")).refused_by, Some("q".into()), "{overflow:?}");
            assert!(commit(&client, &[step(&client, "", "q", "c")]).is_err());
        }
        let back = restored(&journal(&world), world.now());
        let client = back.connect(1);
        client.consume("q", "c", 0);
        for id in ["a", "b", "c"] {
            client.outgoing("", "q", &outgoing(id));
        }
        assert_eq!(client.read(), "c!:m;c:m;c:m;", "one is from before");
    }
}

#[test]
fn dead_letters_are_no_repetitions() {
    let world = TestWorld::new();
    let client = world.connect(1);
    let dead_letter = dying_to("", Some("retry")).dead_letter;
    client.declare_with("q", &QueueSettings { dead_letter, ..once(1000) }).unwrap();
    let retry = QueueSettings { message_ttl: Some(5 * MS), is_durable: true, ..dying_to("", Some("q")) };
    client.declare_with("retry", &retry).unwrap();
    client.outgoing("", "q", &outgoing("a"));
    client.consume("q", "c", 1);
    for number in 1..4 {
        client.settle(Numbers::One(number), Outcome::Reject).unwrap();
        world.pass(5 * MS);
        assert_eq!(world.depth("q"), Some((0, 1)), "round {number}");
    }
}

#[test]
fn messages_that_repeat_themselves_are_one() {
    let world = TestWorld::new();
    let client = world.connect(1);
    client.declare_with("q", &once(10)).unwrap();
    let properties = outgoing("a").properties();
    let run: Vec<Publication<'_>> =
        [b"1", b"2", b"3"].map(|body| Publication::new(&properties, b"a", body)).into();
    let actor: Actor<'_> = client.actor();
    let mut repetition = Repetition::default();
    let report =
        broker::publish_again(&world, &actor, &Address::new(b"", b"q"), &run, &mut repetition).unwrap();
    assert_eq!((report.receivers, report.confirm), (3, Confirm::of(Level::Disk, Lsn(2))));
    assert_eq!(ready(&world, "q").len(), 1);
}

#[test]
fn a_transaction_takes_each_id_once_too() {
    let world = TestWorld::new();
    let client = world.connect(1);
    client.declare_with("q", &once(10)).unwrap();
    let settings = QueueSettings { length_max: Some(2), overflow: Overflow::RejectPublish, ..once(10) };
    client.declare_with("full", &settings).unwrap();
    let to = |subject, id| step(&client, "", subject, id);
    // Two records of definitions, the mark that begins the group, then the messages.
    let both = Confirm::of(Level::Disk, Lsn(6));
    assert_eq!(commit(&client, &[to("q", "a"), to("q", "b"), to("q", "a")]), Ok((3, both)));
    assert_eq!(world.depth("q"), Some((2, 0)));
    let of_b = Confirm::of(Level::Disk, Lsn(5));
    assert_eq!(commit(&client, &[to("q", "b")]), Ok((1, of_b)), "it waits for the first");
    assert_eq!(listed(&journal(&world)), [1, 1]);
    // Duplicates need no room.
    commit(&client, &[to("full", "1"), to("full", "2"), to("full", "1")]).unwrap();
    assert_eq!(commit(&client, &[to("full", "2"), to("full", "1")]).map(|(receivers, _)| receivers), Ok(2));
    assert_eq!(
        commit(&client, &[to("q", "new"), to("full", "3")]),
        Err(BrokerError::QueueFull("full".into()))
    );
    let back = restored(&journal(&world), world.now());
    for world in [&world, &back] {
        let client = world.connect(5);
        for id in ["a", "b", "new", "new"] {
            client.outgoing("", "q", &outgoing(id));
        }
        assert_eq!((world.depth("q"), world.depth("full")), (Some((3, 0)), Some((2, 0))));
    }
}

#[test]
fn the_journal_need_not_keep_the_messages_for_their_ids() {
    let world = TestWorld::new();
    let client = world.connect(1);
    let id = client.declare_with("q", &once(100)).unwrap();
    let floor = |world: &TestWorld| {
        let id = world.queue("q").unwrap();
        world.with_queue(id, |queue| queue.dedup_floor(world.now())).flatten()
    };
    assert_eq!(floor(&world), None);
    for id in ["a", "b", "c"] {
        client.outgoing("", "q", &outgoing(id));
        world.pass(MS);
    }
    client.consume("q", "c", 9);
    client.settle(Numbers::UpTo(3), Outcome::Accept).unwrap();
    assert_eq!(floor(&world), Some(Lsn(2)));
    renew_seen(&world, id, Lsn(4));
    assert_eq!(floor(&world), Some(Lsn(4)));
    let renewed = journal(&world);
    // A second renewal and a crash in between lose nothing either.
    for (journal, from) in [(renewed.clone(), 0), (renewed, 4)] {
        let kept = |(lsn, record, _): &(Lsn, imori_core::record::NewRecord, bool)| {
            record.kind == RecordKind::Definition || lsn.0 >= from
        };
        let journal: Journal = journal.into_iter().filter(kept).collect();
        let back = restored(&journal, world.now());
        let client = back.connect(1);
        for id in ["a", "b", "c"] {
            client.outgoing("", "q", &outgoing(id));
        }
        assert_eq!(back.depth("q"), Some((0, 0)), "from {from}");
        // Renewing did not make them younger.
        back.pass(97 * MS);
        for (id, expected) in [("a", 1), ("b", 1), ("c", 1)] {
            client.outgoing("", "q", &outgoing(id));
            assert_eq!(back.depth("q"), Some((expected, 0)), "{id}");
        }
        back.pass(2 * MS);
        assert_eq!(
            (floor(&back), back.charged() > 0),
            (journal.last().map(|(lsn, ..)| lsn).map(|lsn| Lsn(lsn.0 + 2)), true)
        );
    }
    world.pass(100 * MS);
    assert_eq!((floor(&world), world.charged()), (None, 0));
}

#[test]
fn a_queue_that_takes_ids_once_asks_the_disk_as_others_do() {
    let world = TestWorld::new();
    world.share.set(16 << 10);
    let client = world.connect(1);
    client.declare_with("q", &once(1000)).unwrap();
    let body = "m".repeat(1000);
    for number in 0..100 {
        client.outgoing(
            "",
            "q",
            &TestMessage { body: &body, id: &number.to_string(), ..TestMessage::default() },
        );
    }
    let work = world.work.borrow();
    assert!(work.iter().any(|work| matches!(work, (_, PageWork::Write(_)))), "{work:?}");
}
