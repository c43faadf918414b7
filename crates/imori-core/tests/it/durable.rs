//! The journal and the memory agree after all kinds of moves.

use std::time::Duration;

use imori_core::broker::{self, Annotations, Step};
use imori_core::confirm::Lsn;
use imori_core::delivery::Outcome;
use imori_core::id::DurableQueueId;
use imori_core::message::{Address, Message, MessageView, OriginId, Properties};
use imori_core::name::Name;
use imori_core::outbound::{Numbers, SessionId};
use imori_core::queue::{Overflow, QueueSettings};
use imori_core::record::{Definition, Row};
use imori_core::restore::Restore;
use imori_core::time::Time;
use imori_core::world::{Counter, World};
use imori_testkit::{TestMessage, TestWorld, VHOST, dying_to};

use crate::restored::{Journal, asleep, beginning, held, ready, restored};

const MS: Duration = Duration::from_millis(1);

pub(crate) fn durable() -> QueueSettings {
    QueueSettings { is_durable: true, ..QueueSettings::default() }
}

pub(crate) fn durable_dying_to(exchange: &str, key: Option<&str>) -> QueueSettings {
    QueueSettings { dead_letter: dying_to(exchange, key).dead_letter, ..durable() }
}

fn outgoing(body: &str) -> TestMessage<'_> {
    TestMessage { body, ..TestMessage::default() }
}

pub(crate) fn journal(world: &TestWorld) -> Journal {
    world.journal.borrow().clone()
}

/// Checks that the same messages are ready in memory and after a crash.
fn check_same(world: &TestWorld, names: &[&str], expected: &[usize]) {
    let back = restored(&journal(world), world.now());
    for (name, expected) in names.iter().zip(expected) {
        let before = ready(world, name);
        assert_eq!(before, ready(&back, name), "{name}");
        assert_eq!(before.len(), *expected, "{name}: {before:?}");
    }
}

#[test]
fn dead_letters_are_in_one_place_after_any_crash() {
    let full = QueueSettings { length_max: Some(0), overflow: Overflow::RejectPublish, ..durable() };
    let transient = QueueSettings::default();
    let back_to_q = QueueSettings { message_ttl: Some(MS), ..durable_dying_to("", Some("q")) };
    for (case, exchange, key, target, in_target, in_prefixes) in [
        ("a durable queue", "", "dead", Some(durable()), 1, true),
        ("a full queue", "", "dead", Some(full), 0, false),
        ("a circle", "", "dead", Some(back_to_q), 0, false),
        ("a missing exchange", "nowhere", "dead", Some(durable()), 0, false),
        ("a missing queue", "", "dead", None, 0, false),
        ("a queue that goes with the broker", "", "dead", Some(transient), 0, false),
    ] {
        for how in ["expired", "rejected", "pushed out", "failed"] {
            let world = TestWorld::new();
            let client = world.connect(1);
            let mut settings = durable_dying_to(exchange, Some(key));
            match how {
                "expired" => settings.message_ttl = Some(MS),
                "pushed out" => settings.length_max = Some(0),
                "failed" => settings.delivery_limit = Some(0),
                _ => {}
            }
            client.declare_with("q", &settings).unwrap();
            if let Some(target) = &target {
                client.declare_with("dead", target).unwrap();
            }
            let declared = journal(&world).len();
            client.outgoing("", "q", &outgoing("m"));
            if how == "rejected" || how == "failed" {
                client.consume("q", "c", 1);
                let outcome =
                    if how == "failed" { Outcome::Release { failed: true } } else { Outcome::Reject };
                client.settle(Numbers::One(1), outcome).unwrap();
                client.disconnect();
            }
            for _ in 0..5 {
                world.pass(MS);
            }
            let whole = journal(&world);
            let back = restored(&whole, world.now());
            for world in [&world, &back] {
                let is_back = case == "a circle" && how == "rejected";
                assert_eq!(ready(world, "q").len(), usize::from(is_back), "{case}, {how}");
                let dead = ready(world, "dead");
                assert_eq!(dead.len(), in_target, "{case}, {how}: {dead:?}");
            }
            // After any prefix of the journal the message is in one place, or was dropped for good.
            for len in declared + 1..=whole.len() {
                let part = beginning(&whole, len);
                let (back, _) = asleep(&part, Time(0));
                let places = held(&back, "q").len() + held(&back, "dead").len();
                assert!(places <= 1 || case == "a full queue", "{case}, {how}, {len} records: {places}");
                let is_kept = part.len() <= declared || places == 1;
                assert!(!in_prefixes || is_kept, "{case}, {how}, {len} records: it is nowhere");
            }
        }
    }
}

