//! The disk has little room: declarations are refused, and dead letters wait in their queues.

use std::time::Duration;

use imori_core::broker::{self, Step};
use imori_core::confirm::Level;
use imori_core::delivery::Outcome;
use imori_core::error::BrokerError;
use imori_core::message::{Address, Message, MessageView};
use imori_core::outbound::{Numbers, SessionId};
use imori_core::queue::{Overflow, QueueSettings};
use imori_core::room::{Room, Unavailable};
use imori_core::route::{ExchangeKind, Settings};
use imori_core::world::World;
use imori_testkit::{Caller, TestMessage, TestWorld, dying_to};

use crate::durable::{durable, durable_dying_to, journal};
use crate::restored::{beginning, ready, restored};

const REJECT: Outcome = Outcome::Reject;

#[test]
fn what_would_stay_on_a_full_disk_is_not_declared() {
    let world = TestWorld::new();
    let client = world.connect(1);
    let there = client.declare_with("there", &durable()).unwrap();
    client.bind("amq.topic", "bound", there).unwrap();
    let fleeting = Settings { is_durable: true, is_auto_delete: true, ..Settings::default() };
    broker::declare_exchange(&world, &client.actor(), b"fleeting", ExchangeKind::Topic, fleeting).unwrap();
    world.room.may_declare.set(false);
    let full = |name: &str| Err(BrokerError::Unavailable { name: name.into(), cause: Unavailable::DiskFull });
    assert_eq!(client.declare_with("new", &durable()).map(drop), full("new"));
    assert_eq!(world.depth("new"), None);
    assert_eq!(client.declare_with("there", &durable()), Ok(there), "it takes nothing");
    assert!(client.declare_with("transient", &QueueSettings::default()).is_ok(), "it does not stay");
    let exchange = |name: &str, is_durable| {
        let settings = Settings { is_durable, ..Settings::default() };
        broker::declare_exchange(&world, &client.actor(), name.as_bytes(), ExchangeKind::Direct, settings)
            .map(drop)
    };
    assert_eq!(exchange("x", true), full("x"));
    assert_eq!(exchange("x", false), Ok(()), "nothing is left of the one that was refused");
    assert_eq!(client.bind("amq.topic", "t", there), full("amq.topic"));
    assert_eq!(client.publish("amq.topic", "t", "m").receivers, 0, "it is not bound");
    assert!(client.bind("amq.topic", "bound", there).is_ok(), "it takes nothing");
    for time in ["first", "second"] {
        assert_eq!(client.bind("fleeting", "t", there), full("fleeting"), "the {time} time: it is there");
    }
    assert_eq!(broker::delete_queue(&world, &client.actor(), b"there"), Ok(0));
}

/// A queue with one unsettled message, and the queue for its dead letters.
fn one_out(world: &TestWorld) -> Caller<'_> {
    let client = world.connect(1);
    client.declare_with("dead", &durable()).expect("it is new");
    client.declare_with("q", &durable_dying_to("", Some("dead"))).expect("it is new");
    client.consume("q", "c", 9);
    client.outgoing("", "q", &TestMessage { body: "m", ..TestMessage::default() });
    client
}

/// Checks the number of messages in both queues, now and after the next start, which has room.
fn check(world: &TestWorld, now: [usize; 2], later: [usize; 2], how: &str) {
    let depths = ["q", "dead"].map(|name| world.depth(name).expect("it is there"));
    assert_eq!(depths.map(|(ready, unsettled)| ready + unsettled), now, "{how}");
    assert!(!world.room.reserve().is_taken(), "others have the room after it: {how}");
    let back = restored(&journal(world), world.now());
    assert_eq!(["q", "dead"].map(|name| ready(&back, name).len()), later, "{how}, after a start");
}

