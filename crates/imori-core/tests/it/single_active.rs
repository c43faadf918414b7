//! A queue with a single active consumer: one gets all deliveries, until another takes its place.

use imori_core::broker;
use imori_core::delivery::Outcome;
use imori_core::error::BrokerError;
use imori_core::outbound::{Credit, Numbers, SessionId};
use imori_core::queue::QueueSettings;
use imori_core::stream::CursorOptions;
use imori_core::world::World;
use imori_testkit::{Caller, TestWorld};

use crate::durable::{durable, journal};
use crate::restored::restored;

fn single_active() -> QueueSettings {
    QueueSettings { is_single_active: true, ..durable() }
}

fn send(client: &Caller<'_>, bodies: &str) {
    bodies.split(' ').for_each(|body| drop(client.send("q", body)));
}

#[test]
fn one_consumer_gets_all_and_the_next_takes_over_when_it_goes() {
    for how in ["cancel", "disconnect"] {
        let world = TestWorld::new();
        let [one, two, three] = [1, 2, 3].map(|slot| world.connect(slot));
        one.declare_with("q", &single_active()).unwrap();
        let reader = one.consume("q", "one", 2);
        two.consume("q", "two", 2);
        three.consume("q", "three", 2);
        send(&three, "a b c d e");
        assert_eq!(
            (one.read(), two.read(), three.read()),
            ("one:a;one:b;".into(), String::new(), String::new())
        );
        one.accept(1);
        assert_eq!(one.read(), "one:c;", "it is served for as long as it is there");
        let expected = match how {
            // It keeps its deliveries; the ready messages go to the next consumer.
            "cancel" => {
                one.cancel(reader);
                "two:d;two:e;"
            }
            _ => {
                one.disconnect();
                "two:d;two:e;"
            }
        };
        assert_eq!((two.read(), three.read()), (expected.into(), String::new()), "{how}");
        two.settle(Numbers::UpTo(2), Outcome::Accept).unwrap();
        let released = if how == "cancel" { "" } else { "two!:b;two!:c;" };
        assert_eq!((two.read(), three.read()), (released.into(), String::new()), "{how}");
    }
}

#[test]
fn a_full_active_consumer_is_waited_for() {
    let world = TestWorld::new();
    let [one, two] = [1, 2].map(|slot| world.connect(slot));
    one.declare_with("q", &single_active()).unwrap();
    one.consume("q", "one", 1);
    two.consume("q", "two", 9);
    send(&two, "a b");
    assert_eq!((one.read(), two.read(), world.depth("q")), ("one:a;".into(), String::new(), Some((1, 1))));
    one.accept(1);
    assert_eq!((one.read(), two.read()), ("one:b;".into(), String::new()));
}

#[test]
fn the_successor_is_the_one_of_the_highest_priority_and_of_equals_the_first() {
    let world = TestWorld::new();
    let client = world.connect(1);
    let queue = client.declare_with("q", &single_active()).unwrap();
    let consume = |label: &str, priority| {
        let options = broker::ConsumeOptions {
            session: SessionId(0),
            label: label.as_bytes().into(),
            settles: false,
            credit: Credit::Unlimited,
            priority,
            is_exclusive: false,
            selector: None,
            drops_unwanted: false,
            is_browser: false,
            name: None,
            cursor: CursorOptions::default(),
        };
        broker::consume(&world, &client.actor(), queue, b"q", options, |_, _| ()).unwrap()
    };
    let all = [("a", 0), ("b", 5), ("c", 9), ("d", 9), ("e", 0)];
    let mut readers: Vec<_> =
        all.iter().map(|(label, priority)| (*label, consume(label, *priority))).collect();
    let mut served = Vec::new();
    while !readers.is_empty() {
        client.send("q", "m");
        let label = client.read().split(':').next().unwrap_or_default().to_owned();
        let at = readers.iter().position(|(reader, _)| *reader == label).expect("one of them was served");
        client.cancel(readers.remove(at).1);
        served.push(label);
    }
    // A later consumer does not displace the active one, even with a higher priority.
    assert_eq!(served, ["a", "c", "d", "b", "e"]);
}

#[test]
fn nobody_has_such_a_queue_for_itself() {
    let world = TestWorld::new();
    let client = world.connect(1);
    client.declare_with("q", &single_active()).unwrap();
    let refused = client.try_consume("q", "c", 1, true).map(drop);
    assert_eq!(refused, Err(BrokerError::SingleActive("q".into())));
}

#[test]
fn a_start_finds_the_queue_as_it_was() {
    let world = TestWorld::new();
    world.connect(1).declare_with("q", &single_active()).unwrap();
    let back = restored(&journal(&world), world.now());
    let [one, two] = [1, 2].map(|slot| back.connect(slot));
    assert!(one.declare_with("q", &single_active()).is_ok(), "it is the same");
    let refused = one.declare_with("q", &durable());
    let Err(BrokerError::Inequivalent { difference, .. }) = refused else { panic!("{refused:?}") };
    assert_eq!(difference.property, "x-single-active-consumer");
    one.consume("q", "one", 0);
    two.consume("q", "two", 0);
    send(&one, "a b");
    assert_eq!((one.read(), two.read()), ("one:a;one:b;".into(), String::new()));
}
