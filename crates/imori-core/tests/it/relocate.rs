//! Messages that an operator takes or moves while they wait.

use imori_core::authorize::Identity;
use imori_core::broker::{self, Actor, Waiting};
use imori_core::confirm::Confirm;
use imori_core::delivery::Outcome;
use imori_core::error::BrokerError;
use imori_core::message::Address;
use imori_core::outbound::Numbers;
use imori_core::queue::{Overflow, PeekPart, QueueSettings};
use imori_core::time::Time;
use imori_core::world::World;
use imori_testkit::{Caller, TestMessage, TestWorld, dying_to};

use crate::durable::{durable, durable_dying_to, journal};
use crate::restored::{asleep, beginning, held, ready, restored};

/// The messages of a queue that wait in memory.
fn waiting(client: &Caller<'_>, queue: &str) -> Vec<Waiting> {
    let (_, peek) = broker::peek(client.world, &client.actor(), queue.as_bytes(), 0, 100).expect("it may");
    let parts = peek.parts.iter().flat_map(|part| match part {
        PeekPart::Entries(entries) => entries.as_slice(),
        PeekPart::Page(_) => &[],
    });
    let of = |envelope: &imori_core::message::Envelope| Waiting {
        priority: envelope.priority,
        sequence: envelope.sequence,
    };
    parts.map(|entry| of(entry.envelope())).collect()
}

fn relocate(
    client: &Caller<'_>,
    waiting: Waiting,
    exchange: &str,
    subject: &str,
) -> Result<Option<Confirm>, BrokerError> {
    let to = Address::new(exchange.as_bytes(), subject.as_bytes());
    broker::relocate(client.world, &client.actor(), b"q", waiting, &to)
}

fn outgoing(body: &str) -> TestMessage<'_> {
    TestMessage { body, ..TestMessage::default() }
}

#[test]
fn messages_that_move_keep_their_order_and_their_history() {
    let world = TestWorld::new();
    let client = world.connect(1);
    client.declare_with("work", &dying_to("", Some("q"))).unwrap();
    for name in ["q", "other"] {
        client.declare(name);
    }
    client.consume("work", "w", 9);
    ["a", "b", "c"].iter().for_each(|body| drop(client.send("work", body)));
    client.settle(Numbers::All, Outcome::Reject).unwrap();
    client.read();
    client.consume("other", "o", 9);
    for each in waiting(&client, "q") {
        assert!(relocate(&client, each, "", "other").unwrap().is_some());
        assert_eq!(relocate(&client, each, "", "other"), Ok(None), "it is there no more");
    }
    let history = "(work rejected 1)";
    assert_eq!(client.read(), format!("o:a{history};o:b{history};o:c{history};"));
    assert_eq!((world.depth("q"), world.depth("other")), (Some((0, 0)), Some((0, 3))));
}

#[test]
fn one_that_moves_from_the_middle_leaves_the_others_where_they_are() {
    let world = TestWorld::new();
    let client = world.connect(1);
    for name in ["q", "other"] {
        client.declare(name);
    }
    ["a", "b", "c", "d"].iter().for_each(|body| drop(client.send("q", body)));
    let all = waiting(&client, "q");
    assert!(relocate(&client, all[2], "", "other").unwrap().is_some());
    client.consume("q", "q", 9);
    client.consume("other", "o", 9);
    assert_eq!(client.read(), "q:a;q:b;q:d;o:c;");
    client.settle(Numbers::All, Outcome::Accept).unwrap();
    assert_eq!(world.charged(), 0);
}

#[test]
fn what_moves_is_in_one_place_after_any_crash() {
    for (case, source, target) in [
        ("durable to durable", durable(), durable()),
        ("transient to durable", QueueSettings::default(), durable()),
        ("a dead letter", durable(), durable_dying_to("", Some("q"))),
    ] {
        let is_kept_before = source.is_durable;
        let world = TestWorld::new();
        let client = world.connect(1);
        client.declare_with("q", &source).unwrap();
        client.declare_with("other", &target).unwrap();
        for body in ["a", "b", "c"] {
            client.outgoing("", "q", &outgoing(body));
        }
        let published = journal(&world).len();
        for each in waiting(&client, "q") {
            relocate(&client, each, "", "other").unwrap().expect("it waits");
        }
        let whole = journal(&world);
        let back = restored(&whole, world.now());
        for world in [&world, &back] {
            assert_eq!((ready(world, "q").len(), ready(world, "other").len()), (0, 3), "{case}");
        }
        for len in published..=whole.len() {
            let (back, _) = asleep(&beginning(&whole, len), Time(0));
            let places = held(&back, "q").len() + held(&back, "other").len();
            assert!(places == 3 || !is_kept_before, "{case}, {len} records: {places}");
        }
    }
}

