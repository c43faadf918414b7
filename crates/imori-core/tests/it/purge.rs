//! A purge drops ready messages for good; unsettled and delayed ones stay.

use std::time::Duration;

use imori_core::broker::{self, Actor};
use imori_core::confirm::{Confirm, Level};
use imori_core::delivery::Outcome;
use imori_core::error::BrokerError;
use imori_core::outbound::Numbers;
use imori_core::queue::QueueSettings;
use imori_core::world::World;
use imori_testkit::{Caller, TestMessage, TestWorld};

use crate::durable::{durable, durable_dying_to, journal};
use crate::restored::{beginning, held, ready, restored};

fn outgoing(body: &str) -> TestMessage<'_> {
    TestMessage { body, ..TestMessage::default() }
}

fn purge(client: &Caller<'_>, name: &str) -> Result<(usize, Confirm), BrokerError> {
    broker::purge(client.world, &client.actor(), name.as_bytes())
}

#[test]
fn what_waited_does_not_come_back_and_what_is_out_does() {
    let world = TestWorld::new();
    let client = world.connect(1);
    client.declare_with("dead", &durable()).unwrap();
    client.declare_with("q", &durable_dying_to("", Some("dead"))).unwrap();
    client.consume("q", "c", 2);
    for body in ["a", "b", "c", "d"] {
        client.outgoing("", "q", &outgoing(body));
    }
    client.outgoing("", "q", &TestMessage { is_transient: true, ..outgoing("e") });
    // A released message is ready like the others.
    client.settle(Numbers::One(2), Outcome::Release { failed: false }).unwrap();
    client.outgoing("", "q", &TestMessage { delay_ms: 1_000, ..outgoing("later") });
    assert_eq!(client.read(), "c:a;c:b;c!:b;");
    let before = journal(&world).len();
    assert_eq!(world.depth("q"), Some((3, 2)));
    assert_eq!(purge(&client, "q"), Ok((3, Confirm::of(Level::Disk, world.appended()))));
    let whole = journal(&world);
    assert_eq!(world.depth("q"), Some((0, 2)), "what is out stays");
    assert_eq!(purge(&client, "q").map(|(count, _)| count), Ok(0));
    // A purge dead-letters nothing.
    assert_eq!((world.depth("dead"), world.dead_lettered()), (Some((0, 0)), 0));
    for (len, expected) in [(before, 5), (whole.len(), 3)] {
        let back = restored(&beginning(&whole, len), world.now());
        assert_eq!(held(&back, "q").len(), expected, "{len} records");
    }
    let back = restored(&whole, world.now());
    back.pass(Duration::from_secs(1));
    let left: Vec<String> = ready(&back, "q").into_iter().map(|(_, text)| text).collect();
    let first = |text: &String| text.split(' ').next().map(str::to_owned);
    assert_eq!(left.iter().filter_map(first).collect::<Vec<_>>(), ["a", "b", "later"]);
}

#[test]
fn the_answer_waits_as_long_as_a_message_of_the_queue_does() {
    let levels = [(Some(Level::Memory), false), (Some(Level::Os), true), (None, true)];
    for (level, is_recorded) in levels {
        let world = TestWorld::new();
        let client = world.connect(1);
        client.declare_with("q", &QueueSettings { level, ..durable() }).unwrap();
        client.outgoing("", "q", &outgoing("a"));
        let before = journal(&world).len();
        let (_, confirm) = purge(&client, "q").unwrap();
        assert_eq!(confirm, Confirm::of(level.unwrap_or(Level::Disk), world.appended()));
        assert_eq!(journal(&world).len() > before, is_recorded, "{level:?}");
    }
    let world = TestWorld::new();
    let client = world.connect(1);
    client.declare("q");
    client.send("q", "a");
    assert_eq!(purge(&client, "q"), Ok((1, Confirm::of(Level::Memory, world.appended()))));
    assert!(journal(&world).is_empty());
}

#[test]
fn who_has_no_right_to_a_queue_purges_nothing() {
    let world = TestWorld::new();
    let (client, other) = (world.connect(1), world.connect(2));
    let mine = QueueSettings { exclusive_to: Some(client.id), ..QueueSettings::default() };
    client.declare_with("mine", &mine).unwrap();
    client.send("mine", "a");
    assert_eq!(purge(&other, "mine"), Err(BrokerError::Locked("mine".into())));
    assert_eq!(purge(&other, "none"), Err(BrokerError::NoQueue("none".into())));
    let nobody = imori_core::authorize::Identity::nobody();
    let eve = Actor { identity: &nobody, ..client.actor() };
    assert!(matches!(broker::purge(&world, &eve, b"mine"), Err(BrokerError::Refused(_))));
    assert_eq!(world.depth("mine"), Some((1, 0)));
    assert_eq!(purge(&client, "mine").map(|(count, _)| count), Ok(1));
}
