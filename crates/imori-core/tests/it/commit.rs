use imori_core::broker::{self, Annotations, Step};
use imori_core::delivery::Outcome;
use imori_core::error::BrokerError;
use imori_core::memory::Gauge;
use imori_core::message::{Address, Message, MessageView, OriginId, Properties};
use imori_core::outbound::{Numbers, SessionId};
use imori_core::queue::{Overflow, QueueSettings};
use imori_core::route::RouteError;
use imori_core::world::{Counter, World};
use imori_testkit::{Caller, TestWorld, dying_to};

fn publish(gauge: &Gauge, exchange: &str, subject: &str, body: &str) -> Step {
    let view =
        MessageView { properties: &Properties::new(OriginId::BROKER), text: b"", body: body.as_bytes() };
    let message = Message::store(&view, None, gauge);
    Step::Publish {
        address: Address::new(exchange.as_bytes(), subject.as_bytes()),
        copies: Vec::new(),
        message,
    }
}

fn settle(numbers: Numbers, outcome: Outcome) -> Step {
    Step::Settle { session: SessionId(0), numbers, outcome, annotations: None }
}

fn commit(client: &Caller<'_>, steps: &[Step]) -> Result<usize, BrokerError> {
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
    assert_eq!(world.counted(Counter::Published), 3 + 5);
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
    assert_eq!((world.counted(Counter::Unroutable), world.charged()), (1, 0));
}

/// Each step sees only the deliveries that earlier steps left, and all of them.
#[test]
fn steps_that_mean_several_deliveries_settle_each_of_them_once() {
    let of = |number, reader| settle(Numbers::UpToOf(number, reader), Outcome::Accept);
    let up_to = |number| settle(Numbers::UpTo(number), Outcome::Accept);
    type Steps = fn(&dyn Fn(u64, bool) -> Step, &dyn Fn(u64) -> Step) -> Vec<Step>;
    let rows: [(Steps, (usize, usize)); 7] = [
        (|of, _| vec![of(2, false)], (1, 3)),
        (|of, _| vec![of(1, false), of(2, false), of(5, false)], (0, 3)),
        (|of, _| vec![of(5, false), of(6, true)], (0, 0)),
        (|of, _| vec![of(6, true), of(5, false)], (0, 0)),
        (|of, up_to| vec![of(5, false), up_to(4), of(6, true)], (0, 0)),
        (|of, up_to| vec![up_to(3), of(4, true), of(5, false)], (0, 1)),
        (|_, up_to| vec![up_to(1), up_to(3), up_to(6)], (0, 0)),
    ];
    for (row, (steps, left)) in rows.into_iter().enumerate() {
        let world = TestWorld::new();
        let client = world.connect(1);
        let readers = ["a", "b"].map(|name| {
            client.declare(name);
            client.consume(name, name, 9)
        });
        // Deliveries 1, 2 and 5 come from one queue, and 3, 4 and 6 from the other.
        for name in ["a", "a", "b", "b", "a", "b"] {
            client.send(name, "m");
        }
        let steps = steps(&|number, is_b| of(number, readers[usize::from(is_b)]), &up_to);
        assert_eq!(commit(&client, &steps), Ok(0), "row {row}");
        let unsettled = ["a", "b"].map(|name| world.depth(name).expect("it is there").1);
        assert_eq!((unsettled[0], unsettled[1]), left, "row {row}");
    }
}

#[test]
fn annotations_come_with_the_commit_and_go_with_a_dead_letter() {
    let world = TestWorld::new();
    let client = world.connect(1);
    let full =
        QueueSettings { length_max: Some(0), overflow: Overflow::RejectPublish, ..QueueSettings::default() };
    client.declare_with("full", &full).unwrap();
    client.declare("dead");
    let limited = QueueSettings { delivery_limit: Some(0), ..dying_to("", Some("dead")) };
    client.declare_with("limited", &limited).unwrap();
    client.declare("q");
    let noted = |number, failed| Step::Settle {
        session: SessionId(0),
        numbers: Numbers::One(number),
        outcome: Outcome::Release { failed },
        annotations: Some(Annotations {
            added: Box::from(*b"+"),
            merge: |before, more| Some([before.unwrap_or_default(), more].concat().into()),
        }),
    };
    let annotations = |name, sequence| {
        let id = world.queue(name).unwrap();
        world.with_queue(id, |queue| queue.annotations(sequence).map(<[u8]>::to_vec)).unwrap()
    };
    client.consume("q", "c", 9);
    client.send("q", "a");
    // Each release is followed by another delivery.
    commit(&client, &[noted(1, false)]).unwrap();
    assert_eq!(annotations("q", 1), Some(b"+".to_vec()));
    let refused = commit(&client, &[noted(2, false), publish(world.gauge(), "", "full", "x")]);
    assert!(matches!(refused, Err(BrokerError::QueueFull(_))), "{refused:?}");
    assert_eq!(annotations("q", 1), Some(b"+".to_vec()), "a refused transaction adds nothing");
    commit(&client, &[noted(2, true)]).unwrap();
    assert_eq!(annotations("q", 1), Some(b"++".to_vec()));

    client.consume("limited", "l", 9);
    client.consume("dead", "d", 9);
    client.send("limited", "b");
    commit(&client, &[noted(4, true)]).unwrap();
    assert_eq!(world.depth("dead"), Some((0, 1)));
    assert_eq!(annotations("dead", 1), Some(b"+".to_vec()));
}
