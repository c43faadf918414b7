//! Confirms of messages to queues with different levels of safety, and the limit of one group of records.

use std::time::Duration;

use imori_core::broker::{self, Step};
use imori_core::confirm::{Confirm, Level, Lsn, Progress};
use imori_core::delivery::Outcome;
use imori_core::error::BrokerError;
use imori_core::message::{Address, Message, MessageView};
use imori_core::queue::QueueSettings;
use imori_core::record::RecordKind;
use imori_core::world::World;
use imori_testkit::{Caller, TestMessage, TestWorld};

use crate::durable::{durable, journal};

const MS: Duration = Duration::from_millis(1);

/// Ways to publish.
const WAYS: [&str; 3] = ["alone", "once", "in a transaction"];

fn outgoing<'a>(body: &'a str, id: &'a str) -> TestMessage<'a> {
    TestMessage { body, id, ..TestMessage::default() }
}

fn step(client: &Caller<'_>, exchange: &str, subject: &str, body: &str, id: &str) -> Step {
    let properties = outgoing(body, id).properties();
    let view = MessageView { properties: &properties, text: id.as_bytes(), body: body.as_bytes() };
    let message = Message::store(&view, None, client.world.gauge());
    Step::Publish {
        address: Address::new(exchange.as_bytes(), subject.as_bytes()),
        copies: Vec::new(),
        message,
    }
}

fn of_level(level: Option<Level>, way: &str) -> QueueSettings {
    let dedup_window = (way == "once").then_some(10 * MS);
    match level {
        Some(_) => QueueSettings { level, dedup_window, ..durable() },
        None => QueueSettings { dedup_window, ..QueueSettings::default() },
    }
}

fn publish(client: &Caller<'_>, way: &str, body: &str, id: &str) -> Confirm {
    match way {
        "in a transaction" => {
            let steps = [step(client, "amq.fanout", "", body, id)];
            broker::commit(client.world, &client.actor(), &steps).expect("it is allowed").confirm
        }
        _ => client.outgoing("amq.fanout", "", &outgoing(body, id)).confirm,
    }
}

#[test]
fn a_confirm_promises_the_lowest_level_of_the_queues_and_waits_for_the_highest() {
    let (memory, os, disk) = (Some(Level::Memory), Some(Level::Os), Some(Level::Disk));
    for (levels, promised, awaited) in [
        (vec![disk], Level::Disk, Level::Disk),
        (vec![os], Level::Os, Level::Os),
        (vec![memory], Level::Memory, Level::Memory),
        (vec![None], Level::Memory, Level::Memory),
        (vec![disk, os], Level::Os, Level::Disk),
        (vec![os, disk], Level::Os, Level::Disk),
        (vec![disk, memory], Level::Memory, Level::Disk),
        (vec![disk, None], Level::Memory, Level::Disk),
        (vec![None, os, disk], Level::Memory, Level::Disk),
        (vec![memory, None], Level::Memory, Level::Memory),
    ] {
        for way in WAYS {
            let world = TestWorld::new();
            let client = world.connect(1);
            for (at, level) in levels.iter().enumerate() {
                let queue = client.declare_with(&format!("q{at}"), &of_level(*level, way)).unwrap();
                client.bind("amq.fanout", "", queue).unwrap();
            }
            let before = journal(&world).len();
            let confirm = publish(&client, way, "m", "a");
            let records = journal(&world).len() - before;
            assert_eq!(records, usize::from(awaited > Level::Memory), "{levels:?} {way}");
            let expected = Confirm::of(awaited, world.appended()).promising(promised);
            assert_eq!(confirm, expected, "{levels:?} {way}");
        }
    }
}

#[test]
fn a_queue_that_keeps_messages_in_memory_alone_records_nothing_of_them() {
    let world = TestWorld::new();
    let client = world.connect(1);
    let settings = QueueSettings { level: Some(Level::Memory), delivery_limit: Some(9), ..durable() };
    client.declare_with("q", &settings).unwrap();
    let before = journal(&world).len();
    for body in ["1", "2", "3"] {
        assert_eq!(client.outgoing("", "q", &outgoing(body, "")).confirm, Confirm::NOW);
    }
    client.consume("q", "c", 1);
    client.accept(1);
    client.settle(imori_core::outbound::Numbers::One(2), Outcome::Release { failed: true }).unwrap();
    client.settle(imori_core::outbound::Numbers::One(3), Outcome::Reject).unwrap();
    assert_eq!(journal(&world).len(), before);
}

