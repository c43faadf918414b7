use std::time::Duration;

use imori_core::broker::{self, delete_queue};
use imori_core::delivery::Outcome;
use imori_core::error::BrokerError;
use imori_core::name::Name;
use imori_core::outbound::Numbers;
use imori_core::queue::QueueSettings;
use imori_core::world::World;
use imori_testkit::{TestWorld, dying_to};

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn a_queue_is_declared_again_as_it_is() {
    let world = TestWorld::new();
    let (client, other) = (world.connect(1), world.connect(2));
    let plain = QueueSettings::default();
    let id = client.declare("q");
    assert_eq!(client.declare_with("q", &plain), Ok(id));
    for (settings, property) in [
        (QueueSettings { is_durable: true, ..plain.clone() }, "durable"),
        (QueueSettings { is_auto_delete: true, ..plain.clone() }, "auto_delete"),
        (QueueSettings { exclusive_to: Some(client.id), ..plain.clone() }, "exclusive"),
        (QueueSettings { expires: Some(SECOND), ..plain.clone() }, "x-expires"),
        (QueueSettings { message_ttl: Some(SECOND), ..plain.clone() }, "x-message-ttl"),
        (QueueSettings { length_max: Some(1), ..plain.clone() }, "x-max-length"),
        (QueueSettings { length_bytes_max: Some(1), ..plain.clone() }, "x-max-length-bytes"),
        (QueueSettings { priority_max: Some(1), ..plain.clone() }, "x-max-priority"),
        (QueueSettings { delivery_limit: Some(1), ..plain }, "x-delivery-limit"),
        (dying_to("x", None), "x-dead-letter-exchange"),
    ] {
        let refused = client.declare_with("q", &settings);
        let Err(BrokerError::Inequivalent { name, difference }) = refused else { panic!("{refused:?}") };
        assert_eq!((name, difference.property), ("q".into(), property));
        // Who does not ask for a match takes it as it is.
        let taken = broker::declare_queue(&world, &other.actor(), b"q", &settings, false);
        assert_eq!(taken.map(|declared| declared.id), Ok(id));
    }
}

#[test]
fn nobody_comes_to_read_a_queue_that_is_about_to_go() {
    let world = TestWorld::new();
    let client = world.connect(1);
    let id = client.declare("q");
    world.with_queue(id, |queue| queue.retire());
    assert_eq!(client.try_consume("q", "c", 1, false), Err(BrokerError::NoQueue("q".into())));
}

#[test]
fn an_exclusive_queue_is_its_owners_and_goes_with_it() {
    let world = TestWorld::new();
    let (owner, other) = (world.connect(1), world.connect(2));
    let settings = QueueSettings { exclusive_to: Some(owner.id), ..QueueSettings::default() };
    let id = owner.declare_with("q", &settings).unwrap();
    owner.bind("amq.topic", "a", id).unwrap();
    let locked = || BrokerError::Locked("q".into());
    assert_eq!(other.declare_with("q", &settings), Err(locked()));
    assert_eq!(other.try_consume("q", "c", 1, false), Err(locked()));
    assert_eq!(broker::find_queue(&world, &other.actor(), b"q"), Err(locked()));
    // Every client may publish to it.
    assert_eq!(other.send("q", "m").receivers, 1);
    owner.consume("q", "c", 1);
    assert_eq!(owner.read(), "c:m;");
    other.disconnect();
    assert_eq!(world.depth("q"), Some((0, 1)));
    owner.disconnect();
    assert_eq!((world.depth("q"), world.bindings("amq.topic"), world.charged()), (None, 0, 0));
}

#[test]
fn an_auto_delete_queue_goes_with_its_last_consumer_however_that_goes() {
    let settings = QueueSettings { is_auto_delete: true, ..QueueSettings::default() };
    for is_cancelled in [true, false] {
        let world = TestWorld::new();
        let (one, two) = (world.connect(1), world.connect(2));
        let id = one.declare_with("q", &settings).unwrap();
        one.bind("amq.fanout", "", id).unwrap();
        assert_eq!(world.depth("q"), Some((0, 0)), "it never had a consumer");
        let reader = one.consume("q", "one", 1);
        two.consume("q", "two", 1);
        two.disconnect();
        assert_eq!(world.depth("q"), Some((0, 0)));
        one.send("q", "m");
        if is_cancelled {
            one.cancel(reader);
            // The queue of its message no longer exists.
            assert_eq!(one.settle(Numbers::One(1), Outcome::Release { failed: false }), Ok(1));
        } else {
            one.disconnect();
        }
        assert_eq!((world.depth("q"), world.bindings("amq.fanout"), world.charged()), (None, 0, 0));
    }
}