#[test]
fn what_is_rejected_is_in_one_queue_with_room_or_without() {
    type Reject = fn(&TestWorld, &Caller<'_>);
    let alone: Reject = |_, client| assert_eq!(client.settle(Numbers::One(1), REJECT), Ok(1));
    let in_a_transaction: Reject = |world, client| {
        let properties = TestMessage::default().properties();
        let view = MessageView { properties: &properties, text: b"", body: b"other" };
        let steps = [
            Step::Settle {
                session: SessionId(0),
                numbers: Numbers::One(1),
                outcome: REJECT,
                annotations: None,
            },
            Step::Publish {
                address: Address::new(b"", b"dead"),
                copies: Vec::new(),
                message: Message::store(&view, None, world.gauge()),
            },
        ];
        broker::commit(world, &client.actor(), &steps).unwrap();
    };
    for (how, reject, published) in [("alone", alone, 0), ("in a transaction", in_a_transaction, 1)] {
        for (room, is_pending_dead_letter) in [(None, false), (Some(0), true), (Some(1 << 20), false)] {
            let world = TestWorld::new();
            let client = one_out(&world);
            world.room.set(room);
            reject(&world, &client);
            let now = [usize::from(is_pending_dead_letter), usize::from(!is_pending_dead_letter) + published];
            check(&world, now, [0, 1 + published], &format!("{how}, {room:?}"));
            assert_eq!(client.read(), "c:m;", "it is given out once");
            // The queue is woken when there may be room again.
            world.room.set(None);
            world.pass(Duration::from_millis(50));
            check(&world, [0, 1 + published], [0, 1 + published], &format!("{how}, {room:?}, later"));
        }
    }
}

#[test]
fn what_a_full_queue_refused_is_given_to_nobody_after_a_start() {
    for delay_ms in [0, 60_000] {
        let world = TestWorld::new();
        let client = world.connect(1);
        let dying = durable_dying_to("", Some("dead"));
        let overflow = Overflow::RejectPublishDeadLetter;
        let full = QueueSettings { length_max: Some(1), overflow, ..dying };
        client.declare_with("dead", &durable()).expect("it is new");
        client.declare_with("q", &full).expect("it is new");
        client.outgoing("", "q", &TestMessage { body: "taken", ..TestMessage::default() });
        world.room.set(Some(0));
        let report =
            client.outgoing("", "q", &TestMessage { body: "refused", delay_ms, ..TestMessage::default() });
        assert_eq!(report.refused_by, Some("q".into()), "{delay_ms}");
        check(&world, [2, 0], [1, 1], &format!("{delay_ms}"));
        world.room.set(None);
        world.pass(Duration::from_millis(50));
        check(&world, [1, 1], [1, 1], &format!("{delay_ms}, later"));
    }
}

/// A pending dead letter, and the client that rejected it, which is still connected.
fn one_is_pending<'w>(world: &'w TestWorld, settings: &QueueSettings) -> Caller<'w> {
    let client = world.connect(1);
    client.declare_with("dead", &durable()).expect("it is new");
    client.declare_with("q", settings).expect("it is new");
    let reader = client.consume("q", "c", 9);
    client.outgoing("", "q", &TestMessage { body: "m", ..TestMessage::default() });
    world.room.set(Some(0));
    assert_eq!(client.settle(Numbers::One(1), REJECT), Ok(1));
    assert_eq!(world.depth("q"), Some((0, 1)), "it is_pending_dead_letter");
    client.cancel(reader);
    client
}

#[test]
fn pending_dead_letters_of_a_deleted_queue_go_before_it() {
    let world = TestWorld::new();
    let client = one_is_pending(&world, &durable_dying_to("", Some("dead")));
    assert_eq!(broker::delete_queue(&world, &client.actor(), b"q"), Ok(0));
    assert_eq!(world.depth("dead"), Some((1, 0)));
    let all = journal(&world);
    let back = restored(&all, world.now());
    assert_eq!((ready(&back, "dead").len(), world.queue("q")), (1, None));
    // The move precedes the deletion: after a crash between them the message is there.
    let back = restored(&beginning(&all, all.len() - 1), world.now());
    assert_eq!((ready(&back, "dead").len(), ready(&back, "q").len()), (1, 0));
}

