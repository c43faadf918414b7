//! Consumers that select and browse, beside consumers that take messages in order.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::super::get::Got;
use super::super::settings::QueueSettings;
use super::super::test_stage::{ASKER, SECOND, Stage, UNLIMITED, dead_lettering, properties_with, reader};
use crate::consumers::Selection;
use crate::delivery::Outcome;
use crate::limits::{GROUPS_MAX, REFUSED_MAX, RETURNED_MAX, SEEK_AT_ONCE};
use crate::message::{HeaderReader, NoHeaders, Value};
use crate::queue::Published;
use crate::selector::Selector;

fn readers(stage: &mut Stage) -> String {
    let shown = stage.given.drain(..).map(|given| format!("{}:{}", given.reader, given.body));
    shown.collect::<Vec<_>>().join(" ")
}

#[test]
fn each_consumer_gets_what_it_selects_in_order_and_its_credit_is_not_spent_otherwise() {
    let mut stage = Stage::new(QueueSettings::default());
    for (kind, body) in [("a", "1"), ("b", "2"), ("a", "3"), ("c", "4"), ("b", "5"), ("a", "6")] {
        stage.publish_of(kind, body, None);
    }
    stage.select(1, 2, "JMSType = 'a'", false);
    assert_eq!(readers(&mut stage), "1:1 1:3");
    stage.select(2, UNLIMITED, "JMSType = 'b'", false);
    assert_eq!(readers(&mut stage), "2:2 2:5");
    assert_eq!(stage.publish_of("b", "7", None), Published::Delivered, "though others wait");
    assert_eq!(stage.publish_of("a", "8", None), Published::Waiting);
    assert_eq!(readers(&mut stage), "2:7");
    stage.grant(1, 2);
    assert_eq!(readers(&mut stage), "1:6 1:8");
    stage.consume(3, 0, UNLIMITED);
    assert_eq!(readers(&mut stage), "3:4");
    assert_eq!(stage.queue.ready_len(), 0);
}

#[test]
fn the_higher_consumer_and_equals_in_turn_get_what_they_select() {
    let mut stage = Stage::new(QueueSettings::default());
    stage.select(1, UNLIMITED, "JMSType = 'a'", false);
    stage.select(2, UNLIMITED, "JMSType LIKE '_'", false);
    stage.consume(3, 1, 1);
    for (kind, body) in [("a", "1"), ("a", "2"), ("a", "3"), ("b", "4"), ("c", "5"), ("a", "6")] {
        stage.publish_of(kind, body, None);
    }
    assert_eq!(readers(&mut stage), "3:1 1:2 2:3 2:4 2:5 1:6");
}

#[test]
fn higher_priorities_are_looked_through_first() {
    let mut stage = Stage::new(QueueSettings { priority_max: Some(9), ..QueueSettings::default() });
    for (kind, body, priority) in
        [("a", "1", 0), ("b", "2", 9), ("a", "3", 5), ("a", "4", 9), ("a", "5", 0), ("b", "6", 5)]
    {
        stage.publish_of(kind, body, Some(priority));
    }
    stage.select(1, 2, "JMSType = 'a'", false);
    assert_eq!(stage.bodies(), "4 3");
    stage.publish_of("a", "7", Some(9));
    stage.grant(1, 9);
    assert_eq!(stage.bodies(), "7 1 5");
}

#[test]
fn a_released_message_is_looked_at_again_where_it_stood() {
    let mut stage = Stage::new(QueueSettings::default());
    for body in ["1", "2", "3", "4"] {
        stage.publish_of("a", body, None);
    }
    stage.select(1, 9, "JMSType = 'a' AND JMSXDeliveryCount < 3", false);
    assert_eq!(stage.bodies(), "1 2 3 4");
    stage.credit.insert(1, 0);
    for sequence in [3, 2] {
        stage.settle(sequence, Outcome::Release { failed: true });
    }
    stage.publish_of("a", "5", None);
    stage.grant(1, 9);
    assert_eq!(stage.bodies(), "2 3 5", "they keep their order");
    stage.settle(2, Outcome::Release { failed: true });
    assert_eq!(stage.bodies(), "", "it failed twice");
    stage.settle(3, Outcome::Release { failed: false });
    assert_eq!(stage.bodies(), "3");
    stage.consume(2, 0, 9);
    assert_eq!(stage.bodies(), "2");
}

