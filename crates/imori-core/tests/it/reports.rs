//! Each message of a batch or a transaction has its own result.

use std::num::NonZeroU32;
use std::time::Duration;

use imori_core::broker::{self, PublishReport, Repetition, Step};
use imori_core::confirm::{Confirm, Level, Lsn, Progress};
use imori_core::delivery::Outcome;
use imori_core::message::{Address, Message, MessageView, Publication};
use imori_core::outbound::{Numbers, SessionId};
use imori_core::queue::{Overflow, QueueSettings};
use imori_core::world::{Counter, World};

use crate::durable::durable;
use imori_testkit::{Caller, TestMessage, TestWorld};

/// Publishes a run of messages `1`, `2` and so on; returns the result of each.
fn each(
    client: &Caller<'_>,
    exchange: &str,
    subject: &str,
    outgoing: &TestMessage<'_>,
    len: usize,
) -> Vec<PublishReport> {
    let properties = outgoing.properties();
    let bodies: Vec<String> = (1..=len).map(|number| number.to_string()).collect();
    let run: Vec<Publication<'_>> = bodies
        .iter()
        .map(|body| Publication::new(&properties, outgoing.id.as_bytes(), body.as_bytes()))
        .collect();
    let address = Address::new(exchange.as_bytes(), subject.as_bytes());
    let mut repetition = Repetition::default();
    broker::publish_each(client.world, &client.actor(), &address, &run, &mut repetition)
        .expect("the exchange is there")
}

fn receivers(reports: &[PublishReport]) -> Vec<usize> {
    reports.iter().map(|report| report.receivers).collect()
}

fn step(client: &Caller<'_>, exchange: &str, subject: &str, outgoing: &TestMessage<'_>) -> Step {
    let properties = outgoing.properties();
    let view =
        MessageView { properties: &properties, text: outgoing.id.as_bytes(), body: outgoing.body.as_bytes() };
    let message = Message::store(&view, None, client.world.gauge());
    Step::Publish {
        address: Address::new(exchange.as_bytes(), subject.as_bytes()),
        copies: Vec::new(),
        message,
    }
}

const TRANSIENT: TestMessage<'static> =
    TestMessage { body: "m", id: "", delay_ms: 0, expiration_ms: None, priority: None, is_transient: true };

#[test]
fn a_queue_refuses_single_messages_of_a_batch() {
    for queues in [&["full"][..], &["full", "other"]] {
        let world = TestWorld::new();
        let client = world.connect(1);
        for name in queues {
            let length_max = (*name == "full").then_some(2);
            let overflow = Overflow::RejectPublish;
            let settings = QueueSettings { length_max, overflow, ..QueueSettings::default() };
            let queue = client.declare_with(name, &settings).unwrap();
            client.bind("amq.fanout", "", queue).unwrap();
        }
        let reports = each(&client, "amq.fanout", "", &TRANSIENT, 3);
        let others = queues.len() - 1;
        assert_eq!(receivers(&reports), [1 + others, 1 + others, others]);
        let refused: Vec<_> = reports.iter().map(|report| report.refused_by.clone()).collect();
        assert_eq!(refused, [None, None, Some("full".into())]);
        assert_eq!(world.counted(Counter::Unroutable), 0, "a queue that refuses is somebody");
    }
}

#[test]
fn what_nobody_got_of_a_batch_is_known_and_counted() {
    let world = TestWorld::new();
    let (client, reader) = (world.connect(1), world.connect(2));
    let heard = reader.subscribe("t", "s");
    let max = NonZeroU32::new(2).expect("it is not zero");
    assert!(broker::limit_deliveries(&world, &reader.actor(), heard, max));
    assert_eq!(receivers(&each(&client, "amq.topic", "t", &TRANSIENT, 3)), [1, 1, 0]);
    assert_eq!(world.counted(Counter::Unroutable), 1);
    reader.join("g", "u", "a");
    reader.subscribe("u", "b");
    assert_eq!(receivers(&each(&client, "amq.topic", "u", &TRANSIENT, 2)), [2, 2]);
    assert_eq!(world.counted(Counter::Unroutable), 1);
}

#[test]
fn an_inbox_that_is_gone_has_none_of_a_batch() {
    let world = TestWorld::new();
    let (client, reader) = (world.connect(1), world.connect(2));
    let inbox = reader.inbox("i");
    assert_eq!(receivers(&each(&client, "", &inbox, &TRANSIENT, 2)), [1, 1]);
    reader.disconnect();
    assert_eq!(receivers(&each(&client, "", &inbox, &TRANSIENT, 2)), [0, 0]);
    assert_eq!((world.counted(Counter::ReplyDropped), world.counted(Counter::Published)), (2, 4));
}

#[test]
fn each_message_of_a_batch_is_confirmed_with_its_own_record() {
    let world = TestWorld::new();
    let client = world.connect(1);
    client.declare_with("q", &durable()).unwrap();
    let confirms =
        |reports: &[PublishReport]| -> Vec<Confirm> { reports.iter().map(|report| report.confirm).collect() };
    let of = |lsn| Confirm::of(Level::Disk, Lsn(lsn));
    assert_eq!(confirms(&each(&client, "", "q", &TestMessage::default(), 3)), [of(2), of(3), of(4)]);
    let window = QueueSettings { dedup_window: Some(Duration::from_secs(1)), ..durable() };
    client.declare_with("once", &window).unwrap();
    // They have the same id: the first is accepted, and the others are confirmed with it.
    let reports = each(&client, "", "once", &TestMessage { id: "a", ..TestMessage::default() }, 3);
    assert_eq!((confirms(&reports), receivers(&reports)), (vec![of(6); 3], vec![1; 3]));
    assert_eq!(world.depth("once"), Some((1, 0)));
}

#[test]
fn a_transaction_tells_which_of_its_messages_nobody_got() {
    let world = TestWorld::new();
    let client = world.connect(1);
    client.declare_with("q", &durable()).unwrap();
    client.declare("transient");
    for name in ["q", "transient"] {
        client.bind("amq.fanout", "", world.queue(name).expect("it is there")).unwrap();
    }
    client.consume("q", "c", 1);
    client.outgoing("", "q", &TestMessage { body: "first", ..TestMessage::default() });
    let kept = TestMessage { body: "m", ..TestMessage::default() };
    let steps = [
        step(&client, "", "nobody", &kept),
        Step::Settle {
            session: SessionId(0),
            numbers: Numbers::One(1),
            outcome: Outcome::Accept,
            annotations: None,
        },
        step(&client, "", "q", &kept),
        step(&client, "amq.topic", "t", &TRANSIENT),
        step(&client, "amq.fanout", "", &kept),
        step(&client, "", "q", &TRANSIENT),
    ];
    let report = broker::commit(&world, &client.actor(), &steps).unwrap();
    assert_eq!((receivers(&report.messages), report.receivers), (vec![0, 1, 0, 2, 1], 4));
    let levels: Vec<Level> = report.messages.iter().map(|message| message.confirm.level()).collect();
    assert_eq!(levels, [Level::Memory, Level::Disk, Level::Memory, Level::Memory, Level::Memory]);
    // Messages with a record wait for the whole transaction.
    let before = Progress { written: world.appended(), synced: Lsn(world.appended().0 - 1) };
    assert!(!report.confirm.is_reached(before));
    let waits: Vec<bool> =
        report.messages.iter().map(|message| !message.confirm.is_reached(before)).collect();
    assert_eq!(waits, [false, true, false, true, false]);
    assert_eq!(world.counted(Counter::Unroutable), 2);
}
