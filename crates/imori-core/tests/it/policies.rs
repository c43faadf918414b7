//! Policies of a vhost change while queues have messages, and the broker restarts under them.

use std::sync::Arc;
use std::time::Duration;

use imori_core::broker::{apply_policies, set_policies};
use imori_core::confirm::Lsn;
use imori_core::id::VhostId;
use imori_core::name::Name;
use imori_core::policy::{AppliesTo, DeliveryLimit, Policies, Policy, PolicySettings};
use imori_core::queue::QueueSettings;
use imori_core::record::{NewRecord, RecordKind};
use imori_core::restore::Restore;
use imori_core::route::ExchangeKind;
use imori_core::world::World;
use imori_testkit::{TestMessage, TestWorld};

use super::durable::{durable, durable_dying_to, journal};
use super::restored::restored;

const VHOST: VhostId = VhostId(0);
const MS: Duration = Duration::from_millis(1);

/// One policy, for the objects with names that match the pattern.
pub(crate) fn policies(pattern: &str, settings: PolicySettings) -> Policies {
    let policy = Policy::new(Name::from("p"), (pattern, AppliesTo::All), 0, settings);
    Policies::new(vec![Arc::new(policy.expect("it is an expression"))], Vec::new())
}

/// Sets the policies of the vhost, as an operator's request does.
pub(crate) fn set(world: &TestWorld, policies: Policies) {
    let queues = set_policies(world, VHOST, policies);
    apply_policies(world, VHOST, &queues);
}

#[test]
fn what_a_shorter_length_drops_is_dead_lettered_and_stays_so_after_a_crash() {
    let world = TestWorld::new();
    let client = world.connect(1);
    client.declare_with("dead", &durable()).unwrap();
    client.declare_with("q", &durable_dying_to("", Some("dead"))).unwrap();
    client.declare_with("other", &durable()).unwrap();
    for body in ["a", "b", "c"] {
        let message = TestMessage { body, ..Default::default() };
        client.outgoing("", "q", &message);
        client.outgoing("", "other", &message);
    }
    set(&world, policies("^q$", PolicySettings { length_max: Some(1), ..PolicySettings::default() }));
    let lens = |world: &TestWorld| ["q", "dead", "other"].map(|name| world.ready_len(name));
    assert_eq!(lens(&world), [1, 2, 3]);
    assert_eq!(lens(&restored(&journal(&world), world.now())), [1, 2, 3]);
    set(&world, Policies::default());
    client.send("q", "d");
    assert_eq!(world.depth("q"), Some((2, 0)));
}

#[test]
fn a_time_to_live_wakes_the_queue_when_the_first_is_too_old() {
    let world = TestWorld::new();
    let client = world.connect(1);
    client.declare_with("q", &QueueSettings::default()).unwrap();
    client.send("q", "a");
    world.pass(5 * MS);
    client.send("q", "b");
    set(&world, policies("", PolicySettings { message_ttl: Some(7 * MS), ..PolicySettings::default() }));
    for (passed, left) in [(MS, 2), (MS, 1), (4 * MS, 1), (MS, 0)] {
        world.pass(passed);
        assert_eq!(world.ready_len("q"), left, "after {passed:?} more");
    }
}

#[test]
fn what_is_declared_under_policies_has_them_at_once() {
    let world = TestWorld::new();
    let client = world.connect(1);
    let expires = Some(3 * MS);
    let alternate_exchange = Some(Name::from("amq.fanout"));
    let settings = PolicySettings { expires, alternate_exchange, ..PolicySettings::default() };
    set(&world, policies("^new", settings));
    let kept = client.declare("kept");
    client.bind("amq.fanout", "", kept).unwrap();
    client.declare("new");
    client.exchange("new.exchange", ExchangeKind::Direct);
    client.exchange("old.exchange", ExchangeKind::Direct);
    assert_eq!(client.publish("new.exchange", "nowhere", "m").receivers, 1);
    assert_eq!(client.publish("old.exchange", "nowhere", "m").receivers, 0);
    world.pass(3 * MS);
    assert_eq!((world.queue("new"), world.queue("kept")), (None, Some(kept)));
    set(&world, Policies::default());
    assert_eq!(client.publish("new.exchange", "nowhere", "m").receivers, 0, "its route is not remembered");
}

#[test]
fn a_restored_queue_is_under_its_policies_before_anything_waits_in_it() {
    let before = TestWorld::new();
    let client = before.connect(1);
    client.declare_with("q", &durable()).unwrap();
    client.exchange("x", ExchangeKind::Fanout);
    let settings = PolicySettings {
        delivery_limit: Some(DeliveryLimit::Failures(1)),
        message_ttl: Some(MS),
        alternate_exchange: Some(Name::from("y")),
        ..PolicySettings::default()
    };
    let world = TestWorld::after(&journal(&before), before.now());
    let restore = Restore::new(world.gauge().clone(), world.now(), true);
    let mut restore = restore.under([(VHOST, policies("", settings))]);
    for (lsn, NewRecord { kind, payload, .. }, _) in journal(&before) {
        if kind == RecordKind::Definition {
            restore.definition(Lsn(lsn.0), &payload).expect("the core wrote it");
        }
    }
    restore.define().expect("the core wrote it");
    world.with_topology(|topology| restore.finish(topology, &mut |queue| world.add_queue(queue)));
    let id = world.queue("q").expect("it is durable");
    let (declared, in_effect) = world
        .with_queue(id, |queue| (queue.declared().clone(), queue.settings().clone()))
        .expect("it is there");
    assert_eq!(declared, durable());
    assert_eq!((in_effect.message_ttl, in_effect.delivery_limit), (Some(MS), Some(1)));
    let alternate =
        world.with_topology(|topology| topology.table().exchange(VHOST, b"x").map(|x| x.alternate()));
    assert_eq!(alternate, Some(Some(Name::from("y"))));
}