#[test]
fn what_comes_back_between_others_stands_between_them_for_all() {
    let mut stage = Stage::new(QueueSettings::default());
    for (kind, body) in [("a", "1"), ("b", "2"), ("a", "3"), ("b", "4"), ("a", "5")] {
        stage.publish_of(kind, body, None);
    }
    stage.select(1, 9, "JMSType = 'b'", false);
    assert_eq!(stage.bodies(), "2 4");
    stage.credit.clear();
    for sequence in [4, 2] {
        stage.settle(sequence, Outcome::Release { failed: false });
    }
    let peek = stage.queue.peek(0, 9);
    assert_eq!(peek.parts.len(), 1);
    stage.consume(2, 0, 9);
    assert_eq!(stage.bodies(), "1 2 3 4 5");
}

#[test]
fn so_many_come_back_that_the_queue_is_looked_through_again() {
    let mut stage = Stage::new(QueueSettings::default());
    stage.select(1, UNLIMITED, "JMSType = 'a'", false);
    for body in 0..=RETURNED_MAX {
        stage.publish_of("a", &body.to_string(), None);
    }
    stage.credit.insert(1, 0);
    stage.given.clear();
    for sequence in (1..=RETURNED_MAX as u64 + 1).rev() {
        stage.settle(sequence, Outcome::Release { failed: false });
    }
    stage.grant(1, UNLIMITED);
    let given: Vec<u64> = stage.given.iter().map(|given| given.sequence).collect();
    assert_eq!(given, (1..=RETURNED_MAX as u64 + 1).collect::<Vec<_>>());
}

#[test]
fn a_browser_sees_all_in_order_and_takes_nothing() {
    let mut stage = Stage::new(QueueSettings::default());
    for (kind, body) in [("a", "1"), ("b", "2"), ("a", "3")] {
        stage.publish_of(kind, body, None);
    }
    stage.select(1, 2, "", true);
    assert_eq!(stage.bodies(), "1 2");
    stage.grant(1, UNLIMITED);
    stage.select(2, UNLIMITED, "JMSType = 'a'", true);
    assert_eq!(readers(&mut stage), "1:3 2:1 2:3");
    assert_eq!(stage.publish_of("a", "4", None), Published::Waiting);
    assert_eq!(readers(&mut stage), "1:4 2:4");
    stage.publish_of("b", "5", None);
    assert_eq!(readers(&mut stage), "1:5");
    assert_eq!((stage.queue.ready_len(), stage.queue.unsettled_len()), (5, 0));
    stage.consume(3, 0, UNLIMITED);
    assert_eq!(readers(&mut stage), "3:1 3:2 3:3 3:4 3:5");
    assert!(stage.given.iter().all(|given| !given.is_redelivered));
}

#[test]
fn a_queue_that_is_there_for_one_selector_drops_what_that_does_not_take() {
    let mut stage = Stage::new(QueueSettings::default());
    stage.publish_of("a", "1", None);
    stage.publish_of("b", "2", None);
    let selector = Selector::read(b"JMSType = 'b'").unwrap();
    let selection = Selection { selector, drops_unwanted: true, is_browser: false, headers: |_| &NoHeaders };
    stage.credit.insert(1, UNLIMITED);
    stage.queue.add_seeker(reader(1), 0, false, selection, stage.now);
    stage.deliver();
    stage.publish_of("a", "3", None);
    stage.publish_of("b", "4", None);
    assert_eq!(stage.bodies(), "2 4");
    assert_eq!((stage.queue.ready_len(), stage.queue.unsettled_len()), (0, 2));
    for sequence in [2, 4] {
        stage.settle(sequence, Outcome::Accept);
    }
    stage.queue.remove_consumer(reader(1), stage.now);
    stage.effects = Default::default();
    assert_eq!(stage.gauge.bytes(), 0, "nothing is kept");
}