#[test]
fn what_a_transaction_rejects_moves_with_it_after_any_crash() {
    for (case, target, in_target) in [
        ("a durable queue", Some(durable()), true),
        ("a queue that goes with the broker", Some(QueueSettings::default()), false),
        ("a missing queue", None, false),
    ] {
        for outcome in [Outcome::Reject, Outcome::Release { failed: true }] {
            let world = TestWorld::new();
            let client = world.connect(1);
            let delivery_limit = Some(0).filter(|_| outcome != Outcome::Reject);
            let settings = QueueSettings { delivery_limit, ..durable_dying_to("", Some("dead")) };
            client.declare_with("q", &settings).unwrap();
            client.declare_with("other", &durable()).unwrap();
            if let Some(target) = &target {
                client.declare_with("dead", target).unwrap();
            }
            for body in ["a", "b", "c"] {
                client.outgoing("", "q", &outgoing(body));
            }
            client.consume("q", "c", 3);
            let begins = journal(&world).len();
            let mut properties = Properties::new(OriginId::BROKER);
            properties.is_persistent = true;
            let view = MessageView { properties: &properties, text: b"", body: b"new" };
            let message = Message::store(&view, None, world.gauge());
            let settle = |number, outcome| {
                let numbers = Numbers::One(number);
                Step::Settle { session: SessionId(0), numbers, outcome, annotations: None }
            };
            let steps = [
                Step::Publish { address: Address::new(b"", b"other"), copies: Vec::new(), message },
                settle(1, outcome),
                settle(2, Outcome::Accept),
                settle(3, outcome),
            ];
            broker::commit(&world, &client.actor(), &steps).unwrap();
            let journal = journal(&world);
            let waits = |world: &TestWorld| ["q", "dead", "other"].map(|name| held(world, name).len());
            let before = waits(&restored(&beginning(&journal, begins), world.now()));
            let after = [0, if in_target { 2 } else { 0 }, 1];
            for len in begins..=journal.len() {
                let waiting = waits(&restored(&beginning(&journal, len), world.now()));
                let is_one = waiting == before || waiting == after;
                assert!(is_one, "{case}, {outcome:?}: {waiting:?} after {len} of {} records", journal.len());
            }
            assert_eq!(waits(&restored(&journal, world.now())), after, "{case}, {outcome:?}");
            assert_eq!(world.dead_lettered(), 2, "{case}, {outcome:?}");
            let dropped = if target.is_none() { 2 } else { 0 };
            assert_eq!(world.counted(Counter::DeadLetterDropped), dropped, "{case}, {outcome:?}");
            let waiting = world.depth("dead").map(|(ready, _)| ready);
            assert_eq!(waiting, target.as_ref().map(|_| 2), "{case}, {outcome:?}");
            // Each message is in memory under the number of its own record.
            let back = restored(&journal, world.now());
            for name in ["other", "dead"].iter().take(1 + usize::from(in_target)) {
                assert_eq!(ready(&world, name), ready(&back, name), "{case}, {outcome:?}: {name}");
            }
        }
    }
}

#[test]
fn what_dies_where_nothing_is_kept_is_kept_where_it_goes() {
    let world = TestWorld::new();
    let client = world.connect(1);
    client.declare_with("q", &QueueSettings { message_ttl: Some(MS), ..dying_to("", Some("dead")) }).unwrap();
    client.declare_with("dead", &durable()).unwrap();
    client.outgoing("", "q", &outgoing("m"));
    client.outgoing("", "q", &TestMessage { is_transient: true, ..outgoing("t") });
    world.pass(MS);
    assert_eq!(world.depth("dead"), Some((2, 0)));
    assert!(journal(&world).iter().all(|(.., is_of_group)| !is_of_group), "there is nothing that it leaves");
    check_same(&world, &["dead"], &[1]);
}

#[test]
fn deliveries_that_failed_are_counted_across_crashes() {
    let settings = QueueSettings { delivery_limit: Some(2), ..durable_dying_to("", Some("dead")) };
    let world = TestWorld::new();
    let client = world.connect(1);
    client.declare_with("q", &settings).unwrap();
    client.declare_with("dead", &durable()).unwrap();
    client.outgoing("", "q", &outgoing("m"));
    let mut journal = journal(&world);
    // Each time the message was out when the broker died: that counts as a failure, although its outcome is
    // unknown.
    for (crash, expected) in [(1, (1, 0)), (2, (1, 0)), (3, (0, 1))] {
        let back = restored(&journal, Time(1_000_000 + crash));
        let depths = ["q", "dead"].map(|name| back.depth(name).unwrap().0);
        assert_eq!((depths[0], depths[1]), (1, 0), "before crash {crash}");
        back.connect(1).consume("q", "c", 1);
        journal = self::journal(&back);
        let back = restored(&journal, Time(1_000_000 + crash));
        let depths = ["q", "dead"].map(|name| back.depth(name).unwrap().0);
        assert_eq!((depths[0], depths[1]), expected, "after crash {crash}");
    }
}

