use std::collections::BTreeMap;

use imori_core::broker::{self, SubscribeOptions, resume_publishers};
use imori_core::error::BrokerError;
use imori_core::message::{Address, OriginId, Properties, Publication};
use imori_core::name::Name;
use imori_core::outbound::SessionId;
use imori_core::route::{BindingKey, RouteError, Syntax};
use imori_core::world::{Counter, World};
use imori_testkit::{LIMITS, TestWorld};

#[test]
fn live_subscriptions_hear_what_matches_until_they_end() {
    let world = TestWorld::new();
    let (sender, reader) = (world.connect(1), world.connect(2));
    assert_eq!(sender.publish("amq.topic", "a.b", "0").receivers, 0);
    let wide = reader.subscribe("a.#", "wide");
    let narrow = reader.subscribe("a.b", "narrow");
    // The next publish sees the change.
    assert_eq!(sender.publish("amq.topic", "a.b", "1").receivers, 2);
    assert_eq!(sender.publish("amq.topic", "a", "2").receivers, 1);
    assert_eq!(reader.read(), "wide:1;narrow:1;wide:2;");
    reader.cancel(wide);
    reader.cancel(wide);
    assert_eq!(sender.publish("amq.topic", "a.b", "3").receivers, 1);
    assert_eq!(reader.read(), "narrow:3;");
    reader.cancel(narrow);
    assert_eq!(sender.publish("amq.topic", "a.b", "4").receivers, 0);
    assert_eq!((reader.read(), world.bindings("amq.topic")), (String::new(), 0));
}

#[test]
fn a_subscription_that_is_refused_leaves_nothing() {
    let world = TestWorld::new();
    let reader = world.connect(1);
    let error = reader.try_subscribe("nowhere", "a", "s", None).unwrap_err();
    assert_eq!(error, BrokerError::Route(RouteError::NoExchange("nowhere".into())));
    assert!(matches!(reader.try_subscribe("", "a", "s", None), Err(BrokerError::Route(_))));
    let readers = world.with_outbound(reader.id, |outbound| outbound.readers_len());
    assert_eq!(readers, Some(0));
}

#[test]
fn one_member_of_each_group_gets_a_message_and_all_get_their_share() {
    let world = TestWorld::new();
    let sender = world.connect(0);
    let members: Vec<_> = (1..=4).map(|slot| world.connect(slot)).collect();
    // Two groups of two: members take turns, and each gets its share.
    for (member, group) in members.iter().zip(["x", "x", "y", "y"]) {
        member.join(group, "a", group);
    }
    let mut shares = BTreeMap::new();
    for _ in 0..100 {
        assert_eq!(sender.publish("amq.topic", "a", "m").receivers, 2);
        for member in &members {
            let text = member.read();
            *shares.entry(member.id).or_insert(0) += text.matches(":m;").count();
        }
    }
    let shares: Vec<usize> = shares.into_values().collect();
    assert_eq!((shares[0] + shares[1], shares[2] + shares[3]), (100, 100));
    assert!(shares.iter().all(|share| (40..=60).contains(share)), "{shares:?}");
}

#[test]
fn a_group_skips_the_member_who_does_not_read() {
    let world = TestWorld::new();
    let (sender, slow, fast) = (world.connect(0), world.connect(1), world.connect(2));
    slow.join("g", "a", "slow");
    slow.subscribe("only.slow", "s");
    fast.join("g", "a", "fast");
    sender.publish("amq.topic", "only.slow", &"x".repeat(LIMITS.feed_bytes));
    for _ in 0..20 {
        assert_eq!(sender.publish("amq.topic", "a", "m").slow_reader, None);
    }
    assert_eq!(fast.read(), "fast:m;".repeat(20));
    // If no member has room, one of them is slow, and the message is not lost.
    fast.disconnect();
    let report = sender.publish("amq.topic", "a", "m");
    assert_eq!((report.receivers, report.slow_reader), (1, Some(slow.id)));
    assert!(slow.read().ends_with("slow:m;"));
}

