//! Exchanges are declared, looked up and deleted, and auto-deleted; queues are looked up and conditionally
//! deleted.

use imori_core::broker::{
    self, DeleteOptions, QueueInspection, bind_exchange, declare_exchange, delete_exchange, delete_queue_if,
    look_up_exchange, look_up_queue, unbind_exchange,
};
use imori_core::confirm::{Confirm, Level};
use imori_core::error::BrokerError;
use imori_core::route::{Arguments, BindingKey, ExchangeKind, RouteError, Settings, Syntax};
use imori_core::world::World;
use imori_testkit::{Caller, TestWorld, VHOST};

use crate::durable::{durable, journal};
use crate::restored::{beginning, restored};

fn key() -> BindingKey {
    BindingKey::new(Syntax::Amqp, b"k")
}

fn chain(client: &Caller<'_>, from: &str, to: &str) {
    let (actor, none) = (client.actor(), Arguments::NONE);
    bind_exchange(client.world, &actor, from.as_bytes(), &key(), &none, to.as_bytes())
        .expect("both are there");
}

/// The exchanges of `names` that exist.
fn there(world: &TestWorld, names: &str) -> String {
    let is_there =
        |name: &&str| world.with_topology(|all| all.table().exchange(VHOST, name.as_bytes()).is_some());
    names.split(' ').filter(is_there).collect::<Vec<_>>().join(" ")
}

fn no_exchange(name: &str) -> BrokerError {
    RouteError::NoExchange(name.into()).into()
}

#[test]
fn an_exchange_that_is_deleted_does_not_come_back() {
    let world = TestWorld::new();
    let client = world.connect(1);
    let queue = client.declare_with("q", &durable()).unwrap();
    for name in ["x", "y"] {
        client.exchange(name, ExchangeKind::Fanout);
        client.bind(name, "k", queue).unwrap();
    }
    chain(&client, "amq.fanout", "x");
    chain(&client, "x", "y");
    let actor = client.actor();
    assert_eq!(delete_exchange(&world, &actor, b"x", true), Err(BrokerError::InUse("x".into())));
    let before = journal(&world).len();
    let deleted = delete_exchange(&world, &actor, b"x", false);
    assert_eq!(deleted, Ok(Confirm::of(Level::Disk, world.appended())));
    assert_eq!(delete_exchange(&world, &actor, b"x", false), Err(no_exchange("x")));
    let whole = journal(&world);
    assert_eq!(whole.len(), before + 1, "one record says all of it");
    assert_eq!(there(&restored(&beginning(&whole, before), world.now()), "x y"), "x y");
    for world in [&world, &restored(&whole, world.now())] {
        assert_eq!(there(world, "x y"), "y");
        assert_eq!(["amq.fanout", "y"].map(|name| world.bindings(name)), [0, 1]);
    }
    // Nothing is left for a new exchange with this name.
    client.exchange("x", ExchangeKind::Direct);
    for world in [&world, &restored(&journal(&world), world.now())] {
        assert_eq!((there(world, "x"), world.bindings("x")), ("x".to_owned(), 0));
    }
}

#[test]
fn those_that_are_always_there_are_not_deleted() {
    let world = TestWorld::new();
    let client = world.connect(1);
    for name in ["amq.topic", "amq.none"] {
        let refused = delete_exchange(&world, &client.actor(), name.as_bytes(), false);
        assert!(matches!(refused, Err(BrokerError::Refused(_))), "{name}");
    }
    let refused = delete_exchange(&world, &client.actor(), b"", false);
    assert_eq!(refused, Err(RouteError::DefaultExchange.into()));
    assert!(journal(&world).is_empty());
}

#[test]
fn an_exchange_with_auto_delete_goes_with_its_last_binding_and_after_a_crash_it_is_not_there() {
    // What ends the last binding.
    for how in ["unbind", "delete the queue", "delete the exchange", "end the subscription"] {
        let world = TestWorld::new();
        let client = world.connect(1);
        let settings = Settings { is_durable: true, is_auto_delete: true, ..Settings::default() };
        for name in ["one", "two"] {
            declare_exchange(
                &world,
                &client.actor(),
                name.as_bytes(),
                ExchangeKind::Fanout,
                settings.clone(),
            )
            .unwrap();
        }
        client.exchange("end", ExchangeKind::Fanout);
        let queue = client.declare_with("q", &durable()).unwrap();
        chain(&client, "one", "two");
        let reader = match how {
            "unbind" | "delete the exchange" => {
                chain(&client, "two", "end");
                None
            }
            "delete the queue" => {
                client.bind("two", "k", queue).unwrap();
                None
            }
            _ => client.try_subscribe("two", "k", "s", None).ok(),
        };
        let back = restored(&journal(&world), world.now());
        assert_eq!(there(&back, "one two end"), "one two end", "{how}: it outlives the broker");
        let actor = client.actor();
        match how {
            "unbind" => {
                unbind_exchange(&world, &actor, b"two", &key(), &Arguments::NONE, b"end").unwrap();
            }
            "delete the queue" => {
                broker::delete_queue(&world, &actor, b"q").unwrap();
            }
            "delete the exchange" => {
                delete_exchange(&world, &actor, b"end", false).unwrap();
            }
            _ => client.cancel(reader.expect("it subscribed")),
        }
        let left = if how == "delete the exchange" { "" } else { "end" };
        for world in [&world, &restored(&journal(&world), world.now())] {
            assert_eq!(there(world, "one two end"), left, "{how}");
        }
    }
}

