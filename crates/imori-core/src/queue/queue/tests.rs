use std::fmt::Write;
use std::num::NonZeroU32;

use std::time::Duration;

use super::super::publish::Published;
use super::super::test_stage::{
    SECOND, Stage, UNLIMITED, dead_lettering, properties, properties_with, reader,
};
use super::*;
use crate::delivery::Outcome;

#[test]
fn every_state_of_a_message_takes_every_input() {
    let release = |failed| Some(Outcome::Release { failed });
    let inputs = [
        ("consumer has credit", None),
        ("accept", Some(Outcome::Accept)),
        ("release", release(false)),
        ("release, failed", release(true)),
        ("reject", Some(Outcome::Reject)),
        ("time to live ends", None),
        ("another, at the limit", None),
        ("purge", None),
    ];
    let mut table = String::new();
    for state in ["ready", "unsettled", "failed once"] {
        for (input, outcome) in inputs {
            let mut stage = Stage::new(QueueSettings {
                message_ttl: Some(SECOND),
                length_max: Some(1),
                delivery_limit: Some(1),
                ..dead_lettering()
            });
            stage.publish("a").unwrap();
            if state != "ready" {
                stage.consume(1, 0, 1);
            }
            if state == "failed once" {
                stage.settle(1, Outcome::Release { failed: true });
                stage.grant(1, 1);
            }
            match (input, outcome) {
                (_, Some(outcome)) => {
                    stage.settle(1, outcome);
                }
                ("consumer has credit", _) if state == "ready" => stage.consume(1, 0, 1),
                ("consumer has credit", _) => stage.grant(1, 1),
                ("time to live ends", _) => stage.pass(SECOND),
                ("purge", _) => {
                    stage.purge();
                }
                _ => {
                    stage.publish("b").unwrap();
                }
            }
            let (ready, unsettled) = (stage.queue.ready_len(), stage.queue.unsettled_len());
            let dead_lettered = stage.dead_lettered();
            writeln!(table, "{state:11} | {input:21} | {ready} ready, {unsettled} unsettled {dead_lettered}")
                .unwrap();
        }
    }
    let table: Vec<&str> = table.lines().map(str::trim_end).collect();
    assert_eq!(
        table,
        [
            "ready       | consumer has credit   | 0 ready, 1 unsettled",
            "ready       | accept                | 1 ready, 0 unsettled",
            "ready       | release               | 1 ready, 0 unsettled",
            "ready       | release, failed       | 1 ready, 0 unsettled",
            "ready       | reject                | 1 ready, 0 unsettled",
            "ready       | time to live ends     | 0 ready, 0 unsettled a:expired",
            "ready       | another, at the limit | 1 ready, 0 unsettled a:maxlen",
            "ready       | purge                 | 0 ready, 0 unsettled",
            "unsettled   | consumer has credit   | 0 ready, 1 unsettled",
            "unsettled   | accept                | 0 ready, 0 unsettled",
            "unsettled   | release               | 1 ready, 0 unsettled",
            "unsettled   | release, failed       | 1 ready, 0 unsettled",
            "unsettled   | reject                | 0 ready, 0 unsettled a:rejected",
            "unsettled   | time to live ends     | 0 ready, 1 unsettled",
            "unsettled   | another, at the limit | 1 ready, 1 unsettled",
            "unsettled   | purge                 | 0 ready, 1 unsettled",
            "failed once | consumer has credit   | 0 ready, 1 unsettled",
            "failed once | accept                | 0 ready, 0 unsettled",
            "failed once | release               | 1 ready, 0 unsettled",
            "failed once | release, failed       | 0 ready, 0 unsettled a:delivery_limit",
            "failed once | reject                | 0 ready, 0 unsettled a:rejected",
            "failed once | time to live ends     | 0 ready, 1 unsettled",
            "failed once | another, at the limit | 1 ready, 1 unsettled",
            "failed once | purge                 | 0 ready, 1 unsettled",
        ]
    );
}

#[test]
fn a_wake_up_is_asked_for_once() {
    let mut stage = Stage::new(QueueSettings::default());
    let ms = |ms| Duration::from_millis(ms);
    let start = stage.now;
    let publish = |stage: &mut Stage, expiration_ms| {
        stage.publish_with("m", &properties_with(None, Some(expiration_ms)), None).unwrap();
        stage.queue.new_wake_up()
    };
    assert_eq!(publish(&mut stage, 100), Some(start.after(ms(100))));
    assert_eq!(publish(&mut stage, 200), None, "it stands behind");
    stage.consume(1, 0, 1);
    assert_eq!(stage.queue.new_wake_up(), None, "an earlier one is on its way");
    stage.consume(1, 0, 1);
    assert_eq!(publish(&mut stage, 50), Some(start.after(ms(50))));
    // The earlier one comes.
    stage.pass(ms(50));
    stage.queue.woken(stage.now);
    assert_eq!(publish(&mut stage, 150), Some(start.after(ms(200))));
    // The first one comes too, with nothing due: no other is needed.
    stage.pass(ms(50));
    stage.queue.woken(stage.now);
    assert_eq!(stage.queue.new_wake_up(), None, "the wake-up at 200 ms is on its way");
}

