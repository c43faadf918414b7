use std::time::Duration;

use imori_core::broker::{self, Step};
use imori_core::confirm::{Confirm, Level, Lsn};
use imori_core::error::BrokerError;
use imori_core::message::{Address, Message, MessageView};
use imori_core::queue::{Overflow, QueueSettings};
use imori_core::record::RecordKind;
use imori_core::world::World;
use imori_testkit::{Caller, TestMessage, TestWorld, dying_to};

use crate::restored::{ready, restored};

const MS: Duration = Duration::from_millis(1);

fn durable() -> QueueSettings {
    QueueSettings { is_durable: true, ..QueueSettings::default() }
}

fn delayed(body: &str, delay_ms: u32) -> TestMessage<'_> {
    TestMessage { body, id: body, delay_ms, ..TestMessage::default() }
}

fn cancel(client: &Caller<'_>, id: &str) -> Result<(usize, Confirm), BrokerError> {
    broker::cancel_delayed(client.world, &client.actor(), b"q", id.as_bytes())
}

#[test]
fn a_delayed_message_is_given_out_when_it_is_due_and_not_before() {
    for settings in [QueueSettings::default(), durable()] {
        let world = TestWorld::new();
        let client = world.connect(1);
        client.declare_with("q", &settings).unwrap();
        client.consume("q", "c", 9);
        assert_eq!(client.outgoing("", "q", &delayed("late", 20)).receivers, 1);
        client.outgoing("", "q", &delayed("soon", 10));
        client.outgoing("", "q", &delayed("now", 0));
        assert_eq!((client.read(), world.depth("q")), ("c:now;".into(), Some((0, 1))));
        for (pass, expected) in [(9, ""), (1, "c:soon;"), (9, ""), (1, "c:late;")] {
            world.pass(pass * MS);
            assert_eq!(client.read(), expected);
        }
        client.settle(imori_core::outbound::Numbers::UpTo(3), imori_core::delivery::Outcome::Accept).unwrap();
        assert_eq!(world.charged(), 0);
    }
}

#[test]
fn its_confirm_leaves_as_that_of_any_other() {
    let world = TestWorld::new();
    let client = world.connect(1);
    client.declare_with("q", &durable()).unwrap();
    let report = client.outgoing("", "q", &delayed("m", 1000));
    assert_eq!(report.confirm, Confirm::of(Level::Disk, Lsn(2)));
}

#[test]
fn what_fell_due_while_the_broker_was_away_is_ready_in_its_order() {
    let world = TestWorld::new();
    let client = world.connect(1);
    client.declare_with("q", &durable()).unwrap();
    for (body, delay_ms) in [("d", 9), ("b", 5), ("a", 0), ("later", 50)] {
        client.outgoing("", "q", &delayed(body, delay_ms));
    }
    world.pass(7 * MS);
    client.outgoing("", "q", &delayed("c", 0));
    let journal = world.journal.borrow().clone();
    let back = restored(&journal, world.now().after(30 * MS));
    let bodies =
        |world| ready(world, "q").into_iter().map(|(_, text)| text[..1].to_string()).collect::<String>();
    assert_eq!(bodies(&back), "abcd");
    assert_eq!(back.pass(12 * MS), 0);
    assert_eq!((back.pass(MS), bodies(&back)), (1, "l".to_string()));
    assert_eq!(bodies(&world), "abc");
}

#[test]
fn time_to_live_counts_from_when_it_is_due() {
    let world = TestWorld::new();
    let client = world.connect(1);
    client
        .declare_with("q", &QueueSettings { message_ttl: Some(5 * MS), ..dying_to("", Some("dead")) })
        .unwrap();
    client.declare("dead");
    client.outgoing("", "q", &delayed("m", 10));
    for (pass, in_queue, dead) in [(9, 0, 0), (1, 1, 0), (4, 1, 0), (1, 0, 1), (99, 0, 1)] {
        world.pass(pass * MS);
        assert_eq!((world.depth("q"), world.depth("dead")), (Some((in_queue, 0)), Some((dead, 0))));
    }
}

#[test]
fn a_dead_letter_is_not_delayed_again() {
    let world = TestWorld::new();
    let client = world.connect(1);
    client.declare_with("q", &QueueSettings { message_ttl: Some(MS), ..dying_to("", Some("dead")) }).unwrap();
    client.declare("dead");
    client.consume("dead", "c", 0);
    client.outgoing("", "q", &delayed("m", 10));
    world.pass(11 * MS);
    assert_eq!(client.read(), "c:m(q expired 1);");
}

#[test]
fn one_record_holds_it_for_all_its_queues_and_live_subscriptions_get_none() {
    let world = TestWorld::new();
    let client = world.connect(1);
    for name in ["a", "b"] {
        let queue = client.declare_with(name, &durable()).unwrap();
        client.bind("amq.topic", "t", queue).unwrap();
    }
    client.subscribe("t", "live");
    let before = world.journal.borrow().len();
    assert_eq!(client.outgoing("amq.topic", "t", &delayed("m", 10)).receivers, 2);
    world.pass(10 * MS);
    let journal = world.journal.borrow()[before..].to_vec();
    assert_eq!(journal.iter().map(|(_, record, _)| record.kind).collect::<Vec<_>>(), [RecordKind::Message]);
    assert_eq!(
        (client.read(), world.depth("a"), world.depth("b")),
        (String::new(), Some((1, 0)), Some((1, 0)))
    );
}