#[test]
fn a_browser_is_no_single_active_consumer() {
    let mut stage = Stage::new(QueueSettings { is_single_active: true, ..QueueSettings::default() });
    stage.select(1, UNLIMITED, "", true);
    assert_eq!(stage.queue.consumers.active(), None);
    stage.select(2, UNLIMITED, "JMSType = 'a'", false);
    stage.consume(3, 9, UNLIMITED);
    assert_eq!(stage.queue.consumers.active(), Some(reader(2)));
    for (kind, body) in [("a", "1"), ("b", "2"), ("a", "3")] {
        stage.publish_of(kind, body, None);
    }
    assert_eq!(readers(&mut stage), "2:1 1:2 2:3");
    stage.queue.remove_consumer(reader(2), stage.now);
    stage.deliver();
    assert_eq!(readers(&mut stage), "3:2");
}

#[test]
fn an_expired_message_is_not_looked_at() {
    let mut stage = Stage::new(QueueSettings::default());
    stage.publish("0").unwrap();
    stage.publish_with("1", &properties_with(None, Some(5)), None).unwrap();
    stage.publish_of("a", "2", None);
    stage.now = stage.now.after(SECOND);
    stage.select(1, UNLIMITED, "JMSType = 'a'", false);
    assert_eq!(stage.bodies(), "2");
    assert_eq!(stage.queue.ready_len(), 1, "the one that expired is gone");
}

thread_local! {
    static LOOKS: Cell<usize> = const { Cell::new(0) };
}

/// Counts the messages that are looked at.
struct Counting;

impl HeaderReader for Counting {
    fn visit_headers<'t>(&self, _: &'t [u8], _: &mut dyn FnMut(std::borrow::Cow<'t, [u8]>, Value<'t>)) {
        LOOKS.set(LOOKS.get() + 1);
    }
}

#[test]
fn what_nobody_wants_is_looked_at_once_and_others_have_the_queue_meanwhile() {
    const UNWANTED: usize = 3 * SEEK_AT_ONCE + 100;
    let mut stage = Stage::new(QueueSettings::default());
    for _ in 0..UNWANTED {
        stage.publish_of("a", "x", None);
    }
    let selector = Selector::read(b"missing = 1 OR JMSType = 'b'").unwrap();
    let selection = Selection { selector, drops_unwanted: false, is_browser: false, headers: |_| &Counting };
    stage.credit.insert(1, UNLIMITED);
    stage.queue.add_seeker(reader(1), 0, false, selection, stage.now);
    let mut slices = 0;
    loop {
        let before = LOOKS.get();
        stage.deliver();
        slices += 1;
        assert!(LOOKS.get() - before <= SEEK_AT_ONCE, "a slice is bounded");
        if stage.queue.new_wake_up().is_none() {
            break;
        }
        stage.queue.woken(stage.now);
    }
    assert_eq!((slices, LOOKS.get()), (4, UNWANTED), "each is looked at once");
    for _ in 0..100 {
        stage.publish_of("a", "x", None);
        stage.deliver();
    }
    assert_eq!(LOOKS.get(), UNWANTED + 100, "and what comes then too");
    assert_eq!(stage.publish_of("b", "y", None), Published::Delivered);
    assert_eq!(stage.bodies(), "y");
    stage.settle(UNWANTED as u64 + 101, Outcome::Release { failed: false });
    assert_eq!(stage.bodies(), "y");
    assert_eq!(LOOKS.get(), UNWANTED + 102);
}