#[test]
fn a_queue_is_idle_without_consumers_and_declarations() {
    let mut stage = Stage::new(QueueSettings { expires: Some(SECOND), ..QueueSettings::default() });
    let deadline = stage.now.after(SECOND);
    assert_eq!(stage.queue.new_wake_up(), Some(deadline));
    assert!(!stage.queue.is_idle_too_long(stage.now));
    assert!(stage.queue.is_idle_too_long(deadline));
    stage.now = deadline;
    stage.queue.touch(stage.now);
    assert!(!stage.queue.is_idle_too_long(stage.now));
    stage.consume(1, 0, 1);
    stage.pass(2 * SECOND);
    assert!(!stage.queue.is_idle_too_long(stage.now), "it is read");
    stage.queue.woken(stage.now);
    assert_eq!(stage.queue.new_wake_up(), None);
    stage.queue.remove_consumer(reader(1), stage.now);
    assert_eq!(stage.queue.new_wake_up(), Some(stage.now.after(SECOND)));
}

#[test]
fn an_exclusive_consumer_is_alone() {
    let mut queue = Stage::new(QueueSettings::default()).queue;
    let now = Time(0);
    assert_eq!(queue.admit_consumer(true), Ok(()));
    queue.add_consumer(reader(1), 0, true, now);
    assert_eq!(queue.admit_consumer(false), Err(ConsumeRefusal::Exclusive));
    assert_eq!(queue.admit_consumer(true), Err(ConsumeRefusal::Exclusive));
    queue.remove_consumer(reader(1), now);
    assert_eq!(queue.admit_consumer(false), Ok(()));
    queue.add_consumer(reader(2), 0, false, now);
    assert_eq!(queue.admit_consumer(true), Err(ConsumeRefusal::InUse));
    assert_eq!(queue.admit_consumer(false), Ok(()));
}

#[test]
fn a_queue_that_is_about_to_go_takes_no_consumer() {
    let mut queue = Stage::new(QueueSettings::default()).queue;
    queue.retire();
    assert_eq!(queue.admit_consumer(false), Err(ConsumeRefusal::Retired));
    assert_eq!(queue.admit_consumer(true), Err(ConsumeRefusal::Retired));
}

#[test]
fn an_auto_delete_queue_goes_with_its_last_consumer() {
    let mut stage = Stage::new(QueueSettings { is_auto_delete: true, ..QueueSettings::default() });
    assert!(!stage.queue.remove_consumer(reader(1), stage.now), "it never had one");
    stage.consume(1, 0, 1);
    stage.consume(2, 0, 1);
    assert!(!stage.queue.remove_consumer(reader(1), stage.now));
    assert!(!stage.queue.remove_consumer(reader(1), stage.now), "it is gone already");
    assert!(stage.queue.remove_consumer(reader(2), stage.now));
}

#[test]
fn ten_thousand_consumers_of_as_many_priorities_come_and_go() {
    let mut stage = Stage::new(QueueSettings::default());
    let priorities = 0..10_000;
    for slot in priorities.clone() {
        stage.consume(slot, slot as i32, 1);
    }
    for slot in priorities.clone().rev() {
        stage.publish("m").unwrap();
        assert_eq!(stage.given.pop().map(|given| given.reader), Some(slot));
    }
    assert_eq!(stage.publish("m"), Ok(Published::Waiting));
    for slot in priorities {
        stage.queue.remove_consumer(reader(slot), stage.now);
    }
    assert_eq!(stage.queue.consumers_len(), 0);
}

#[test]
fn a_long_queue_gives_its_memory_back() {
    let mut stage = Stage::new(QueueSettings::default());
    stage.settles = false;
    for _ in 0..1000 {
        stage.publish("m").unwrap();
    }
    stage.consume(1, 0, UNLIMITED);
    assert_eq!(stage.queue.ready_len(), 0);
    let left = stage.queue.ready.capacity();
    assert!(left <= 64, "room for {left} messages is kept for none");
}

#[test]
fn everything_is_charged_until_it_is_gone() {
    for settles in [true, false] {
        let mut stage = Stage::new(dead_lettering());
        stage.settles = settles;
        for _ in 0..300 {
            stage.publish("m").unwrap();
        }
        let message = stage.gauge.bytes() / 300 - Entry::CHARGE;
        assert_eq!(stage.gauge.bytes(), 300 * (message + Entry::CHARGE));
        stage.consume(1, 0, 200);
        let kept = if settles { 300 } else { 100 };
        let room = stage.queue.room_charged * ROOM_CHARGE;
        assert_eq!(room > 0, settles);
        assert_eq!(stage.gauge.bytes(), kept * (message + Entry::CHARGE) + room);
        let gauge = stage.gauge.clone();
        drop(stage);
        assert_eq!(gauge.bytes(), 0);
    }
}

#[test]
fn a_queue_has_a_bit_for_each_part_that_it_uses_and_none_for_others() {
    let plain = Stage::new(QueueSettings::default()).queue;
    assert_eq!(plain.features, QueueFeatures::default());
    let seconds = Some(Duration::from_secs(9));
    for (settings, expected) in [
        (QueueSettings { expires: seconds, ..QueueSettings::default() }, QueueFeatures::EXPIRES),
        (QueueSettings { dedup_window: seconds, ..QueueSettings::default() }, QueueFeatures::DEDUP),
        (QueueSettings { is_single_active: true, ..QueueSettings::default() }, QueueFeatures::SINGLE_ACTIVE),
        (QueueSettings { delivery_limit: Some(2), ..QueueSettings::default() }, QueueFeatures::COUNTS),
    ] {
        assert_eq!(Stage::new(settings).queue.features, expected);
    }
    let mut delayed = properties();
    delayed.delay_ms = NonZeroU32::new(1_000);
    let mut stage = Stage::new(QueueSettings::default());
    stage.publish_with("a", &delayed, None).expect("there is room");
    assert_eq!(stage.queue.features, QueueFeatures::DELAYED);
    stage.pass(Duration::from_secs(1));
    stage.deliver();
    stage.queue.renew_features();
    assert_eq!(stage.queue.features, QueueFeatures::default(), "it is due, and none is left");
}
