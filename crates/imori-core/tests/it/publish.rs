use imori_core::broker::{self, Repetition, declare_exchange};
use imori_core::error::BrokerError;
use imori_core::message::{Address, OriginId, Properties, Publication};
use imori_core::queue::{Overflow, QueueSettings};
use imori_core::route::{ExchangeKind, RouteError, Settings};
use imori_core::world::Counter;
use imori_testkit::TestWorld;

#[test]
fn each_kind_of_exchange_chooses_its_queues() {
    let world = TestWorld::new();
    let client = world.connect(1);
    for (name, kind) in [
        ("direct", ExchangeKind::Direct),
        ("fanout", ExchangeKind::Fanout),
        ("topic", ExchangeKind::Topic),
        ("headers", ExchangeKind::Headers),
    ] {
        let actor = client.actor();
        declare_exchange(&world, &actor, name.as_bytes(), kind, Settings::default()).unwrap();
        let queue = client.declare(&format!("{name}-ab"));
        client.bind(name, "a.b", queue).unwrap();
        client.bind(name, "a.b", queue).unwrap();
        let queue = client.declare(&format!("{name}-any"));
        client.bind(name, "a.*", queue).unwrap();
    }
    for (exchange, subject, expected) in [
        ("", "direct-ab", "direct-ab"),
        ("", "nobody", ""),
        ("direct", "a.b", "direct-ab"),
        ("direct", "a.*", "direct-any"),
        ("direct", "b", ""),
        ("fanout", "whatever", "fanout-ab fanout-any"),
        ("topic", "a.b", "topic-ab topic-any"),
        ("topic", "a.c", "topic-any"),
        ("topic", "a", ""),
        // Without arguments every message matches.
        ("headers", "", "headers-ab headers-any"),
    ] {
        let receivers = client.publish(exchange, subject, "m").receivers;
        let mut reached = Vec::new();
        for queue in ["direct", "fanout", "topic", "headers"] {
            for queue in [format!("{queue}-ab"), format!("{queue}-any")] {
                client.consume(&queue, &queue, 0);
                let reader = client.read_all();
                if !reader.is_empty() {
                    reached.push(queue);
                }
            }
        }
        // The consumers of this row are gone before the next row.
        client.disconnect();
        world.connect(1);
        assert_eq!(reached.join(" "), expected, "{exchange} {subject}");
        assert_eq!(receivers, reached.len(), "{exchange} {subject}");
    }
    assert_eq!(world.counted(Counter::Unroutable), 3);
    assert_eq!(world.charged(), 0);
}

#[test]
fn an_exchange_that_is_not_there_is_an_error() {
    let world = TestWorld::new();
    let client = world.connect(1);
    let error = client.try_publish("nowhere", "a", "", "m").unwrap_err();
    assert_eq!(error, BrokerError::Route(RouteError::NoExchange("nowhere".into())));
}

#[test]
fn a_message_waits_for_its_consumer_and_is_settled_once() {
    let world = TestWorld::new();
    let (sender, reader) = (world.connect(1), world.connect(2));
    sender.declare("q");
    sender.send("q", "1");
    assert_eq!(world.depth("q"), Some((1, 0)));
    reader.consume("q", "c", 2);
    for body in ["2", "3"] {
        sender.send("q", body);
    }
    assert_eq!(reader.read(), "c:1;c:2;");
    assert_eq!(world.depth("q"), Some((1, 2)));
    reader.accept(1);
    assert_eq!(reader.read(), "c:3;");
    reader.accept(2);
    reader.accept(3);
    assert_eq!((world.depth("q"), world.charged()), (Some((0, 0)), 0));
}

#[test]
fn a_full_queue_refuses_and_that_is_not_a_return() {
    let world = TestWorld::new();
    let client = world.connect(1);
    let settings =
        QueueSettings { length_max: Some(1), overflow: Overflow::RejectPublish, ..QueueSettings::default() };
    client.declare_with("q", &settings).unwrap();
    assert_eq!(client.send("q", "1").refused_by, None);
    let report = client.send("q", "2");
    assert_eq!((report.receivers, report.refused_by), (0, Some("q".into())));
    assert_eq!(world.counted(Counter::Unroutable), 0);
}

#[test]
fn a_consumer_who_does_not_read_leaves_the_messages_in_the_queue() {
    let world = TestWorld::new();
    let (sender, reader) = (world.connect(1), world.connect(2));
    sender.declare("q");
    reader.consume("q", "c", 0);
    let body = "x".repeat(60);
    for _ in 0..20 {
        sender.send("q", &body);
    }
    let (ready, _) = world.depth("q").unwrap();
    assert!(ready > 10, "{ready}");
    assert_eq!(reader.read_all(), format!("c:{body};").repeat(20));
    assert_eq!(world.depth("q"), Some((0, 0)));
}

#[test]
fn a_run_keeps_its_order_across_all_that_one_session_reads() {
    let world = TestWorld::new();
    let (reader, sender) = (world.connect(1), world.connect(2));
    for (queue, label) in [("p", "p"), ("q", "q")] {
        let id = reader.declare(queue);
        reader.bind("amq.topic", "t", id).unwrap();
        reader.consume(queue, label, 9);
    }
    reader.subscribe("t", "a");
    reader.subscribe("#", "b");
    let properties = Properties::new(OriginId::BROKER);
    let run = [b"1", b"2", b"3"].map(|body| Publication::new(&properties, b"", body));
    let (address, mut repetition) = (Address::new(b"amq.topic", b"t"), Repetition::default());
    let sent = broker::publish_again(&world, &sender.actor(), &address, &run, &mut repetition);
    assert_eq!(sent.unwrap().receivers, 12);
    let queues = "p:1;q:1;p:2;q:2;p:3;q:3;";
    let subscriptions = "a:1;b:1;a:2;b:2;a:3;b:3;";
    assert_eq!(reader.read(), [queues, subscriptions].concat());
}