#[test]
fn consumers_of_one_selector_look_through_the_queue_once_together() {
    const UNWANTED: usize = 1000;
    let select = |stage: &mut Stage, slot, text: &str| {
        let selector = Selector::read(text.as_bytes()).unwrap();
        let headers = |_| -> &'static dyn HeaderReader { &Counting };
        let selection = Selection { selector, drops_unwanted: false, is_browser: false, headers };
        stage.credit.insert(slot, UNLIMITED);
        stage.queue.add_seeker(reader(slot), 0, false, selection, stage.now);
        stage.deliver();
    };
    let text = "missing = 1 OR JMSType = 'b'";
    for (others, looks) in [(text, UNWANTED), ("JMSType = 'b' OR missing = 1", 2 * UNWANTED)] {
        let mut stage = Stage::new(QueueSettings::default());
        for _ in 0..UNWANTED {
            stage.publish_of("a", "x", None);
        }
        LOOKS.set(0);
        for slot in 1..=10 {
            select(&mut stage, slot, if slot == 1 { text } else { others });
        }
        assert_eq!(LOOKS.get(), looks, "{others}");
        for _ in 0..10 {
            stage.publish_of("b", "y", None);
        }
        let served: BTreeSet<u32> = stage.given.iter().map(|given| given.reader).collect();
        assert_eq!(served.len(), 10, "each has its turn");
        // The seeker stays as long as it has consumers, and goes with the last.
        for slot in 1..=9 {
            stage.leave(slot);
        }
        let before = LOOKS.get();
        stage.publish_of("a", "x", None);
        assert_eq!(LOOKS.get(), before + 1);
        stage.leave(10);
        select(&mut stage, 11, text);
        assert_eq!(LOOKS.get(), before + 2 + UNWANTED, "another looks through all");
    }
}

#[test]
fn a_refused_message_goes_to_others_and_waits_for_them() {
    for selector in [None, Some("JMSType = 'a'")] {
        let mut stage = Stage::new(dead_lettering());
        let add = |stage: &mut Stage, slot| match selector {
            None => stage.consume(slot, 0, UNLIMITED),
            Some(text) => stage.select(slot, UNLIMITED, text, false),
        };
        add(&mut stage, 1);
        for body in ["1", "2", "3"] {
            stage.publish_of("a", body, None);
        }
        readers(&mut stage);
        stage.settle_by(1, 2, Outcome::Refuse { failed: false });
        stage.settle_by(1, 3, Outcome::Release { failed: false });
        assert_eq!(readers(&mut stage), "1:3", "what was released comes back");
        assert_eq!(stage.queue.ready_len(), 1, "what was refused waits");
        assert_eq!(stage.publish_of("a", "4", None), Published::Delivered, "and holds up no other");
        assert_eq!(readers(&mut stage), "1:4");
        add(&mut stage, 2);
        assert_eq!(readers(&mut stage), "2:2");
        stage.settle_by(2, 2, Outcome::Refuse { failed: true });
        assert_eq!(readers(&mut stage), "", "each of them refused it");
        stage.leave(1);
        add(&mut stage, 1);
        let given = stage.given.first().map(|given| (given.sequence, given.failures));
        assert_eq!(given, Some((2, 1)), "a new consumer refused nothing");
        for sequence in 1..=4 {
            stage.settle_by(1, sequence, Outcome::Accept);
        }
        assert_eq!(stage.dead_lettered(), "");
        stage.leave(1);
        stage.leave(2);
        assert_eq!(stage.gauge.bytes(), 0);
    }
}

// SECURITY LIM-10: what a consumer refused is remembered up to a limit.
#[test]
fn one_refused_message_too_many_is_dead_lettered() {
    let mut stage = Stage::with_reader(dead_lettering(), UNLIMITED);
    for sequence in 1..=REFUSED_MAX as u64 + 1 {
        stage.publish("x").unwrap();
        stage.settle_by(1, sequence, Outcome::Refuse { failed: false });
    }
    assert_eq!((stage.queue.ready_len(), stage.dead_lettered()), (REFUSED_MAX, "x:rejected".to_owned()));
    stage.consume(2, 0, 1);
    stage.settle_by(2, 1, Outcome::Accept);
    stage.publish("y").unwrap();
    stage.settle_by(1, REFUSED_MAX as u64 + 2, Outcome::Refuse { failed: false });
    assert_eq!(stage.dead_lettered(), "", "one that has left makes room");
}

