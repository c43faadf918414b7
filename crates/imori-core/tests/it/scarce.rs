//! The disk has little room: what is declared is refused, and what dies waits in its queue.

use std::time::Duration;

use imori_core::broker::{self, Step};
use imori_core::delivery::Outcome;
use imori_core::error::BrokerError;
use imori_core::message::{Address, Message, MessageView};
use imori_core::outbound::{Numbers, SessionId};
use imori_core::queue::{Overflow, QueueSettings};
use imori_core::route::{ExchangeKind, Settings};
use imori_core::world::World;

use crate::durable::{durable, durable_dying_to, journal};
use crate::restored::{ready, restored};
use crate::world::{Client, Mail, TestWorld};

const REJECT: Outcome = Outcome::Reject;

#[test]
fn what_would_stay_on_a_full_disk_is_not_declared() {
    let world = TestWorld::new();
    let client = world.connect(1);
    let there = client.declare_with("there", &durable()).unwrap();
    world.may_declare.set(false);
    let full = |name: &str| Err(BrokerError::DiskFull(name.into()));
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
    assert_eq!(broker::delete_queue(&world, &client.actor(), b"there"), Ok(0));
}

/// A queue with a message that somebody has, and where its dead letters go.
fn one_out(world: &TestWorld) -> Client<'_> {
    let client = world.connect(1);
    client.declare_with("dead", &durable()).expect("it is new");
    client.declare_with("q", &durable_dying_to("", Some("dead"))).expect("it is new");
    client.consume("q", "c", 9);
    client.mail("", "q", &Mail { body: "m", ..Mail::default() });
    client
}

/// What waits in the two queues, and what is out, now and after the next start, which has room.
fn check(world: &TestWorld, now: [usize; 2], later: [usize; 2], how: &str) {
    let depths = ["q", "dead"].map(|name| world.depth(name).expect("it is there"));
    assert_eq!(depths.map(|(ready, unsettled)| ready + unsettled), now, "{how}");
    let back = restored(&journal(world), world.now());
    assert_eq!(["q", "dead"].map(|name| ready(&back, name).len()), later, "{how}, after a start");
}

#[test]
fn what_is_rejected_is_in_one_queue_with_room_or_without() {
    type Reject = fn(&TestWorld, &Client<'_>);
    let alone: Reject = |_, client| assert_eq!(client.settle(Numbers::One(1), REJECT), Ok(1));
    let in_a_transaction: Reject = |world, client| {
        let head = Mail::default().head();
        let view = MessageView { head: &head, text: b"", body: b"other" };
        let steps = [
            Step::Settle { session: SessionId(0), numbers: Numbers::One(1), outcome: REJECT },
            Step::Publish {
                address: Address::new(b"", b"dead"),
                message: Message::store(&view, None, world.gauge()),
            },
        ];
        broker::commit(world, &client.actor(), &steps).unwrap();
    };
    for (how, reject, published) in [("alone", alone, 0), ("in a transaction", in_a_transaction, 1)] {
        for (room, lingers) in [(None, false), (Some(0), true), (Some(1 << 20), false)] {
            let world = TestWorld::new();
            let client = one_out(&world);
            world.room.set(room);
            reject(&world, &client);
            let now = [usize::from(lingers), usize::from(!lingers) + published];
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
        client.mail("", "q", &Mail { body: "taken", ..Mail::default() });
        world.room.set(Some(0));
        let report = client.mail("", "q", &Mail { body: "refused", delay_ms, ..Mail::default() });
        assert_eq!(report.refused_by, Some("q".into()), "{delay_ms}");
        check(&world, [2, 0], [1, 1], &format!("{delay_ms}"));
        world.room.set(None);
        world.pass(Duration::from_millis(50));
        check(&world, [1, 1], [1, 1], &format!("{delay_ms}, later"));
    }
}
