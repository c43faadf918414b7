use std::num::NonZeroU32;

use imori_core::broker::{self, Repetition};
use imori_core::id::ReaderId;
use imori_core::message::{Address, OriginId, Properties, Publication};
use imori_core::world::World;
use imori_testkit::{Caller, LIMITS, TestWorld};

fn limit(client: &Caller<'_>, reader: ReaderId, max: u32) -> bool {
    let max = NonZeroU32::new(max).expect("limits are not zero");
    broker::limit_deliveries(client.world, &client.actor(), reader, max)
}

fn exhausted(client: &Caller<'_>) -> Vec<String> {
    let labels = client.world.with_outbound(client.id, |outbound| outbound.take_exhausted());
    labels.unwrap_or_default().iter().map(|label| label.escape_ascii().to_string()).collect()
}

/// Publishes a run of messages `1`, `2` and so on; returns the number of deliveries.
fn run(client: &Caller<'_>, subject: &str, messages: usize) -> usize {
    let (properties, address) =
        (Properties::new(OriginId::BROKER), Address::new(b"amq.topic", subject.as_bytes()));
    let bodies: Vec<String> = (1..=messages).map(|number| number.to_string()).collect();
    let run: Vec<Publication<'_>> =
        bodies.iter().map(|body| Publication::new(&properties, b"", body.as_bytes())).collect();
    let mut repetition = Repetition::default();
    let sent = broker::publish_again(client.world, &client.actor(), &address, &run, &mut repetition);
    sent.expect("the exchange is there").receivers
}

#[test]
fn a_subscription_ends_after_exactly_its_deliveries() {
    let world = TestWorld::new();
    let (sender, reader) = (world.connect(1), world.connect(2));
    for (before, max, after, expected) in
        [(0, 1, 3, 1), (0, 3, 3, 3), (1, 3, 5, 2), (2, 2, 1, 0), (3, 2, 1, 0), (2, 9, 3, 3)]
    {
        let what = format!("{max} in all, {before} before");
        let id = reader.subscribe("a", "s");
        assert_eq!(run(&sender, "a", before), before, "{what}");
        assert_eq!(limit(&reader, id, max), before < max as usize, "{what}");
        assert_eq!(run(&sender, "a", after), expected, "{what}");
        assert_eq!(reader.read().matches("s:").count(), before + expected, "{what}");
        let is_exhausted = before < max as usize && before + expected == max as usize;
        // The caller has to cancel a subscription that had reached its limit before.
        assert_eq!(world.bindings("amq.topic"), usize::from(!is_exhausted), "{what}");
        assert_eq!(exhausted(&reader), vec!["s"; usize::from(is_exhausted)], "{what}");
        reader.cancel(id);
        assert_eq!(world.bindings("amq.topic"), 0, "{what}");
    }
    let readers = world.with_outbound(reader.id, |outbound| outbound.readers_len());
    assert_eq!(readers, Some(0), "nothing is left of them");
}

#[test]
fn a_group_goes_on_without_the_member_that_has_had_its_part() {
    let world = TestWorld::new();
    let (sender, reader) = (world.connect(1), world.connect(2));
    let limited = reader.join("g", "a", "limited");
    reader.join("g", "a", "other");
    assert!(limit(&reader, limited, 2));
    assert_eq!(run(&sender, "a", 9), 9);
    let text = reader.read();
    assert_eq!((text.matches("limited:").count(), text.matches("other:").count()), (2, 7));
    assert_eq!(world.bindings("amq.topic"), 1);
}

#[test]
fn what_waits_for_a_slow_reader_outlives_its_subscription() {
    let world = TestWorld::new();
    let (sender, reader) = (world.connect(1), world.connect(2));
    let id = reader.subscribe("a", "s");
    reader.subscribe("a", "other");
    limit(&reader, id, 2);
    let body = "x".repeat(LIMITS.feed_bytes);
    sender.publish("amq.topic", "a", &body);
    sender.publish("amq.topic", "a", &body);
    assert_eq!(exhausted(&reader), Vec::<String>::new(), "its last message waits still");
    let text = reader.read_all();
    assert_eq!((text.matches("s:x").count(), text.matches("other:x").count()), (2, 2));
    assert_eq!(exhausted(&reader), ["s"]);
}

#[test]
fn a_message_leaves_out_whom_it_is_not_for() {
    let world = TestWorld::new();
    let (sender, reader) = (world.connect(1), world.connect(2));
    for client in [sender, reader] {
        client.subscribe("a", "s");
        client.join("g", "a", "g");
    }
    let properties = Properties::new(OriginId::BROKER);
    for (not_to, expected) in [(None, 3), (Some(sender.id), 2)] {
        for _ in 0..4 {
            let publication = Publication::new(&properties, b"", b"m").not_to(not_to);
            let report = broker::publish(&world, &sender.actor(), b"amq.topic", b"a", &publication);
            assert_eq!(report.map(|report| report.receivers), Ok(expected));
        }
        let own = sender.read();
        assert_eq!(own.is_empty(), not_to.is_some(), "{own}");
        assert!(reader.read().contains("g:m;"));
    }
}

#[test]
fn a_notice_goes_to_one_subscription_of_its_own_connection() {
    let world = TestWorld::new();
    let clients = [world.connect(1), world.connect(2), world.connect(3)];
    for client in clients {
        client.subscribe("a", "one");
        client.subscribe("#", "other");
    }
    let properties = Properties::new(OriginId::BROKER);
    let notice = Publication::new(&properties, b"", b"m");
    let notify = |client: &Caller<'_>, subject: &str| {
        broker::notify(&world, &client.actor(), b"amq.topic", subject.as_bytes(), &notice)
    };
    assert_eq!(notify(&clients[1], "a"), Ok(true));
    assert_eq!(clients.map(|client| client.read()), ["", "one:m;", ""]);
    assert_eq!(notify(&clients[2], "b"), Ok(true));
    assert_eq!(clients.map(|client| client.read()), ["", "", "other:m;"]);
    assert_eq!(notify(&world.connect(4), "a"), Ok(false));
}
