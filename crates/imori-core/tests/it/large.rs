//! Messages that exceed a record or a group of the journal: a publish or commit of these is refused whole.
//!
//! A dead letter for many queues moves in parts.

use std::time::Duration;

use imori_core::broker::{self, Repetition, Step};
use imori_core::delivery::Outcome;
use imori_core::error::BrokerError;
use imori_core::limits::RECORD_SLACK_BYTES;
use imori_core::message::{Address, AddressView, Message, Publication};
use imori_core::outbound::{Numbers, SessionId};
use imori_core::policy::QueueKind;
use imori_core::queue::QueueSettings;
use imori_core::record::{MessageRecord, RecordKind, message_bytes_max, settles_bytes_max};
use imori_core::world::{Counter, World};
use imori_testkit::{Caller, TestMessage, TestWorld};

use crate::durable::{durable, durable_dying_to, journal};
use crate::restored::{asleep, beginning, held, restored};

/// Ways to publish.
const WAYS: [&str; 4] = ["alone", "once", "again", "in a transaction"];

const OUTGOING: TestMessage<'_> =
    TestMessage { body: "m", id: "a", delay_ms: 0, expiration_ms: None, priority: None, is_transient: false };

/// Bytes of the fields that the message lacks, which are counted before it is encoded.
const ABSENT_BYTES: usize = 1 + 4 + 8 + 4;

/// Bytes counted for the record of a message to this many queues.
fn record_bytes(queues: usize) -> usize {
    let properties = OUTGOING.properties();
    let publication = Publication::new(&properties, OUTGOING.id.as_bytes(), OUTGOING.body.as_bytes());
    let address = Address::new(b"amq.fanout", b"");
    message_bytes_max(&publication.view(), &AddressView::passing(&address.exchange, b""), None, queues)
        + RECORD_SLACK_BYTES
}

/// Queues that receive what is published to `amq.fanout`.
fn bound(client: &Caller<'_>, count: usize, settings: &QueueSettings) -> Vec<String> {
    let names: Vec<String> = (0..count).map(|at| format!("q{at}")).collect();
    for name in &names {
        let queue = client.declare_with(name, settings).expect("it is new");
        client.bind("amq.fanout", "", queue).expect("the exchange is there");
    }
    names
}

fn publish(client: &Caller<'_>, way: &str, outgoing: &TestMessage<'_>) -> Result<usize, BrokerError> {
    let (world, actor) = (client.world, client.actor());
    let properties = outgoing.properties();
    let publication = Publication::new(&properties, outgoing.id.as_bytes(), outgoing.body.as_bytes());
    let address = Address::new(b"amq.fanout", b"");
    let report = match way {
        "again" => {
            let run = [publication, Publication::new(&properties, outgoing.id.as_bytes(), b"n")];
            broker::publish_again(world, &actor, &address, &run, &mut Repetition::new(false))
        }
        "in a transaction" => {
            let message = Message::store(&publication.view(), None, world.gauge());
            let committed =
                broker::commit(world, &actor, &[Step::Publish { address, copies: Vec::new(), message }]);
            return committed.map(|report| report.receivers);
        }
        _ => broker::publish(world, &actor, b"amq.fanout", b"", &publication),
    };
    report.map(|report| report.receivers)
}

