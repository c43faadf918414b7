use imori_core::broker;
use imori_core::delivery::Outcome;
use imori_core::error::BrokerError;
use imori_core::outbound::{Numbers, SessionId};
use imori_testkit::TestWorld;

const RELEASE: Outcome = Outcome::Release { failed: false };

#[test]
fn released_messages_go_to_another_in_their_order() {
    let world = TestWorld::new();
    let (one, two) = (world.connect(1), world.connect(2));
    one.declare("q");
    for body in ["1", "2", "3"] {
        one.send("q", body);
    }
    one.consume("q", "one", 2);
    assert_eq!(one.read(), "one:1;one:2;");
    two.consume("q", "two", 9);
    assert_eq!(two.read(), "two:3;");
    // The first consumer has credit again as soon as it releases; both take turns.
    assert_eq!(one.settle(Numbers::UpTo(2), RELEASE), Ok(2));
    assert_eq!((one.read() + &two.read()).matches('!').count(), 2);
    assert_eq!(world.depth("q"), Some((0, 3)));
}

#[test]
fn what_a_lost_connection_had_goes_to_others_as_failed() {
    let world = TestWorld::new();
    let (lost, other) = (world.connect(1), world.connect(2));
    lost.declare("q");
    lost.consume("q", "lost", 9);
    for body in ["1", "2", "3"] {
        lost.send("q", body);
    }
    lost.settle(Numbers::One(2), Outcome::Accept).unwrap();
    other.consume("q", "other", 9);
    lost.disconnect();
    assert_eq!(other.read(), "other!:1;other!:3;");
    assert_eq!(world.depth("q"), Some((0, 2)));
    other.disconnect();
    assert_eq!(world.depth("q"), Some((2, 0)));
}

#[test]
fn only_unsettled_deliveries_of_ones_own_can_be_settled() {
    let world = TestWorld::new();
    let (reader, thief) = (world.connect(1), world.connect(2));
    reader.declare("q");
    reader.consume("q", "c", 9);
    for body in ["1", "2", "3"] {
        reader.send("q", body);
    }
    // SECURITY LIM-16: numbers from outside.
    for number in [0, 4, 1 << 31, 1 << 53, 1 << 63, u64::MAX] {
        for numbers in [Numbers::One(number), Numbers::UpTo(number)] {
            assert_eq!(reader.settle(numbers, Outcome::Accept), Err(BrokerError::NoDelivery(number)));
        }
    }
    assert_eq!(thief.settle(Numbers::One(1), Outcome::Accept), Err(BrokerError::NoDelivery(1)));
    let elsewhere =
        broker::settle(&world, &reader.actor(), SessionId(u16::MAX), Numbers::One(1), Outcome::Accept);
    assert_eq!(elsewhere, Err(BrokerError::NoDelivery(1)));
    reader.accept(2);
    assert_eq!(reader.settle(Numbers::UpTo(2), Outcome::Accept), Err(BrokerError::NoDelivery(2)));
    assert_eq!(reader.settle(Numbers::UpTo(3), Outcome::Accept), Ok(2));
    assert_eq!(world.depth("q"), Some((0, 0)));
}

#[test]
fn many_queues_are_settled_and_refilled_at_once() {
    let world = TestWorld::new();
    let (sender, reader) = (world.connect(1), world.connect(2));
    let names: Vec<String> = (0..50).map(|number| format!("q{number}")).collect();
    for name in &names {
        sender.declare(name);
        reader.consume(name, name, 1);
    }
    for body in ["1", "2"] {
        for name in &names {
            sender.send(name, body);
            reader.read();
        }
    }
    assert!(names.iter().all(|name| world.depth(name) == Some((1, 1))));
    assert_eq!(reader.settle(Numbers::UpTo(50), Outcome::Accept), Ok(50));
    let text = reader.read_all();
    assert!(names.iter().all(|name| text.contains(&format!("{name}:2;"))), "{text}");
}

#[test]
fn a_cancelled_consumer_gets_no_more_and_still_settles() {
    let world = TestWorld::new();
    let reader = world.connect(1);
    reader.declare("q");
    let id = reader.consume("q", "c", 9);
    reader.send("q", "1");
    reader.cancel(id);
    reader.cancel(id);
    reader.send("q", "2");
    assert_eq!(reader.read(), "c:1;");
    reader.accept(1);
    assert_eq!(world.depth("q"), Some((1, 0)));
}

#[test]
fn an_exclusive_consumer_keeps_others_out() {
    let world = TestWorld::new();
    let (one, two) = (world.connect(1), world.connect(2));
    one.declare("q");
    let id = one.try_consume("q", "one", 1, true).unwrap();
    for is_exclusive in [true, false] {
        let refused = two.try_consume("q", "two", 1, is_exclusive);
        assert_eq!(refused, Err(BrokerError::ConsumedExclusively("q".into())));
    }
    one.cancel(id);
    two.consume("q", "two", 1);
    assert_eq!(one.try_consume("q", "one", 1, true), Err(BrokerError::ConsumedExclusively("q".into())));
    // The refused consumers have left nothing behind.
    one.send("q", "m");
    assert_eq!((one.read(), two.read()), (String::new(), "two:m;".to_owned()));
}
