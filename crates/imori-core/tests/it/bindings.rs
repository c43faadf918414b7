//! Bindings with arguments, also between exchanges: how they are removed, and what is left of them after a
//! crash.

use imori_core::broker::{self, DeleteOptions, bind_exchange, bind_queue, unbind_exchange, unbind_queue};
use imori_core::confirm::{Confirm, Level};
use imori_core::error::BrokerError;
use imori_core::id::QueueId;
use imori_core::message::Value;
use imori_core::name::Name;
use imori_core::route::{Arguments, ArgumentsError, BindingKey, ExchangeKind, RouteError, Settings, Syntax};
use imori_core::world::World;
use imori_testkit::{Caller, TestWorld};

use crate::durable::{durable, journal};
use crate::restored::{beginning, restored};

fn key(text: &str) -> BindingKey {
    BindingKey::new(Syntax::Amqp, text.as_bytes())
}

fn arguments(entries: &[(&str, &'static str)]) -> Arguments {
    Arguments::new(entries.iter().map(|(name, value)| (Name::from(*name), Value::text(value.as_bytes()))))
}

fn bind(client: &Caller<'_>, exchange: &str, with: &Arguments, queue: QueueId) -> Confirm {
    bind_queue(client.world, &client.actor(), exchange.as_bytes(), &key("k"), with, queue)
        .expect("both are there")
}

fn unbind(client: &Caller<'_>, exchange: &str, with: &Arguments, queue: QueueId) -> Confirm {
    unbind_queue(client.world, &client.actor(), exchange.as_bytes(), &key("k"), with, queue)
        .expect("both are there")
}

fn chain(client: &Caller<'_>, exchange: &str, to: &str) -> Result<Confirm, BrokerError> {
    let (actor, none) = (client.actor(), Arguments::NONE);
    bind_exchange(client.world, &actor, exchange.as_bytes(), &key("k"), &none, to.as_bytes())
}

fn unchain(client: &Caller<'_>, exchange: &str, to: &str) -> Result<Confirm, BrokerError> {
    let (actor, none) = (client.actor(), Arguments::NONE);
    unbind_exchange(client.world, &actor, exchange.as_bytes(), &key("k"), &none, to.as_bytes())
}

/// Number of queues that receive a message with these headers.
fn receivers(world: &TestWorld, exchange: &str, headers: &str) -> usize {
    let report = world.connect(9).try_publish(exchange, "k", headers, "m");
    report.map_or(0, |report| report.receivers)
}

#[test]
fn a_headers_exchange_routes_by_the_arguments_of_a_binding_and_does_so_after_a_crash() {
    let world = TestWorld::new();
    let client = world.connect(1);
    let queue = client.declare_with("q", &durable()).unwrap();
    let other = client.declare_with("other", &durable()).unwrap();
    bind(&client, "amq.headers", &arguments(&[("format", "pdf"), ("kind", "report")]), queue);
    bind(
        &client,
        "amq.headers",
        &arguments(&[("x-match", "any"), ("format", "pdf"), ("kind", "log")]),
        other,
    );
    let back = restored(&journal(&world), world.now());
    for (headers, expected) in
        [("format=pdf\nkind=report", 2), ("format=pdf", 1), ("kind=report", 0), ("kind=log", 1), ("", 0)]
    {
        for world in [&world, &back] {
            assert_eq!(receivers(world, "amq.headers", headers), expected, "{headers:?}");
        }
    }
}

#[test]
fn a_binding_is_taken_out_with_the_arguments_it_was_made_with() {
    let world = TestWorld::new();
    let client = world.connect(1);
    let queue = client.declare_with("q", &durable()).unwrap();
    let (pdf, log) = (arguments(&[("format", "pdf")]), arguments(&[("kind", "log")]));
    bind(&client, "amq.headers", &pdf, queue);
    bind(&client, "amq.headers", &log, queue);
    let before = journal(&world).len();
    unbind(&client, "amq.headers", &Arguments::NONE, queue);
    assert_eq!((world.bindings("amq.headers"), journal(&world).len()), (2, before), "there was none such");
    unbind(&client, "amq.headers", &pdf, queue);
    for world in [&world, &restored(&journal(&world), world.now())] {
        assert_eq!(receivers(world, "amq.headers", "format=pdf"), 0);
        assert_eq!(receivers(world, "amq.headers", "kind=log"), 1);
    }
}

#[test]
fn what_is_bound_and_unbound_is_so_after_any_crash() {
    let world = TestWorld::new();
    let client = world.connect(1);
    let queue = client.declare_with("q", &durable()).unwrap();
    client.exchange("x", ExchangeKind::Direct);
    // Numbers of records, and how many receivers a message to each exchange has after them.
    let mut expected = vec![(journal(&world).len(), [0, 0])];
    let mut note = |receivers| expected.push((journal(&world).len(), receivers));
    bind(&client, "x", &Arguments::NONE, queue);
    note([1, 0]);
    chain(&client, "amq.fanout", "x").unwrap();
    note([1, 1]);
    bind(&client, "x", &Arguments::NONE, queue);
    chain(&client, "amq.fanout", "x").unwrap();
    note([1, 1]);
    unbind(&client, "x", &Arguments::NONE, queue);
    note([0, 0]);
    bind(&client, "x", &Arguments::NONE, queue);
    note([1, 1]);
    unchain(&client, "amq.fanout", "x").unwrap();
    note([1, 0]);
    unchain(&client, "amq.fanout", "x").unwrap();
    note([1, 0]);
    assert_eq!(expected.iter().map(|(len, _)| *len).collect::<Vec<_>>(), [2, 3, 4, 4, 5, 6, 7, 7]);
    for (len, expected) in expected {
        let back = restored(&beginning(&journal(&world), len), world.now());
        assert_eq!(["x", "amq.fanout"].map(|name| receivers(&back, name, "")), expected, "{len} records");
    }
}

#[test]
fn the_answer_waits_for_the_record_and_only_where_there_is_one() {
    let world = TestWorld::new();
    let client = world.connect(1);
    let fleeting = client.declare("fleeting");
    let kept = client.declare_with("kept", &durable()).unwrap();
    client.exchange("x", ExchangeKind::Direct);
    let settings = Settings::default();
    broker::declare_exchange(&world, &client.actor(), b"transient", ExchangeKind::Direct, settings).unwrap();
    for (exchange, queue, is_kept) in [
        ("x", kept, true),
        ("x", fleeting, false),
        ("transient", kept, false),
        ("amq.direct", fleeting, false),
    ] {
        for time in ["first", "second"] {
            for change in [bind, unbind] {
                let confirm = change(&client, exchange, &Arguments::NONE, queue);
                let expected =
                    if is_kept { Confirm::of(Level::Disk, world.appended()) } else { Confirm::NOW };
                assert_eq!(confirm, expected, "{exchange} the {time} time");
            }
        }
    }
    for (from, to, is_kept) in
        [("x", "amq.topic", true), ("x", "transient", false), ("transient", "x", false)]
    {
        assert_eq!(chain(&client, from, to).unwrap() == Confirm::NOW, !is_kept, "{from} to {to}");
        assert_eq!(unchain(&client, from, to).unwrap() == Confirm::NOW, !is_kept, "{from} to {to}");
    }
}

#[test]
fn a_message_takes_each_exchange_once_and_comes_to_a_queue_once() {
    let world = TestWorld::new();
    let client = world.connect(1);
    let queue = client.declare("q");
    for name in ["a", "b", "c"] {
        client.exchange(name, ExchangeKind::Fanout);
        bind(&client, name, &Arguments::NONE, queue);
    }
    for (from, to) in [("a", "b"), ("b", "c"), ("c", "a"), ("a", "a")] {
        chain(&client, from, to).unwrap();
    }
    assert_eq!(receivers(&world, "a", ""), 1);
    unbind(&client, "b", &Arguments::NONE, queue);
    assert_eq!(receivers(&world, "b", ""), 1, "by way of the others");
    unchain(&client, "b", "c").unwrap();
    assert_eq!(receivers(&world, "b", ""), 0);
}

#[test]
fn what_cannot_be_bound_is_refused_and_leaves_no_record() {
    let world = TestWorld::new();
    let client = world.connect(1);
    let queue = client.declare_with("q", &durable()).unwrap();
    client.exchange("x", ExchangeKind::Headers);
    let before = journal(&world).len();
    let bind = |exchange: &str, with: &Arguments| {
        bind_queue(&world, &client.actor(), exchange.as_bytes(), &key("k"), with, queue).err()
    };
    let route = |error| Some(BrokerError::Route(error));
    let long = Arguments::new([(Name::from("a"), Value::Binary(vec![0; 1 << 15].into()))]);
    let bytes = long.as_bytes().len();
    for (error, expected) in [
        (bind("nowhere", &Arguments::NONE), route(RouteError::NoExchange("nowhere".into()))),
        (bind("", &Arguments::NONE), route(RouteError::DefaultExchange)),
        (bind("x", &arguments(&[("x-match", "some")])), route(RouteError::HeaderMatch)),
        (bind("x", &long), route(RouteError::Arguments(ArgumentsError::TooLong { bytes }))),
        (chain(&client, "x", "nowhere").err(), route(RouteError::NoExchange("nowhere".into()))),
        (chain(&client, "x", "").err(), route(RouteError::DefaultExchange)),
        (unchain(&client, "nowhere", "x").err(), route(RouteError::NoExchange("nowhere".into()))),
        (unchain(&client, "amq.topic", "x").err(), None),
    ] {
        assert_eq!(error, expected);
    }
    assert_eq!((journal(&world).len(), world.bindings("x")), (before, 0));
}

/// A queue is found before it is bound, and another client may delete it in between.
#[test]
fn a_queue_that_is_gone_is_neither_bound_nor_unbound() {
    let world = TestWorld::new();
    let client = world.connect(1);
    let queue = client.declare_with("q", &durable()).unwrap();
    bind(&client, "amq.direct", &Arguments::NONE, queue);
    broker::delete_queue_if(&world, &client.actor(), b"q", DeleteOptions::default(), |_| ()).unwrap();
    let before = journal(&world).len();
    assert_eq!(bind(&client, "amq.direct", &Arguments::NONE, queue), Confirm::NOW);
    assert_eq!(unbind(&client, "amq.direct", &Arguments::NONE, queue), Confirm::NOW);
    assert_eq!((journal(&world).len(), world.bindings("amq.direct")), (before, 0));
}