#[test]
fn a_message_that_the_journal_does_not_take_reaches_nobody() {
    for way in WAYS {
        let dedup_window = (way == "once").then_some(Duration::from_secs(1));
        let settings = QueueSettings { dedup_window, ..durable() };
        for (spare, is_transient, is_taken) in
            [(0, false, true), (-1, false, false), (8, false, true), (-8, false, false), (-99, true, true)]
        {
            let world = TestWorld::new();
            let (client, reader) = (world.connect(1), world.connect(2));
            let names = bound(&client, 5, &settings);
            let transient = client.declare("transient");
            client.bind("amq.fanout", "", transient).unwrap();
            reader.consume("transient", "t", 9);
            let before = journal(&world);
            let is_encoded = way == "in a transaction";
            let bytes = record_bytes(names.len()) - if is_encoded { ABSENT_BYTES } else { 0 };
            world.group_bytes_max.set(bytes.saturating_add_signed(spare));

            let sent = publish(&client, way, &TestMessage { is_transient, ..OUTGOING });
            let (each, case) = (if way == "again" { 2 } else { 1 }, format!("{way}, {spare} bytes to spare"));
            let depth = if is_taken { each } else { 0 };
            for name in &names {
                assert_eq!(world.depth(name), Some((depth, 0)), "{case}");
            }
            assert_eq!(world.counted(Counter::Published), depth, "{case}");
            if is_taken {
                assert_eq!(sent, Ok(6 * each), "{case}");
                continue;
            }
            assert_eq!((reader.read(), journal(&world)), (String::new(), before), "{case}");
            let error = sent.expect_err("it is refused");
            let bytes_max = world.group_bytes_max();
            let expected = match is_encoded {
                true => BrokerError::TransactionTooLarge { bytes, bytes_max },
                false => BrokerError::RecordTooLarge { bytes, bytes_max, queues: 5 },
            };
            assert_eq!(error, expected, "{case}");
            for part in [bytes_max.to_string(), String::from("raise `journal.file_bytes`")] {
                assert!(error.to_string().contains(&part), "{case}: {error}");
            }
        }
    }
}

#[test]
fn a_refused_transaction_takes_no_number_of_a_stream() {
    let world = TestWorld::new();
    let client = world.connect(1);
    bound(&client, 1, &QueueSettings { kind: QueueKind::Stream, ..durable() });
    world.group_bytes_max.set(100);
    publish(&client, "in a transaction", &OUTGOING).expect_err("it is refused");
    world.group_bytes_max.set(usize::MAX);
    for way in ["in a transaction", "alone"] {
        publish(&client, way, &TestMessage { id: "", ..OUTGOING }).expect("it is taken");
    }
    let records = journal(&world);
    let messages = records.iter().filter(|(_, record, _)| record.kind == RecordKind::Message);
    let numbers =
        messages.flat_map(|(_, record, _)| MessageRecord::decode(&record.payload).unwrap().sequences);
    assert_eq!(numbers.map(|(_, sequence)| sequence).collect::<Vec<_>>(), [1, 2]);
}

#[test]
fn a_dead_letter_goes_in_parts_to_more_queues_than_one_record_takes() {
    for (at_once, parts) in [(8, 1), (7, 2), (4, 2), (3, 3), (2, 3), (1, 4)] {
        let world = TestWorld::new();
        let client = world.connect(1);
        let names = bound(&client, 8, &durable());
        client.declare_with("source", &durable_dying_to("amq.fanout", None)).unwrap();
        client.outgoing("", "source", &OUTGOING);
        client.consume("source", "c", 1);
        let begins = journal(&world).len();
        // Its history has one death, and its group also has a settlement.
        let history = 4 + 2 + 1 + 8 + 8 + 2 + 2 + "source".len() + "source".len();
        let settle = 1 + 12 + 8 + RECORD_SLACK_BYTES;
        let subject = "source".len();
        world.group_bytes_max.set(record_bytes(at_once) - ABSENT_BYTES + history + settle + subject);
        client.settle(Numbers::One(1), Outcome::Reject).unwrap();

        let whole = journal(&world);
        let messages = whole.iter().skip(begins).filter(|(_, record, _)| record.kind == RecordKind::Message);
        assert_eq!(messages.count(), parts, "{at_once} at once");
        assert_eq!((world.depth("source"), world.counted(Counter::DeadLetterDropped)), (Some((0, 0)), 0));
        for name in &names {
            assert_eq!(world.depth(name), Some((1, 0)), "{at_once} at once: {name}");
        }
        // Until it is in all target queues, it also stays in its source.
        for len in begins..=whole.len() {
            let part = beginning(&whole, len);
            let (back, _) = asleep(&part, world.now());
            let has_left = held(&back, "source").is_empty();
            let arrived = names.iter().filter(|name| held(&back, name).len() == 1).count();
            assert!(!has_left || arrived == names.len(), "{at_once} at once, {len} records: {arrived}");
            assert_eq!(has_left, part.len() == whole.len(), "{at_once} at once, {len} records");
        }
    }
}