#[test]
fn a_message_that_cannot_move_stays() {
    let full = |overflow| QueueSettings { length_max: Some(1), overflow, ..QueueSettings::default() };
    let world = TestWorld::new();
    let client = world.connect(1);
    let q = client.declare("q");
    client.bind("amq.topic", "back", q).unwrap();
    client.declare_with("drops", &full(Overflow::DropHead)).unwrap();
    client.declare_with("refuses", &full(Overflow::RejectPublish)).unwrap();
    ["drops", "refuses"].iter().for_each(|name| drop(client.send(name, "old")));
    client.send("q", "m");
    let first = waiting(&client, "q")[0];
    let moved = |exchange, subject| relocate(&client, first, exchange, subject).unwrap_err();
    assert_eq!(moved("", "nobody"), BrokerError::Nowhere("nobody".into()));
    assert_eq!(moved("amq.topic", "nobody"), BrokerError::Nowhere("nobody".into()));
    assert!(matches!(moved("nothing", "q"), BrokerError::Route(_)));
    assert_eq!(moved("", "q"), BrokerError::ToItself("q".into()));
    assert_eq!(moved("amq.topic", "back"), BrokerError::ToItself("q".into()));
    assert_eq!(moved("", "drops"), BrokerError::QueueFull("drops".into()));
    assert_eq!(moved("", "refuses"), BrokerError::QueueFull("refuses".into()));
    // A live subscription stores nothing.
    client.subscribe("live", "l");
    assert_eq!(moved("amq.topic", "live"), BrokerError::Nowhere("live".into()));
    assert_eq!((world.ready_len("q"), waiting(&client, "q")[0]), (1, first));
    assert_eq!(client.read(), "");
}

#[test]
fn an_operator_settles_at_once_what_is_taken() {
    for (outcome, left, dead, expected) in [
        (Outcome::Accept, 1, 0, "q:c;"),
        (Outcome::Reject, 1, 2, "q:c;"),
        (Outcome::Release { failed: false }, 3, 0, "q!:a;q!:b;q:c;"),
    ] {
        let world = TestWorld::new();
        let client = world.connect(1);
        client.declare_with("dead", &durable()).unwrap();
        client.declare_with("q", &durable_dying_to("", Some("dead"))).unwrap();
        for body in ["a", "b", "c"] {
            client.outgoing("", "q", &outgoing(body));
        }
        let take = |limits| broker::take(&world, &client.actor(), b"q", limits, outcome).unwrap();
        assert!(take((0, 9)).messages.is_empty());
        let taken = take((2, usize::MAX));
        let shown = taken
            .messages
            .iter()
            .map(|(entry, left)| format!("{}{left}", String::from_utf8_lossy(entry.message().view().body)));
        assert_eq!(shown.collect::<Vec<_>>(), ["a2", "b1"], "{outcome:?}");
        let back = restored(&journal(&world), world.now());
        for world in [&world, &back] {
            assert_eq!((world.ready_len("q"), world.ready_len("dead")), (left, dead), "{outcome:?}");
        }
        client.consume("q", "q", 9);
        assert_eq!(client.read(), expected, "{outcome:?}");
    }
}

#[test]
fn the_first_is_taken_however_large_and_the_rest_within_the_bytes() {
    let world = TestWorld::new();
    let client = world.connect(1);
    client.declare("q");
    ["four", "four", "4"].iter().for_each(|body| drop(client.send("q", body)));
    for (bytes_max, expected) in [(0, 1), (7, 1), (8, 2), (9, 3)] {
        let outcome = Outcome::Release { failed: false };
        let taken = broker::take(&world, &client.actor(), b"q", (9, bytes_max), outcome).unwrap();
        assert_eq!(taken.messages.len(), expected, "{bytes_max}");
        assert_eq!(world.ready_len("q"), 3);
    }
}

// SECURITY AUTH-15: a peek and a move need the rights of a client that reads, and a move those of one that
// publishes.
#[test]
fn who_looks_at_messages_or_moves_them_has_the_rights_of_a_client() {
    let world = TestWorld::new();
    let client = world.connect(1);
    for name in ["q", "other"] {
        client.declare(name);
    }
    client.send("q", "m");
    let first = waiting(&client, "q")[0];
    let nobody = Identity::nobody();
    let actor = Actor { identity: &nobody, ..client.actor() };
    let to = Address::new(b"", b"other");
    assert!(matches!(broker::peek(&world, &actor, b"q", 0, 1), Err(BrokerError::Refused(_))));
    let taken = broker::take(&world, &actor, b"q", (1, 1), Outcome::Accept);
    assert!(matches!(taken, Err(BrokerError::Refused(_))));
    let moved = broker::relocate(&world, &actor, b"q", first, &to);
    assert!(matches!(moved, Err(BrokerError::Refused(_))));
    assert_eq!((world.ready_len("q"), world.ready_len("other")), (1, 0));
    let mine = QueueSettings { exclusive_to: Some(client.id), ..QueueSettings::default() };
    client.declare_with("mine", &mine).unwrap();
    let other = world.connect(2);
    let locked = broker::peek(&world, &other.actor(), b"mine", 0, 1).map(drop);
    assert_eq!(locked, Err(BrokerError::Locked("mine".into())));
}