#[test]
fn a_group_has_one_consumer_until_that_goes() {
    let mut stage = Stage::new(QueueSettings::default());
    stage.consume(1, 0, UNLIMITED);
    stage.consume(2, 0, UNLIMITED);
    for (group, body) in [("g", "1"), ("h", "2"), ("g", "3"), ("g", "4"), ("", "5"), ("h", "6")] {
        stage.publish_in(group, "a", body, None);
    }
    let given = readers(&mut stage);
    assert_eq!(given, "1:1 2:2 1:3 1:4 2:5 2:6");
    for sequence in 1..=6 {
        stage.settle(sequence, Outcome::Accept);
    }
    stage.publish_in("g", "a", "7", None);
    stage.publish_in("g", "a", "8", None);
    assert_eq!(readers(&mut stage), "1:7 1:8", "it stays where it is");
    stage.leave(1);
    stage.publish_in("g", "a", "9", None);
    assert_eq!(readers(&mut stage), "", "what was given out is not settled");
    stage.settle(7, Outcome::Accept);
    assert_eq!(readers(&mut stage), "");
    stage.settle(8, Outcome::Release { failed: true });
    assert_eq!(readers(&mut stage), "2:8 2:9", "in order");
}

#[test]
fn a_consumer_without_credit_keeps_its_group_and_holds_up_no_other() {
    let mut stage = Stage::new(QueueSettings { priority_max: Some(9), ..QueueSettings::default() });
    for (group, body, priority) in
        [("g", "1", 0), ("g", "2", 0), ("h", "3", 0), ("g", "4", 5), ("", "5", 0), ("h", "6", 0)]
    {
        stage.publish_in(group, "a", body, Some(priority));
    }
    stage.consume(1, 0, 1);
    assert_eq!(readers(&mut stage), "1:4");
    stage.consume(2, 0, UNLIMITED);
    assert_eq!(readers(&mut stage), "2:3 2:5 2:6");
    stage.grant(1, 1);
    assert_eq!(readers(&mut stage), "1:1");
    stage.leave(1);
    for sequence in [1, 4] {
        stage.settle(sequence, Outcome::Accept);
    }
    assert_eq!(readers(&mut stage), "2:2");
}

#[test]
fn the_last_message_of_a_group_frees_it_once_all_of_it_is_settled() {
    let mut stage = Stage::new(QueueSettings::default());
    stage.consume(1, 0, 2);
    stage.publish_in("g", "a", "1", None);
    stage.publish_grouped(("g", true), "a", "2", None);
    stage.publish_in("g", "a", "3", None);
    stage.consume(2, 0, UNLIMITED);
    assert_eq!(readers(&mut stage), "1:1 1:2");
    stage.settle(2, Outcome::Accept);
    assert_eq!(readers(&mut stage), "", "the first is not settled");
    stage.settle(1, Outcome::Accept);
    assert_eq!(readers(&mut stage), "2:3");
    stage.grant(1, UNLIMITED);
    stage.publish_in("g", "a", "4", None);
    assert_eq!(readers(&mut stage), "2:4", "it has another consumer now");
}

#[test]
fn what_the_selector_of_its_consumer_left_is_free_with_its_group() {
    for settles in [false, true] {
        let mut stage = Stage { settles, ..Stage::new(QueueSettings::default()) };
        stage.select(1, UNLIMITED, "JMSType = 'a'", false);
        stage.publish_in("g", "a", "1", None);
        stage.publish_in("g", "b", "2", None);
        stage.consume(2, 0, UNLIMITED);
        stage.publish_grouped(("g", true), "a", "3", None);
        let settled = [1, 3].map(|sequence| stage.settle(sequence, Outcome::Accept));
        assert_eq!((readers(&mut stage), settled), ("1:1 1:3 2:2".to_owned(), [settles; 2]));
    }
}

#[test]
fn what_came_back_to_a_group_is_looked_at_once_that_is_free() {
    let mut stage = Stage::new(QueueSettings::default());
    stage.select(1, 1, "JMSType = 'a'", false);
    stage.publish_in("g", "a", "1", None);
    stage.settle_by(1, 1, Outcome::Refuse { failed: false });
    stage.consume(2, 0, UNLIMITED);
    stage.grant(1, 1);
    stage.publish_grouped(("g", true), "a", "2", None);
    assert_eq!(readers(&mut stage), "1:1 1:2");
    stage.publish_of("a", "3", None);
    assert_eq!(readers(&mut stage), "2:3", "the group is not free yet");
    stage.settle(2, Outcome::Accept);
    assert_eq!(readers(&mut stage), "2:1");
}