#[test]
fn a_dead_letter_moves_in_one_group_as_long_as_that_is_taken() {
    let moved = |group_bytes_max: Option<usize>| {
        let world = TestWorld::new();
        let client = world.connect(1);
        bound(&client, 2, &durable());
        client.declare_with("source", &durable_dying_to("amq.fanout", None)).unwrap();
        client.outgoing("", "source", &OUTGOING);
        client.consume("source", "c", 1);
        let begins = journal(&world).len();
        world.group_bytes_max.set(group_bytes_max.unwrap_or(usize::MAX));
        client.settle(Numbers::One(1), Outcome::Reject).unwrap();
        journal(&world).split_off(begins)
    };
    let whole = moved(None);
    let bytes = whole.iter().map(|(_, record, _)| record.payload.len() + RECORD_SLACK_BYTES).sum();
    for (group_bytes_max, records) in [(bytes, 2), (bytes - 1, 3)] {
        let moved = moved(Some(group_bytes_max));
        assert_eq!(moved.len(), records, "{group_bytes_max} of {bytes}");
        assert_eq!(moved == whole, records == 2, "{group_bytes_max} of {bytes}");
    }
}

#[test]
fn a_dead_letter_that_no_record_takes_is_dropped_for_good() {
    let world = TestWorld::new();
    let client = world.connect(1);
    let names = bound(&client, 3, &durable());
    client.declare_with("source", &durable_dying_to("amq.fanout", None)).unwrap();
    client.outgoing("", "source", &OUTGOING);
    client.consume("source", "c", 1);
    world.group_bytes_max.set(record_bytes(0));
    client.settle(Numbers::One(1), Outcome::Reject).unwrap();
    let back = restored(&journal(&world), world.now());
    for world in [&world, &back] {
        for name in names.iter().map(String::as_str).chain(["source"]) {
            assert_eq!(world.depth(name), Some((0, 0)), "{name}");
        }
    }
    assert_eq!((world.dead_lettered(), world.counted(Counter::DeadLetterDropped)), (1, 3));
}

#[test]
fn a_transaction_that_settles_more_than_one_group_takes_settles_nothing() {
    const MESSAGES: usize = 60;
    for (settings, spare, is_taken) in
        [(durable(), 0, true), (durable(), -1, false), (QueueSettings::default(), -1, true)]
    {
        let world = TestWorld::new();
        let client = world.connect(1);
        client.declare_with("q", &settings).unwrap();
        for _ in 0..MESSAGES {
            client.outgoing("", "q", &TestMessage { id: "", ..OUTGOING });
        }
        client.consume("q", "c", 99);
        client.read();
        let before = journal(&world);
        let settle = |number| Step::Settle {
            session: SessionId(0),
            numbers: Numbers::UpTo(number),
            outcome: Outcome::Accept,
            annotations: None,
        };
        // A later step does not settle again what an earlier one settled.
        let steps = [settle(20), settle(MESSAGES as u64)];
        world.group_bytes_max.set(settles_bytes_max(MESSAGES).saturating_add_signed(spare));
        let committed = broker::commit(&world, &client.actor(), &steps).map(drop);
        assert_eq!(committed.is_ok(), is_taken, "{spare} bytes to spare: {committed:?}");
        if !is_taken {
            let bytes = settles_bytes_max(MESSAGES);
            let refused = BrokerError::TransactionTooLarge { bytes, bytes_max: bytes - 1 };
            assert_eq!((committed, journal(&world)), (Err(refused), before));
        }
        assert_eq!(world.depth("q"), Some((0, if is_taken { 0 } else { MESSAGES })));
    }
}