#[test]
fn a_deleted_queue_tells_its_consumers() {
    let world = TestWorld::new();
    let (one, two) = (world.connect(1), world.connect(2));
    let id = one.declare("q");
    one.consume("q", "c", 1);
    two.consume("q", "d", 1);
    for body in ["1", "2", "3"] {
        one.send("q", body);
    }
    assert_eq!(delete_queue(&world, &one.actor(), b"q"), Ok(1));
    let gone = Err(BrokerError::NoQueue(Name::from("q")));
    assert_eq!(delete_queue(&world, &one.actor(), b"q"), gone);
    assert_eq!((one.read(), two.read()), ("c:1;c lost q;".to_owned(), "d:2;d lost q;".to_owned()));
    assert_eq!(one.settle(Numbers::One(1), Outcome::Reject), Ok(1));
    // A new queue with the same name and slot is a different queue.
    let next = one.declare("q");
    assert_ne!(next, id);
    assert_eq!(two.settle(Numbers::One(1), Outcome::Release { failed: true }), Ok(1));
    assert_eq!((world.depth("q"), world.charged()), (Some((0, 0)), 0));
}

#[test]
fn a_queue_that_is_gone_is_not_bound() {
    let world = TestWorld::new();
    let client = world.connect(1);
    let id = client.declare("q");
    delete_queue(&world, &client.actor(), b"q").unwrap();
    client.bind("amq.topic", "a", id).unwrap();
    assert_eq!(world.bindings("amq.topic"), 0);
}

#[test]
fn messages_expire_by_themselves() {
    let world = TestWorld::new();
    let client = world.connect(1);
    client
        .declare_with("q", &QueueSettings { message_ttl: Some(SECOND), ..dying_to("", Some("d")) })
        .unwrap();
    client.declare("d");
    for body in ["1", "2", "3"] {
        client.send("q", body);
        world.pass(SECOND / 4);
    }
    // Each message was sent a quarter of a second after the previous one.
    for left in [2, 1, 0] {
        world.pass(SECOND / 4);
        assert_eq!(world.depth("q"), Some((left, 0)));
    }
    assert_eq!(world.depth("d"), Some((3, 0)));
    assert_eq!(world.pass(100 * SECOND), 0, "nothing is asked for that is not needed");
}

#[test]
fn an_idle_queue_expires_and_a_used_one_does_not() {
    let world = TestWorld::new();
    let client = world.connect(1);
    let settings = QueueSettings { expires: Some(SECOND), ..QueueSettings::default() };
    client.declare_with("q", &settings).unwrap();
    world.pass(SECOND * 3 / 4);
    client.declare_with("q", &settings).unwrap();
    world.pass(SECOND * 3 / 4);
    let reader = client.consume("q", "c", 1);
    world.pass(10 * SECOND);
    assert_eq!(world.depth("q"), Some((0, 0)));
    client.cancel(reader);
    client.send("q", "m");
    world.pass(SECOND * 3 / 4);
    assert_eq!(world.depth("q"), Some((1, 0)), "only consumers and declarations count");
    world.pass(SECOND / 4);
    assert_eq!((world.depth("q"), world.charged()), (None, 0));
}

#[test]
fn there_are_so_many_queues_and_no_more() {
    let world = TestWorld::new();
    let client = world.connect(1);
    let plain = QueueSettings::default();
    let mut made = 0;
    while client.declare_with(&format!("q{made}"), &plain).is_ok() {
        made += 1;
        assert!(made < 10_000);
    }
    assert_eq!(client.declare_with("one more", &plain), Err(BrokerError::TooManyQueues));
    assert_eq!(world.depth("one more"), None);
    assert_eq!(client.send("q0", "m").receivers, 1);
}