#[test]
fn a_queue_with_pending_dead_letters_is_not_idle() {
    let world = TestWorld::new();
    let expires = Some(Duration::from_millis(80));
    one_is_pending(&world, &QueueSettings { expires, ..durable_dying_to("", Some("dead")) });
    assert!(world.pass(Duration::from_secs(1)) < 40, "it is woken to try again, and for nothing else");
    assert_eq!((world.depth("q"), world.depth("dead")), (Some((0, 1)), Some((0, 0))));
    world.room.set(None);
    world.pass(Duration::from_millis(100));
    assert_eq!((world.depth("q"), world.depth("dead")), (None, Some((1, 0))));
}

#[test]
fn what_has_no_record_here_takes_room_for_the_one_that_it_gets() {
    let of_memory = QueueSettings { level: Some(Level::Memory), ..durable_dying_to("", Some("dead")) };
    for (settings, is_transient, is_pending_dead_letter) in [
        (dying_to("", Some("dead")), false, true),
        (of_memory, false, true),
        (dying_to("", Some("dead")), true, false),
        (durable_dying_to("", Some("dead")), true, false),
    ] {
        let world = TestWorld::new();
        let client = world.connect(1);
        client.declare_with("dead", &durable()).unwrap();
        client.declare_with("q", &settings).unwrap();
        client.consume("q", "c", 9);
        client.outgoing("", "q", &TestMessage { body: "m", is_transient, ..TestMessage::default() });
        world.room.set(Some(0));
        let before = journal(&world).len();
        assert_eq!(client.settle(Numbers::One(1), REJECT), Ok(1));
        let now = [usize::from(is_pending_dead_letter), usize::from(!is_pending_dead_letter)];
        let depths = ["q", "dead"].map(|name| world.depth(name).expect("it is there"));
        let case = format!("{settings:?}, transient: {is_transient}");
        assert_eq!(depths.map(|(ready, unsettled)| ready + unsettled), now, "{case}");
        assert_eq!(journal(&world).len(), before, "nothing is written without room: {case}");
        world.room.set(None);
        world.pass(Duration::from_millis(50));
        assert_eq!((world.depth("q"), world.depth("dead")), (Some((0, 0)), Some((1, 0))), "{case}");
        assert_eq!(journal(&world).len(), before + usize::from(!is_transient), "{case}");
    }
}

#[test]
fn what_dies_at_once_moves_by_and_by() {
    // With room: bytes of each message, the number of deaths, and how many messages have moved at once and
    // later.
    for (body_bytes, count, moved) in [(9, 7, [2, 4, 6, 7]), (9, 2, [2, 2, 2, 2]), (20_000, 3, [1, 2, 3, 3])]
    {
        let world = TestWorld::new();
        let client = world.connect(1);
        world.room.command_bytes_max.set(8192);
        client.declare_with("dead", &durable()).unwrap();
        let expires = Some(Duration::from_secs(1));
        client
            .declare_with("q", &QueueSettings { message_ttl: expires, ..durable_dying_to("", Some("dead")) })
            .unwrap();
        let body = "m".repeat(body_bytes);
        for _ in 0..count {
            client.outgoing("", "q", &TestMessage { body: &body, ..TestMessage::default() });
        }
        let mut pauses = [1000, 50, 50, 50].map(Duration::from_millis).into_iter();
        let found = moved.map(|_| {
            world.pass(pauses.next().expect("as many"));
            world.depth("dead").expect("it is there").0
        });
        assert_eq!(found, moved, "{count} of {body_bytes} bytes");
    }
}

#[test]
fn what_an_arrival_pushes_out_moves_as_the_queue_is_woken() {
    for (room, moves) in [(None, true), (Some(1 << 20), false)] {
        let world = TestWorld::new();
        let client = world.connect(1);
        client.declare_with("dead", &durable()).unwrap();
        let settings = QueueSettings { length_max: Some(1), ..durable_dying_to("", Some("dead")) };
        client.declare_with("q", &settings).unwrap();
        world.room.set(room);
        for body in ["first", "second"] {
            client.outgoing("", "q", &TestMessage { body, ..TestMessage::default() });
        }
        let (moved, stays) = (usize::from(moves), usize::from(!moves));
        check(&world, [1 + stays, moved], [1 + stays, moved], &format!("at once, {room:?}"));
        world.pass(Duration::from_millis(50));
        check(&world, [1, 1], [1, 1], &format!("later, {room:?}"));
    }
}