#[test]
fn a_slow_subscriber_throttles_then_is_cut() {
    let world = TestWorld::new();
    let (sender, slow, other) = (world.connect(0), world.connect(1), world.connect(2));
    slow.subscribe("a", "slow");
    other.subscribe("a", "other");
    let body = "x".repeat(80);
    let mut reports = Vec::new();
    for _ in 0..60 {
        reports.push(sender.publish("amq.topic", "a", &body));
        assert_eq!(other.read(), format!("other:{body};"));
    }
    assert_eq!(reports[0].slow_reader, None);
    assert!(reports.iter().any(|report| report.slow_reader == Some(slow.id)));
    assert_eq!(world.counted(Counter::CutTooSlow), 1);
    assert_eq!(reports.last().map(|report| report.receivers), Some(1));
    assert!(slow.read().ends_with(";cut;"));
}

#[test]
fn a_publisher_who_waits_for_a_reader_goes_on_when_it_reads_or_is_gone() {
    let world = TestWorld::new();
    for reads in [true, false] {
        let (sender, slow) = (world.connect(0), world.connect(1));
        slow.subscribe("a", "slow");
        let report = sender.publish("amq.topic", "a", &"x".repeat(LIMITS.feed_bytes));
        assert_eq!(report.slow_reader, Some(slow.id));
        assert_eq!(world.with_outbound(slow.id, |outbound| outbound.throttle(sender.id)), Some(true));
        if reads {
            slow.read();
        } else {
            slow.disconnect();
        }
        assert_eq!(world.resumed.take(), [sender.id], "reads: {reads}");
    }
    resume_publishers(&world, &[]);
    assert_eq!(world.resumed.take(), []);
}

#[test]
fn what_is_subscribed_together_is_heard_and_forgotten_like_what_comes_alone() {
    let world = TestWorld::new();
    let (client, sender) = (world.connect(1), world.connect(2));
    let wish = |pattern: &str| {
        let options = SubscribeOptions {
            session: SessionId(0),
            label: pattern.as_bytes().into(),
            group: None,
            selector: None,
        };
        (BindingKey::new(Syntax::Nats, pattern.as_bytes()), options)
    };
    let patterns = ["a", "b.*", "a.>.b", "c"];
    let wishes = patterns.map(wish);
    let subscribed = broker::subscribe_all(&world, &client.actor(), &Name::from("amq.topic"), wishes);
    let is_taken: Vec<bool> = subscribed.iter().map(Result::is_ok).collect();
    assert_eq!(is_taken, [true, true, false, true], "a pattern is refused by itself");
    assert_eq!(world.bindings("amq.topic"), 3);
    for subject in ["a", "b.x", "c", "d"] {
        sender.publish("amq.topic", subject, "m");
    }
    assert_eq!(client.read(), "a:m;b.*:m;c:m;");
    let nowhere = broker::subscribe_all(&world, &client.actor(), &Name::from("none"), [wish("a")]);
    assert!(matches!(&nowhere[..], [Err(BrokerError::Route(RouteError::NoExchange(_)))]));
    assert_eq!(world.with_outbound(client.id, |outbound| outbound.readers_len()), Some(3));
    // More subscriptions than one step of a disconnect removes.
    let many = (0..1000).map(|number| wish(&format!("n.{number}")));
    assert!(
        broker::subscribe_all(&world, &client.actor(), &Name::from("amq.topic"), many)
            .iter()
            .all(Result::is_ok)
    );
    client.disconnect();
    assert_eq!(world.bindings("amq.topic"), 0);
}

/// ARCHITECTURE, invariant 10: order is kept from one session to another, even if that one hears each message
/// twice.
#[test]
fn a_connection_with_several_readers_hears_a_run_message_by_message() {
    for group in [None, Some("g")] {
        let world = TestWorld::new();
        let (sender, reader) = (world.connect(1), world.connect(2));
        reader.subscribe("a", "one");
        reader.try_subscribe("amq.topic", "#", "other", group).unwrap();
        let (properties, address) = (Properties::new(OriginId::BROKER), Address::new(b"amq.topic", b"a"));
        let run = [b"1", b"2", b"3"].map(|body| Publication::new(&properties, b"", body));
        let mut repetition = broker::Repetition::default();
        let sent = broker::publish_again(&world, &sender.actor(), &address, &run, &mut repetition);
        assert_eq!(sent.map(|report| report.receivers), Ok(6));
        assert_eq!(reader.read(), "one:1;other:1;one:2;other:2;one:3;other:3;", "{group:?}");
    }
}
