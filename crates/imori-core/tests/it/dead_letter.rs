use std::time::Duration;

use imori_core::broker::{Step, commit, declare_exchange};
use imori_core::delivery::Outcome;
use imori_core::limits::{DEAD_LETTERS_CAUSED_MAX, DEATHS_MAX};
use imori_core::outbound::{Numbers, SessionId};
use imori_core::queue::{Overflow, QueueSettings};
use imori_core::route::{ExchangeKind, Settings};
use imori_core::world::Counter;
use imori_testkit::{TestWorld, dying_to};

const MS: Duration = Duration::from_millis(1);

#[test]
fn a_message_dies_into_the_next_queue_with_its_history() {
    let world = TestWorld::new();
    let client = world.connect(1);
    client.declare_with("work", &dying_to("", Some("retry"))).unwrap();
    let retry = QueueSettings { message_ttl: Some(10 * MS), ..dying_to("", Some("work")) };
    client.declare_with("retry", &retry).unwrap();
    client.consume("work", "w", 1);
    client.send("work", "m");
    assert_eq!(client.read(), "w:m;");
    // A rejection breaks the cycle, so the message may go round again.
    for (number, expected) in [
        (1, "w:m(retry expired 1)(work rejected 1);"),
        (2, "w:m(retry expired 2)(work rejected 2);"),
        (3, "w:m(retry expired 3)(work rejected 3);"),
    ] {
        client.settle(Numbers::One(number), Outcome::Reject).unwrap();
        assert_eq!((client.read(), world.depth("retry")), (String::new(), Some((1, 0))));
        world.pass(9 * MS);
        assert_eq!(client.read(), "");
        world.pass(MS);
        assert_eq!(client.read(), expected);
    }
    assert_eq!(world.dead_lettered(), 6);
    assert_eq!(world.counted(Counter::DeadLetterDropped), 0);
}

#[test]
fn a_circle_that_goes_by_itself_ends() {
    for names in [&["a"][..], &["a", "b"], &["a", "b", "c"]] {
        let world = TestWorld::new();
        let client = world.connect(1);
        for (index, name) in names.iter().enumerate() {
            let next = names[(index + 1) % names.len()];
            let settings = QueueSettings { message_ttl: Some(MS), ..dying_to("", Some(next)) };
            client.declare_with(name, &settings).unwrap();
        }
        client.send("a", "m");
        for _ in 0..10 {
            world.pass(MS);
        }
        assert!(names.iter().all(|name| world.depth(name) == Some((0, 0))), "{names:?}");
        assert_eq!(world.dead_lettered(), names.len());
        assert_eq!((world.counted(Counter::DeadLetterDropped), world.charged()), (1, 0));
    }
}

#[test]
fn what_is_pushed_out_pushes_out_others() {
    let world = TestWorld::new();
    let client = world.connect(1);
    for (name, next) in [("a", "b"), ("b", "c")] {
        let settings = QueueSettings { length_max: Some(1), ..dying_to("", Some(next)) };
        client.declare_with(name, &settings).unwrap();
    }
    client.declare("c");
    for body in ["1", "2", "3", "4"] {
        client.send("a", body);
    }
    client.consume("c", "c", 9);
    assert_eq!(client.read(), "c:1(b maxlen 1)(a maxlen 1);c:2(b maxlen 1)(a maxlen 1);");
    assert_eq!((world.depth("a"), world.depth("b")), (Some((1, 0)), Some((1, 0))));
}

#[test]
fn a_dead_letter_without_a_place_is_dropped_and_counted() {
    let full =
        QueueSettings { length_max: Some(0), overflow: Overflow::RejectPublish, ..QueueSettings::default() };
    let world = TestWorld::new();
    let client = world.connect(1);
    client.declare_with("full", &full).unwrap();
    for (dropped, (exchange, key)) in (1..).zip([("nowhere", None), ("", Some("nobody")), ("", Some("full"))])
    {
        let name = format!("q{dropped}");
        let settings = QueueSettings { message_ttl: Some(MS), ..dying_to(exchange, key) };
        client.declare_with(&name, &settings).unwrap();
        client.send(&name, "m");
        world.pass(MS);
        assert_eq!(world.counted(Counter::DeadLetterDropped), dropped, "{exchange} {key:?}");
    }
    assert_eq!(world.charged(), 0);
}