#[test]
fn a_release_that_did_not_fail_takes_back_what_was_counted() {
    let world = TestWorld::new();
    let client = world.connect(1);
    client.declare_with("q", &QueueSettings { delivery_limit: Some(0), ..durable() }).unwrap();
    client.outgoing("", "q", &outgoing("m"));
    let reader = client.consume("q", "c", 1);
    client.cancel(reader);
    client.settle(Numbers::One(1), Outcome::Release { failed: false }).unwrap();
    check_same(&world, &["q"], &[1]);
}

#[test]
fn what_is_over_behind_another_leaves_at_the_head_or_where_there_is_no_room() {
    let world = TestWorld::new();
    let client = world.connect(1);
    let settings = QueueSettings { length_max: Some(3), ..durable_dying_to("", Some("dead")) };
    client.declare_with("q", &settings).unwrap();
    client.declare_with("dead", &durable()).unwrap();
    let soon_over = |body| TestMessage { expiration_ms: Some(1), ..outgoing(body) };
    for outgoing in [outgoing("properties"), soon_over("1"), soon_over("2")] {
        client.outgoing("", "q", &outgoing);
    }
    world.pass(9 * MS);
    assert_eq!(
        (world.depth("q"), world.depth("dead")),
        (Some((3, 0)), Some((0, 0))),
        "the properties holds them up"
    );
    // It overflows and leaves, and then the others are at the head.
    client.outgoing("", "q", &outgoing("new"));
    world.pass(MS);
    check_same(&world, &["q", "dead"], &[1, 3]);
    assert_eq!(world.charged(), 0);
}

#[test]
fn definitions_of_the_journal_that_were_applied_amend_nothing() {
    let queue = |name: &str, max| {
        let settings = QueueSettings { length_max: max, ..durable() };
        Definition::Queue { vhost: VHOST, name: Name::from(name), settings }
    };
    let gone = |queue| Definition::QueueGone { queue: DurableQueueId(queue) };
    for (case, applied, told, amends) in [
        ("applied", vec![(1, queue("a", None))], vec![(1, queue("a", None))], false),
        ("a row is lost", vec![], vec![(1, queue("a", None))], true),
        ("a row is another", vec![(1, queue("a", Some(9)))], vec![(1, queue("a", None))], true),
        ("deleted since", vec![], vec![(1, queue("a", None)), (2, gone(1))], false),
        ("deleted, and there", vec![(1, queue("a", None))], vec![(2, gone(1))], true),
        ("none is told", vec![(1, queue("a", None))], vec![], false),
    ] {
        let world = TestWorld::new();
        let mut restore = Restore::new(world.gauge().clone(), world.now(), true);
        for (lsn, definition) in applied {
            for row in definition.rows(Lsn(lsn)) {
                if let Row::Put { table, key, value } = row {
                    restore.row(table, key, value);
                }
            }
        }
        for (lsn, definition) in told {
            restore.definition(Lsn(lsn), &definition.encode()).unwrap();
        }
        assert_eq!(restore.amends(), amends, "{case}");
    }
}

#[test]
fn annotations_of_consumers_are_there_after_a_crash() {
    let world = TestWorld::new();
    let client = world.connect(1);
    client.declare_with("q", &durable()).unwrap();
    for body in ["a", "b"] {
        client.outgoing("", "q", &outgoing(body));
    }
    client.consume("q", "c", 1);
    let before = journal(&world).len();
    let release = Outcome::Release { failed: false };
    for (number, text) in [(1, "one"), (2, "two")] {
        let add = |before: Option<&[u8]>| Some([before.unwrap_or_default(), text.as_bytes()].concat().into());
        let numbers = Numbers::One(number);
        broker::annotate(&world, &client.actor(), SessionId(0), numbers, add).unwrap();
        client.settle(numbers, release).unwrap();
    }
    let merge = |before: Option<&[u8]>, more: &[u8]| Some([before.unwrap_or_default(), more].concat().into());
    let annotations = Some(Annotations { added: Box::from(*b"three"), merge });
    let step =
        Step::Settle { session: SessionId(0), numbers: Numbers::One(3), outcome: release, annotations };
    broker::commit(&world, &client.actor(), &[step]).unwrap();
    let journal = journal(&world);
    let mut seen = Vec::new();
    for len in before..=journal.len() {
        let back = restored(&beginning(&journal, len), world.now());
        let again = back.connect(1);
        again.consume("q", "c", 2);
        let id = back.queue("q").unwrap();
        let of_all = back.with_queue(id, |queue| {
            let text = |sequence| String::from_utf8(queue.annotations(sequence)?.to_vec()).ok();
            (1..9).filter_map(text).collect::<Vec<String>>()
        });
        assert_eq!(back.depth("q"), Some((0, 2)), "{len} records");
        // The other message has none.
        seen.push(of_all.unwrap().join(" and "));
    }
    seen.dedup();
    assert_eq!(seen, ["", "one", "onetwo", "onetwothree"]);
    // The annotations of a settled message do not bring it back.
    client.accept(4);
    let back = restored(&self::journal(&world), world.now());
    assert_eq!(back.depth("q").map(|(ready, _)| ready), Some(1));
}
