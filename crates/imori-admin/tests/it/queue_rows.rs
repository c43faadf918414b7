//! The rows of queues in the feed.

use std::time::Duration;

use imori_admin::for_tests::GROWING_SECONDS;
use imori_admin::for_tests::queue_rows::{COLUMNS, QueueNumbers, QueueReading, number, shown_age, write};
use imori_core::id::{QueueId, VhostId};
use imori_core::time::Time;
use serde_json::{Value, json};

const READING: QueueReading = QueueReading {
    vhost: VhostId(0),
    ready: 5,
    unsettled: 1,
    bytes: 500,
    consumers: 2,
    published: 100,
    delivered: 40,
    waits_since: Some(Time(1_000_000)),
    is_throttling: false,
};

const SECOND: Duration = Duration::from_secs(1);

fn next(before: Option<&QueueNumbers>, reading: QueueReading, at_ms: u64) -> QueueNumbers {
    reading.numbers(before, Time(at_ms * 1_000), SECOND)
}

/// What is shown of a queue's numbers, by column.
fn shown(numbers: &QueueNumbers, column: &str) -> Value {
    let mut text = String::from("[1,\"/\",\"a\",\"classic\",true,");
    write(numbers, &mut text);
    let row: Vec<Value> = serde_json::from_str(&text).unwrap();
    let columns: Vec<String> = serde_json::from_str(COLUMNS).unwrap();
    row[columns.iter().position(|known| known == column).unwrap()].clone()
}

#[test]
fn a_row_has_a_value_for_each_column() {
    let first = next(None, READING, 3_500);
    let mut text = String::from("[1,\"/\",\"a\",\"classic\",true,");
    write(&first, &mut text);
    let row: Value = serde_json::from_str(&text).unwrap();
    let columns: Vec<String> = serde_json::from_str(COLUMNS).unwrap();
    assert_eq!(row.as_array().unwrap().len(), columns.len());
    assert_eq!(text, "[1,\"/\",\"a\",\"classic\",true,5,1,500,2,0,0,2500,null]");
}

#[test]
fn rates_are_those_since_the_last_pass() {
    let first = next(None, READING, 3_500);
    let moved = QueueReading { published: 150, delivered: 41, ..READING };
    let second = next(Some(&first), moved, 3_600);
    assert_eq!((shown(&second, "in_rate"), shown(&second, "out_rate")), (json!(50), json!(1)));
    let third = next(Some(&second), QueueReading { published: 200, delivered: 42, ..READING }, 3_700);
    assert_eq!(third, second, "the same is shown");
    let still = next(Some(&third), QueueReading { published: 200, ..moved }, 3_700);
    assert_eq!(shown(&still, "in_rate"), 0);
}

#[test]
fn an_age_changes_when_it_differs_noticeably() {
    for (age, shown, expected) in [
        (None, None, None),
        (None, Some(5), None),
        (Some(5), None, Some(5)),
        (Some(999), Some(0), Some(0)),
        (Some(1_000), Some(0), Some(1_000)),
        (Some(109_999), Some(100_000), Some(100_000)),
        (Some(110_000), Some(100_000), Some(110_000)),
        (Some(10), Some(100_000), Some(10)),
    ] {
        assert_eq!(shown_age(age, shown), expected, "{age:?} after {shown:?}");
    }
}

#[test]
fn a_queue_that_becomes_longer_for_some_seconds_grows() {
    let mut numbers = next(None, READING, 3_000);
    for ready in 6..6 + usize::from(GROWING_SECONDS) {
        assert_eq!(shown(&numbers, "state"), Value::Null);
        numbers = next(Some(&numbers), QueueReading { ready, ..READING }, 3_000);
    }
    assert_eq!(shown(&numbers, "state"), "growing");
    let shorter = next(Some(&numbers), READING, 3_000);
    assert_eq!(shown(&shorter, "state"), Value::Null);
    let throttling = QueueReading { is_throttling: true, ..READING };
    assert_eq!(shown(&next(Some(&shorter), throttling, 3_000), "state"), "throttling");
}

#[test]
fn numbers_of_queues_are_exact_in_javascript() {
    let last = number(QueueId { slot: u32::MAX, generation: u32::MAX });
    assert!(last < 1 << 53, "{last}");
    let id = |slot, generation| number(QueueId { slot, generation });
    assert!(id(1, 0) > id(0, 7) && id(1, 1) != id(1, 0));
}