#[test]
fn the_first_group_holds_up_nobody_who_takes_what_comes() {
    let mut stage = Stage { settles: false, ..Stage::new(QueueSettings::default()) };
    stage.consume(1, 0, UNLIMITED);
    stage.select(2, UNLIMITED, "JMSType = 'b'", false);
    stage.publish_of("a", "1", None);
    stage.publish_in("g", "b", "2", None);
    stage.publish_in("g", "a", "3", None);
    stage.publish_of("a", "4", None);
    assert_eq!(readers(&mut stage), "1:1 2:2 1:4");
}

#[test]
fn a_get_passes_groups_that_somebody_has() {
    let mut stage = Stage::new(QueueSettings { priority_max: Some(9), ..QueueSettings::default() });
    stage.consume(1, 0, 1);
    for (group, body, priority) in [("g", "1", 0), ("g", "2", 5), ("h", "3", 0), ("", "4", 0), ("h", "5", 0)]
    {
        stage.publish_in(group, "a", body, Some(priority));
    }
    stage.get();
    assert_eq!(readers(&mut stage), "1:1 7:3");
    assert_eq!(stage.get(), Got::Delivered { left: 2 });
    assert_eq!(
        (stage.get(), readers(&mut stage)),
        (Got::Empty, "7:4".to_owned()),
        "its other one is not settled"
    );
    stage.settle(3, Outcome::Accept);
    assert_eq!((stage.get(), stage.get()), (Got::Delivered { left: 1 }, Got::Empty));
    stage.leave(1);
    stage.settle(1, Outcome::Release { failed: false });
    assert_eq!((stage.get(), readers(&mut stage)), (Got::Delivered { left: 1 }, "7:5 7:2".to_owned()));
    stage.settle(2, Outcome::Accept);
    stage.settle(5, Outcome::Accept);
    assert!(!stage.queue.consumers.has_groups(), "nobody has any");
}

#[test]
fn groups_go_with_selectors_and_browsers() {
    let mut stage = Stage::new(QueueSettings::default());
    stage.select(1, UNLIMITED, "JMSType = 'a'", false);
    stage.select(2, UNLIMITED, "JMSType = 'a'", false);
    stage.select(3, UNLIMITED, "", true);
    for (group, kind, body) in [("g", "a", "1"), ("g", "b", "2"), ("g", "a", "3"), ("h", "a", "4")] {
        stage.publish_in(group, kind, body, None);
    }
    assert_eq!(readers(&mut stage), "1:1 3:2 1:3 2:4");
    stage.consume(4, 0, UNLIMITED);
    assert_eq!(readers(&mut stage), "", "another consumer has the group");
    stage.leave(1);
    for sequence in [1, 3] {
        stage.settle(sequence, Outcome::Accept);
    }
    assert_eq!(readers(&mut stage), "4:2");
}

#[test]
fn a_queue_remembers_a_bounded_number_of_groups() {
    let mut stage = Stage::with_reader(QueueSettings::default(), UNLIMITED);
    for group in 0..3 * u32::from(GROUPS_MAX) {
        stage.publish_in(&group.to_string(), "a", "x", None);
        stage.settle(u64::from(group) + 1, Outcome::Accept);
    }
    assert_eq!(stage.given.len(), 3 * usize::from(GROUPS_MAX));
    let shown = format!("{:?}", stage.queue);
    let remembered = shown.matches("passed: Cell").count();
    assert!((1000..=usize::from(GROUPS_MAX)).contains(&remembered), "{remembered}");
    stage.leave(1);
    assert!(!stage.queue.consumers.has_groups(), "nobody has any");
}

#[derive(Debug, Clone)]
enum Step {
    Publish { group: usize, is_last: bool, kind: usize, priority: u8 },
    Get,
    Grant { reader: u32, credit: u32 },
    Settle { index: usize, outcome: Outcome },
    Leave { reader: u32 },
    Purge,
}

