//! Getting one message without being a consumer.

use std::time::Duration;

use imori_core::broker::{self, GetOptions, Got};
use imori_core::delivery::Outcome;
use imori_core::error::BrokerError;
use imori_core::outbound::{Numbers, SessionId};
use imori_core::queue::QueueSettings;
use imori_core::world::World;
use imori_testkit::{Caller, TestMessage, TestWorld, dying_to};

use crate::durable::{durable, journal};
use crate::restored::restored;

fn get(client: &Caller<'_>, settles: bool) -> Result<Got, BrokerError> {
    let label = |left: usize| format!("get {left}").into_bytes().into();
    let options = GetOptions { session: SessionId(0), label: &label, settles };
    broker::get(client.world, &client.actor(), b"q", &options)
}

#[test]
fn each_get_gives_the_next_message_and_tells_how_many_wait() {
    for settles in [false, true] {
        let world = TestWorld::new();
        let client = world.connect(1);
        client.declare("q");
        assert_eq!(get(&client, settles), Ok(Got::Empty));
        ["a", "b"].iter().for_each(|body| drop(client.send("q", body)));
        assert_eq!(get(&client, settles), Ok(Got::Delivered { left: 1 }));
        assert_eq!(get(&client, settles), Ok(Got::Delivered { left: 0 }));
        assert_eq!(get(&client, settles), Ok(Got::Empty));
        assert_eq!(client.read(), "get 1:a;get 0:b;");
        assert_eq!(world.depth("q"), Some((0, if settles { 2 } else { 0 })));
        // The client does not become a consumer.
        client.send("q", "c");
        assert_eq!((client.read(), world.depth("q").map(|(ready, _)| ready)), (String::new(), Some(1)));
    }
}

#[test]
fn what_somebody_got_is_settled_like_any_delivery() {
    let world = TestWorld::new();
    let client = world.connect(1);
    client.declare("dead");
    client.declare_with("q", &dying_to("", Some("dead"))).unwrap();
    ["a", "b", "c", "d"].iter().for_each(|body| drop(client.send("q", body)));
    (0..4).for_each(|left| assert_eq!(get(&client, true), Ok(Got::Delivered { left: 3 - left })));
    client.read();
    client.accept(1);
    client.settle(Numbers::One(2), Outcome::Release { failed: true }).unwrap();
    client.settle(Numbers::One(3), Outcome::Reject).unwrap();
    assert_eq!((world.depth("q"), world.depth("dead")), (Some((1, 1)), Some((1, 0))));
    assert_eq!(get(&client, true), Ok(Got::Delivered { left: 0 }));
    assert_eq!(client.read(), "get 0!:b;");
    client.disconnect();
    assert_eq!(world.depth("q"), Some((2, 0)), "what was not settled comes back");
}

#[test]
fn a_message_that_somebody_got_without_settling_does_not_come_back() {
    for (settles, left) in [(false, 0), (true, 1)] {
        let world = TestWorld::new();
        let client = world.connect(1);
        client.declare_with("q", &durable()).unwrap();
        client.outgoing("", "q", &TestMessage { body: "a", ..TestMessage::default() });
        assert_eq!(get(&client, settles), Ok(Got::Delivered { left: 0 }));
        assert_eq!(restored(&journal(&world), world.now()).depth("q"), Some((left, 0)), "{settles}");
    }
}

#[test]
fn what_has_expired_or_is_not_due_is_not_got() {
    let world = TestWorld::new();
    let client = world.connect(1);
    client.declare("q");
    client.outgoing("", "q", &TestMessage { body: "a", expiration_ms: Some(5), ..TestMessage::default() });
    client.outgoing("", "q", &TestMessage { body: "b", delay_ms: 1_000, ..TestMessage::default() });
    world.pass(Duration::from_millis(10));
    assert_eq!(get(&client, true), Ok(Got::Empty));
    world.pass(Duration::from_secs(1));
    assert_eq!(get(&client, true), Ok(Got::Delivered { left: 0 }));
    assert_eq!(client.read(), "get 0:b;");
}

#[test]
fn who_gets_has_the_right_to_the_queue_and_reads_whatever_waits_to_be_sent() {
    let world = TestWorld::new();
    let (client, other) = (world.connect(1), world.connect(2));
    assert_eq!(get(&client, true), Err(BrokerError::NoQueue("q".into())));
    let mine = QueueSettings { exclusive_to: Some(client.id), ..QueueSettings::default() };
    client.declare_with("q", &mine).unwrap();
    assert_eq!(get(&other, true), Err(BrokerError::Locked("q".into())));
    let body = "x".repeat(150);
    (0..4).for_each(|_| drop(client.send("q", &body)));
    // Beyond the limit for feeding consumers.
    (0..4).for_each(|left| assert_eq!(get(&client, true), Ok(Got::Delivered { left: 3 - left })));
    assert_eq!(client.read_all().matches("get ").count(), 4);
}