#[test]
fn where_some_queues_had_a_message_before_its_confirm_waits_for_both() {
    for way in ["once", "in a transaction"] {
        let world = TestWorld::new();
        let client = world.connect(1);
        for (name, level, window) in [("long", Level::Disk, 10), ("short", Level::Os, 2)] {
            let dedup_window = Some(window * MS);
            let settings = QueueSettings { level: Some(level), dedup_window, ..durable() };
            let queue = client.declare_with(name, &settings).unwrap();
            client.bind("amq.fanout", "", queue).unwrap();
        }
        let first = publish(&client, way, "m", "a");
        assert_eq!(first.level(), Level::Os);
        assert_eq!(publish(&client, way, "m", "a").level(), Level::Os, "{way}: both had it");
        world.pass(2 * MS);
        let second = publish(&client, way, "m", "a");
        assert_eq!(world.depth("short"), Some((2, 0)));
        let last = world.appended();
        let reached =
            |written, synced| second.is_reached(Progress { written: Lsn(written), synced: Lsn(synced) });
        assert_eq!(second.level(), Level::Os, "{way}");
        assert!(
            reached(last.0, last.0 - 1) && !reached(last.0 - 1, last.0 - 1) && !reached(last.0, 0),
            "{way}"
        );
    }
}

#[test]
fn a_transaction_is_as_large_as_a_group_of_records_and_no_larger() {
    let attempt = |bodies: &[usize]| {
        let world = TestWorld::new();
        let client = world.connect(1);
        client.declare_with("q", &durable()).unwrap();
        let steps: Vec<Step> =
            bodies.iter().map(|len| step(&client, "", "q", &"x".repeat(*len), "")).collect();
        let committed = broker::commit(&world, &client.actor(), &steps).map(drop);
        let messages = journal(&world).into_iter().map(|(_, record, _)| record);
        let messages = messages.filter(|record| record.kind == RecordKind::Message);
        (committed, messages.map(|record| record.payload.len()).collect::<Vec<usize>>())
    };
    let bytes_max = TestWorld::new().group_bytes_max();
    let (committed, payloads) = attempt(&[1000]);
    assert_eq!(committed, Ok(()));
    let around = payloads[0] - 1000;
    for (bodies, is_taken) in [
        (vec![bytes_max - around - 64], true),
        (vec![bytes_max - around - 63], false),
        (vec![bytes_max / 2 - around - 64; 2], true),
        (vec![bytes_max / 2 - around - 64, bytes_max / 2 - around - 63], false),
        (vec![0; 100], true),
    ] {
        let (committed, payloads) = attempt(&bodies);
        let bytes = bodies.iter().map(|body| body + around + 64).sum();
        let refused = Err(BrokerError::TransactionTooLarge { bytes, bytes_max });
        assert_eq!(committed, if is_taken { Ok(()) } else { refused });
        assert_eq!(payloads.len(), if is_taken { bodies.len() } else { 0 });
    }
}

#[test]
fn a_transaction_does_not_overfill_a_queue_by_bytes() {
    use imori_core::queue::Overflow;

    for (bodies, is_taken) in [(vec![50, 50], true), (vec![60, 50], false), (vec![101], false)] {
        let world = TestWorld::new();
        let client = world.connect(1);
        let overflow = Overflow::RejectPublish;
        let settings = QueueSettings { length_bytes_max: Some(100), overflow, ..durable() };
        client.declare_with("q", &settings).unwrap();
        let steps: Vec<Step> =
            bodies.iter().map(|len| step(&client, "", "q", &"x".repeat(*len), "")).collect();
        let committed = broker::commit(&world, &client.actor(), &steps).map(drop);
        assert_eq!(committed.is_ok(), is_taken, "{bodies:?}: {committed:?}");
        assert_eq!(world.depth("q"), Some((if is_taken { bodies.len() } else { 0 }, 0)));
    }
}