#[test]
fn dead_letters_reach_internal_exchanges_and_live_subscriptions() {
    let world = TestWorld::new();
    let client = world.connect(1);
    let settings = Settings { is_internal: true, ..Settings::default() };
    declare_exchange(&world, &client.actor(), b"dead", ExchangeKind::Fanout, settings).unwrap();
    assert!(client.try_publish("dead", "", "", "m").is_err());
    client.declare_with("q", &QueueSettings { message_ttl: Some(MS), ..dying_to("dead", None) }).unwrap();
    client.try_subscribe("dead", "", "live", None).unwrap();
    client.send("q", "m");
    world.pass(MS);
    assert_eq!(client.read(), "live:m(q expired 1);");
}

#[test]
fn a_history_has_an_end() {
    let world = TestWorld::new();
    let client = world.connect(1);
    let queues = DEATHS_MAX + 10;
    for number in 0..queues {
        let settings =
            QueueSettings { length_max: Some(0), ..dying_to("", Some(&format!("q{}", number + 1))) };
        client.declare_with(&format!("q{number}"), &settings).unwrap();
    }
    client.send("q0", "m");
    assert_eq!(world.dead_lettered(), DEATHS_MAX + 1);
    assert_eq!(world.counted(Counter::DeadLetterDropped), 1);
}

#[test]
fn one_message_to_many_full_queues_does_not_multiply_without_end() {
    let world = TestWorld::new();
    let client = world.connect(1);
    declare_exchange(&world, &client.actor(), b"all", ExchangeKind::Fanout, Settings::default()).unwrap();
    for number in 0..12 {
        let settings = QueueSettings { length_max: Some(0), ..dying_to("all", None) };
        let queue = client.declare_with(&format!("q{number}"), &settings).unwrap();
        client.bind("all", "", queue).unwrap();
    }
    client.publish("all", "", "m");
    // Without a limit there would be more than twelve factorial dead letters.
    let made = world.dead_lettered();
    assert!(made <= 13 * DEAD_LETTERS_CAUSED_MAX, "{made}");
    assert!(world.counted(Counter::DeadLetterDropped) > 0);
    assert_eq!(world.charged(), 0);
}

#[test]
fn the_last_death_of_a_history_is_the_last_one_however_it_died() {
    for (deaths, is_moved) in [(DEATHS_MAX - 1, true), (DEATHS_MAX, false)] {
        for in_transaction in [false, true] {
            let world = TestWorld::new();
            let client = world.connect(1);
            // The message dies once in each of these queues, and waits in the last.
            for number in 0..deaths {
                let next = if number + 1 == deaths { "waits".to_owned() } else { format!("q{}", number + 1) };
                let settings = QueueSettings { length_max: Some(0), ..dying_to("", Some(&next)) };
                client.declare_with(&format!("q{number}"), &settings).unwrap();
            }
            client.declare_with("waits", &dying_to("", Some("end"))).unwrap();
            client.declare("end");
            client.send("q0", "m");
            client.consume("waits", "w", 1);
            if in_transaction {
                let (session, numbers, outcome) = (SessionId(0), Numbers::One(1), Outcome::Reject);
                commit(
                    &world,
                    &client.actor(),
                    &[Step::Settle { session, numbers, outcome, annotations: None }],
                )
                .unwrap();
            } else {
                client.settle(Numbers::One(1), Outcome::Reject).unwrap();
            }
            let case = format!("{deaths} deaths before, in a transaction: {in_transaction}");
            assert_eq!(world.depth("end"), Some((usize::from(is_moved), 0)), "{case}");
            assert_eq!(world.counted(Counter::DeadLetterDropped), usize::from(!is_moved), "{case}");
            assert_eq!(world.dead_lettered(), deaths + 1, "{case}");
        }
    }
}