#[test]
fn an_exchange_is_declared_as_it_is_or_not_at_all() {
    let world = TestWorld::new();
    let client = world.connect(1);
    client.exchange("x", ExchangeKind::Topic);
    let declare = |name: &str, kind, is_durable| {
        let settings = Settings { is_durable, ..Settings::default() };
        declare_exchange(&world, &client.actor(), name.as_bytes(), kind, settings)
    };
    let before = journal(&world).len();
    // This includes the predefined exchanges, which clients may not declare or delete.
    assert!(declare("x", ExchangeKind::Topic, true).is_ok());
    assert!(declare("amq.topic", ExchangeKind::Topic, true).is_ok());
    for (name, kind, is_durable) in [
        ("x", ExchangeKind::Fanout, true),
        ("x", ExchangeKind::Topic, false),
        ("amq.topic", ExchangeKind::Topic, false),
    ] {
        let refused = declare(name, kind, is_durable);
        assert!(matches!(refused, Err(BrokerError::Route(RouteError::Differs { .. }))), "{refused:?}");
    }
    assert!(matches!(declare("amq.mine", ExchangeKind::Topic, true), Err(BrokerError::Refused(_))));
    assert_eq!(journal(&world).len(), before);
}

#[test]
fn who_looks_something_up_learns_what_it_has_and_changes_nothing() {
    let world = TestWorld::new();
    let (client, other) = (world.connect(1), world.connect(2));
    let id = client.declare_with("q", &durable()).unwrap();
    client.send("q", "a");
    client.send("q", "b");
    client.consume("q", "c", 1);
    let before = journal(&world).len();
    let found = look_up_queue(&world, &other.actor(), b"q");
    assert_eq!(found, Ok(QueueInspection { id, ready: 1, delayed: 0, consumers: 1 }));
    assert_eq!(look_up_queue(&world, &other.actor(), b"no"), Err(BrokerError::NoQueue("no".into())));
    let mine = imori_core::queue::QueueSettings { exclusive_to: Some(client.id), ..Default::default() };
    client.declare_with("mine", &mine).unwrap();
    assert_eq!(look_up_queue(&world, &other.actor(), b"mine"), Err(BrokerError::Locked("mine".into())));
    assert!(look_up_queue(&world, &client.actor(), b"mine").is_ok());
    let settings = Settings { is_durable: true, ..Settings::default() };
    assert_eq!(look_up_exchange(&world, &other.actor(), b"amq.match"), Ok((ExchangeKind::Headers, settings)));
    assert_eq!(look_up_exchange(&world, &other.actor(), b"no"), Err(no_exchange("no")));
    assert_eq!(journal(&world).len(), before);
}

#[test]
fn a_queue_is_deleted_only_if_the_conditions_hold() {
    let (in_use, not_empty) = (BrokerError::InUse("q".into()), BrokerError::NotEmpty("q".into()));
    // A consumer, ready messages and unsettled ones; the conditions, and the result.
    for (has_consumer, ready, out, if_unused, if_empty, expected) in [
        (false, 0, 0, true, true, Ok(0)),
        (false, 2, 0, true, false, Ok(2)),
        (false, 2, 0, true, true, Err(not_empty.clone())),
        (true, 0, 0, false, true, Ok(0)),
        (true, 0, 0, true, false, Err(in_use.clone())),
        (true, 1, 1, true, true, Err(in_use)),
        (true, 1, 1, false, true, Err(not_empty)),
        // As in RabbitMQ, unsettled messages do not count.
        (true, 0, 1, false, true, Ok(0)),
        (true, 1, 1, false, false, Ok(1)),
    ] {
        let world = TestWorld::new();
        let client = world.connect(1);
        client.declare_with("q", &durable()).unwrap();
        if has_consumer {
            client.consume("q", "c", out.max(1));
        }
        (0..ready + out).for_each(|_| drop(client.send("q", "m")));
        if has_consumer && out == 0 {
            assert_eq!(world.depth("q"), Some((0, 0)));
        }
        let options = DeleteOptions { if_unused, if_empty };
        let deleted = delete_queue_if(&world, &client.actor(), b"q", options, |_| ());
        assert_eq!(deleted.as_ref().map(|deleted| deleted.ready).map_err(Clone::clone), expected);
        let is_gone = expected.is_ok();
        assert_eq!(world.depth("q").is_none(), is_gone);
        assert_eq!(restored(&journal(&world), world.now()).depth("q").is_none(), is_gone);
        if let Ok(deleted) = deleted {
            assert_eq!(deleted.confirm, Confirm::of(Level::Disk, world.appended()));
        }
    }
}
