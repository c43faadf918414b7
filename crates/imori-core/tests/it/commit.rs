use imori_core::broker::{self, Step};
use imori_core::delivery::Outcome;
use imori_core::error::BrokerError;
use imori_core::memory::Gauge;
use imori_core::message::{Address, Head, Message, MessageView, OriginId};
use imori_core::outbound::{Numbers, SessionId};
use imori_core::queue::{Overflow, QueueSettings};
use imori_core::route::RouteError;
use imori_core::world::{Event, World};

use crate::world::{Client, TestWorld};

fn publish(gauge: &Gauge, exchange: &str, subject: &str, body: &str) -> Step {
    let view = MessageView { head: &Head::new(OriginId::BROKER), text: b"", body: body.as_bytes() };
    let message = Message::store(&view, None, gauge);
    Step::Publish { address: Address::new(exchange.as_bytes(), subject.as_bytes()), message }
}

fn settle(numbers: Numbers, outcome: Outcome) -> Step {
    Step::Settle { session: SessionId(0), numbers, outcome }
}

fn commit(client: &Client<'_>, steps: &[Step]) -> Result<usize, BrokerError> {
    broker::commit(client.world, &client.actor(), steps).map(|report| report.receivers)
}

#[test]
fn all_steps_are_applied_together() {
    let world = TestWorld::new();
    let (client, reader) = (world.connect(1), world.connect(2));
    for name in ["in", "a", "b"] {
        client.declare(name);
    }
    client.consume("in", "c", 2);
    for body in ["1", "2", "3"] {
        client.send("in", body);
    }
    reader.subscribe("t", "live");
    reader.consume("a", "a", 9);
    let inbox = reader.inbox("i");
    let gauge = world.gauge();
    let steps = [
        publish(gauge, "", "a", "x"),
        settle(Numbers::One(1), Outcome::Accept),
        publish(gauge, "", "a", "y"),
        publish(gauge, "", "b", "z"),
        publish(gauge, "amq.topic", "t", "l"),
        publish(gauge, "", &inbox, "r"),
        settle(Numbers::One(2), Outcome::Release { failed: false }),
    ];
    assert_eq!(commit(&client, &steps), Ok(5));
    assert_eq!(client.read(), "c:1;c:2;c!:2;c:3;");
    assert_eq!(reader.read(), "live:l;i:r;a:x;a:y;");
    assert_eq!((world.depth("b"), world.depth("in")), (Some((1, 0)), Some((0, 2))));
    assert_eq!(world.counted(Event::Published), 3 + 5);
}

#[test]
fn what_is_not_possible_leaves_everything_as_it_was() {
    let world = TestWorld::new();
    let client = world.connect(1);
    client.declare("in");
    client.declare("open");
    let full =
        QueueSettings { length_max: Some(1), overflow: Overflow::RejectPublish, ..QueueSettings::default() };
    client.declare_with("full", &full).unwrap();
    client.consume("in", "c", 9);
    for body in ["1", "2", "3"] {
        client.send("in", body);
    }
    let gauge = world.gauge();
    let accept = |numbers| settle(numbers, Outcome::Accept);
    let no_exchange = BrokerError::Route(RouteError::NoExchange("nowhere".into()));
    for (wrong, expected) in [
        (vec![publish(gauge, "nowhere", "", "m")], no_exchange),
        (vec![accept(Numbers::One(4))], BrokerError::NoDelivery(4)),
        (vec![accept(Numbers::UpTo(u64::MAX))], BrokerError::NoDelivery(u64::MAX)),
        (vec![accept(Numbers::One(3)), accept(Numbers::One(3))], BrokerError::NoDelivery(3)),
        (vec![accept(Numbers::UpTo(3)), accept(Numbers::One(2))], BrokerError::NoDelivery(2)),
        (
            vec![publish(gauge, "", "full", "m"), publish(gauge, "", "full", "m")],
            BrokerError::QueueFull("full".into()),
        ),
    ] {
        let mut steps = vec![publish(gauge, "", "open", "m"), accept(Numbers::One(1))];
        steps.extend(wrong);
        assert_eq!(commit(&client, &steps), Err(expected));
        assert_eq!((world.depth("open"), world.depth("full")), (Some((0, 0)), Some((0, 0))));
        assert_eq!(world.depth("in"), Some((0, 3)), "nothing is settled");
    }
    assert_eq!(commit(&client, &[publish(gauge, "", "full", "m"), accept(Numbers::UpTo(3))]), Ok(1));
    assert_eq!((world.depth("full"), world.depth("in")), (Some((1, 0)), Some((0, 0))));
}

#[test]
fn a_commit_of_nothing_and_to_nobody_is_fine() {
    let world = TestWorld::new();
    let client = world.connect(1);
    assert_eq!(commit(&client, &[]), Ok(0));
    assert_eq!(commit(&client, &[publish(world.gauge(), "", "nobody", "m")]), Ok(0));
    assert_eq!((world.counted(Event::Unroutable), world.charged()), (1, 0));
}