fn step() -> impl Strategy<Value = Step> {
    let outcome = prop_oneof![
        2 => Just(Outcome::Accept),
        3 => any::<bool>().prop_map(|failed| Outcome::Release { failed }),
        1 => any::<bool>().prop_map(|failed| Outcome::Refuse { failed }),
    ];
    prop_oneof![
        8 => (0..GROUPS.len(), prop::bool::weighted(0.3), 0..KINDS.len(), 0..3_u8)
            .prop_map(|(group, is_last, kind, priority)| Step::Publish { group, is_last, kind, priority }),
        1 => Just(Step::Get),
        5 => (0..READERS.len() as u32, 1..4_u32).prop_map(|(reader, credit)| Step::Grant { reader, credit }),
        6 => (any::<usize>(), outcome).prop_map(|(index, outcome)| Step::Settle { index, outcome }),
        1 => (0..READERS.len() as u32).prop_map(|reader| Step::Leave { reader }),
        1 => Just(Step::Purge),
    ]
}

const KINDS: [&str; 3] = ["a", "b", "c"];

/// Groups of messages; most messages are in none.
const GROUPS: [&str; 5] = ["", "", "", "g", "h"];

/// Readers: their selectors, and whether they browse; the last takes messages in order.
const READERS: [(Option<&str>, bool); 7] = [
    (Some("JMSType = 'a'"), false),
    (Some("JMSType IN ('a', 'b')"), false),
    (Some("JMSType <> 'a' AND NOT JMSRedelivered"), false),
    (Some(""), true),
    (Some("JMSType = 'b'"), true),
    (None, false),
    (Some("JMSType = 'a'"), false),
];

fn is_browser(reader: usize) -> bool {
    READERS.get(reader).is_some_and(|(_, is_browser)| *is_browser)
}

fn wants(reader: usize, kind: &str, is_redelivered: bool) -> bool {
    match reader {
        0 | 6 => kind == "a",
        1 => kind != "c",
        2 => kind != "a" && !is_redelivered,
        4 => kind == "b",
        _ => true,
    }
}

/// A message as the test knows it: type, priority, group, and whether it ends the group.
type Known = (&'static str, u8, &'static str, bool);

struct World {
    stage: Stage,
    known: BTreeMap<u64, Known>,
    ready: BTreeMap<u64, bool>,
    /// Unsettled messages, and their readers.
    out: BTreeMap<u64, usize>,
    seen: [BTreeSet<u64>; READERS.len()],
    refused: [BTreeSet<u64>; READERS.len()],
    /// The owners of groups.
    owners: BTreeMap<&'static str, usize>,
}

impl World {
    /// Whether a reader wants a message and may have it.
    fn takes(&self, reader: usize, sequence: u64, is_redelivered: bool) -> bool {
        let (kind, _, group, _) = self.known[&sequence];
        let is_free = is_browser(reader)
            || group.is_empty()
            || match self.owners.get(group) {
                Some(owner) => *owner == reader,
                None => self.out.keys().all(|out| self.known[out].2 != group),
            };
        let has_refused = self.refused.get(reader).is_some_and(|refused| refused.contains(&sequence));
        is_free && wants(reader, kind, is_redelivered) && !has_refused
    }