#[test]
fn what_no_queue_keeps_is_refused() {
    let world = TestWorld::new();
    let client = world.connect(1);
    client.subscribe("t", "live");
    let inbox = client.inbox("i");
    for (exchange, subject) in [("amq.topic", "t"), ("amq.topic", "nobody"), ("", "none"), ("", &inbox)] {
        let expected = BrokerError::NotKept(subject.into());
        let refused = client.try_mail(exchange, subject, &delayed("m", 10));
        assert_eq!(refused, Err(expected.clone()), "{exchange} {subject}");
        let outgoing = delayed("m", 10);
        let message = Message::store(
            &MessageView { properties: &outgoing.properties(), text: b"m", body: b"m" },
            None,
            world.gauge(),
        );
        let step = Step::Publish {
            address: Address::new(exchange.as_bytes(), subject.as_bytes()),
            copies: Vec::new(),
            message,
        };
        assert_eq!(broker::commit(&world, &client.actor(), &[step]), Err(expected));
        client.outgoing(exchange, subject, &delayed("m", 0));
    }
    assert_eq!(client.read(), "live:m;i:m;");
}

#[test]
fn a_length_limit_counts_it_where_it_refuses_and_else_once_it_is_due() {
    for (overflow, taken, expected) in [
        (Overflow::DropHead, [true, true, true], "c:b;c:late;"),
        (Overflow::RejectPublish, [true, true, false], "c:a;c:late;"),
    ] {
        let world = TestWorld::new();
        let client = world.connect(1);
        client.declare_with("q", &QueueSettings { length_max: Some(2), overflow, ..durable() }).unwrap();
        let sent =
            [("late", 10), ("a", 0), ("b", 0)].map(|(body, ms)| client.outgoing("", "q", &delayed(body, ms)));
        assert_eq!(sent.map(|report| report.refused_by.is_none()), taken);
        world.pass(10 * MS);
        let back = restored(&world.journal.borrow().clone(), world.now());
        for world in [&world, &back] {
            assert_eq!(world.depth("q"), Some((2, 0)));
            let reader = world.connect(7);
            reader.consume("q", "c", 0);
            assert_eq!(reader.read().replace('!', ""), expected);
        }
    }
}

#[test]
fn a_publisher_cancels_by_the_name_it_gave() {
    let world = TestWorld::new();
    let client = world.connect(1);
    client.declare_with("q", &durable()).unwrap();
    for (body, id) in [("1", "x"), ("2", "y"), ("3", "x"), ("4", "")] {
        client.outgoing("", "q", &TestMessage { body, id, delay_ms: 10, ..TestMessage::default() });
    }
    client.outgoing("", "q", &TestMessage { body: "5", id: "y", ..TestMessage::default() });
    let nothing = Ok((0, Confirm::NOW));
    assert_eq!(cancel(&client, "z"), nothing);
    assert_eq!(cancel(&client, "x"), Ok((2, Confirm::of(Level::Disk, Lsn(7)))));
    assert_eq!(cancel(&client, "x"), nothing);
    let back = restored(&world.journal.borrow().clone(), world.now());
    for world in [&world, &back] {
        world.pass(10 * MS);
        let texts: Vec<String> =
            ready(world, "q").into_iter().map(|(_, text)| text[..1].to_string()).collect();
        assert_eq!(texts, ["5", "2", "4"]);
        assert_eq!(cancel(&world.connect(7), "y"), nothing, "it is due");
        assert_eq!(world.charged(), 0);
    }
    assert_eq!(
        broker::cancel_delayed(&world, &client.actor(), b"none", b"x"),
        Err(BrokerError::NoQueue("none".into()))
    );
}

#[test]
fn the_moment_it_is_due_is_too_late_to_cancel() {
    let world = TestWorld::new();
    let client = world.connect(1);
    client.declare_with("q", &durable()).unwrap();
    client.outgoing("", "q", &delayed("m", 10));
    client.outgoing("", "q", &TestMessage { is_transient: true, ..delayed("t", 20) });
    world.pass(10 * MS);
    assert_eq!(cancel(&client, "m"), Ok((0, Confirm::NOW)));
    // The message had no record, so there is none to wait for.
    assert_eq!(cancel(&client, "t"), Ok((1, Confirm::NOW)));
}

#[test]
fn a_queue_takes_its_delayed_messages_with_it() {
    let world = TestWorld::new();
    let client = world.connect(1);
    client.declare_with("q", &durable()).unwrap();
    client.outgoing("", "q", &delayed("m", 10));
    assert!(world.charged() > 0);
    broker::delete_queue(&world, &client.actor(), b"q").unwrap();
    assert_eq!(world.charged(), 0);
    assert_eq!(restored(&world.journal.borrow().clone(), world.now()).queue("q"), None);
}