    /// Checks and notes the deliveries.
    fn note(&mut self) -> Result<(), TestCaseError> {
        for given in std::mem::take(&mut self.stage.given) {
            let (reader, sequence) = (given.reader as usize, given.sequence);
            let (kind, _, group, is_last) = self.known[&sequence];
            prop_assert!(
                self.takes(reader, sequence, given.is_redelivered),
                "{given:?} of {kind} in {group}"
            );
            if is_browser(reader) {
                prop_assert!(self.seen[reader].insert(sequence), "{given:?} was seen before");
                prop_assert!(self.ready.contains_key(&sequence));
                continue;
            }
            // It is the first waiting message that the reader wants.
            let place = |sequence: u64| (u8::MAX - self.known[&sequence].1, sequence);
            let before = self.ready.iter().find(|(other, is_redelivered)| {
                self.takes(reader, **other, **is_redelivered) && place(**other) < place(sequence)
            });
            prop_assert_eq!(before, None, "{:?} comes too early", given);
            self.ready.remove(&sequence);
            if self.stage.settles {
                prop_assert_eq!(self.out.insert(sequence, reader), None, "{:?} is out twice", given);
            }
            if group.is_empty() || reader == ASKER as usize {
                continue;
            }
            match is_last {
                true => self.owners.remove(group),
                false => self.owners.insert(group, reader),
            };
        }
        // No reader with credit leaves behind a message that it wants.
        for (reader, credit) in &self.stage.credit {
            let (reader, credit) = (*reader as usize, *credit);
            let wanted = self.ready.iter().find(|(sequence, is_redelivered)| {
                let is_new = !READERS[reader].1 || !self.seen[reader].contains(sequence) && !**is_redelivered;
                is_new && self.takes(reader, **sequence, **is_redelivered)
            });
            prop_assert!(credit == 0 || wanted.is_none(), "{reader} has {credit} and leaves {wanted:?}");
        }
        prop_assert_eq!(self.stage.queue.ready_len(), self.ready.len());
        prop_assert_eq!(self.stage.queue.unsettled_len(), self.out.len());
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]
    #[test]
    fn everybody_gets_what_it_selects_in_order_whatever_happens(
        steps in prop::collection::vec(step(), 1..120),
        used in prop::collection::vec(any::<bool>(), READERS.len()),
        priority_max in prop::option::of(1..3_u8),
        settles in prop::bool::weighted(0.8),
    ) {
        let stage = Stage::new(QueueSettings { priority_max, ..QueueSettings::default() });
        let stage = Stage { settles, ..stage };
        let (known, ready) = (BTreeMap::new(), BTreeMap::new());
        let mut world = World {
            stage,
            known,
            ready,
            out: BTreeMap::new(),
            seen: Default::default(),
            refused: Default::default(),
            owners: BTreeMap::new(),
        };
        let mut used = used;
        for (slot, (selector, is_browser)) in (0..).zip(READERS) {
            match selector {
                _ if !used[slot as usize] => {}
                Some(selector) => world.stage.select(slot, 0, selector, is_browser),
                None => world.stage.consume(slot, 0, 0),
            }
        }
        let mut last = 0;
        for step in steps {
            match step {
                Step::Publish { group, is_last, kind, priority } => {
                    last += 1;
                    let (group, kind) = (GROUPS[group], KINDS[kind]);
                    world.known.insert(last, (kind, priority.min(priority_max.unwrap_or(0)), group, is_last));
                    world.ready.insert(last, false);
                    // A browser sees waiting messages, but not one that a consumer gets at once.
                    world.stage.publish_grouped((group, is_last), kind, &last.to_string(), Some(priority));
                }
                Step::Get => {
                    let has_any = world.ready.iter().any(|(sequence, is_redelivered)| {
                        world.takes(ASKER as usize, *sequence, *is_redelivered)
                    });
                    prop_assert_eq!(world.stage.get() != Got::Empty, has_any);
                }
                Step::Grant { reader, .. } if !used[reader as usize] => {}
                Step::Grant { reader, credit } => world.stage.grant(reader, credit),
                Step::Settle { index, outcome } => {
                    let index = index % world.out.len().max(1);
                    let Some((sequence, reader)) = world.out.iter().map(|(out, by)| (*out, *by)).nth(index) else { continue };
                    world.out.remove(&sequence);
                    if outcome != Outcome::Accept {
                        world.ready.insert(sequence, true);
                    }
                    if matches!(outcome, Outcome::Refuse { .. }) && used.get(reader).is_some_and(|used| *used) {
                        world.refused[reader].insert(sequence);
                    }
                    world.stage.settle_by(reader as u32, sequence, outcome);
                }
                Step::Leave { reader } => {
                    used[reader as usize] = false;
                    world.owners.retain(|_, owner| *owner != reader as usize);
                    world.stage.leave(reader);
                }
                Step::Purge => {
                    prop_assert_eq!(world.stage.purge(), world.ready.len());
                    world.ready.clear();
                }
            }
            world.note()?;
        }
    }
}
