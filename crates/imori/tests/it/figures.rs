//! Figures, sizes and times as commands print them, and the diagnosis of a queue.

use std::time::Duration;

use imori::for_tests::{
    Evidence, ago, body, bytes, count, counted, limits_text, moment, rate, shown_duration, size, span,
};
use serde_json::{Value, json};

#[test]
fn figures_have_the_unit_that_fits() {
    assert_eq!([0, 999, 1000, 1_234_567].map(count), ["0", "999", "1,000", "1,234,567"]);
    assert_eq!([counted(1, "message"), counted(1500, "message")], ["1 message", "1,500 messages"]);
    assert_eq!(
        [0.0, 0.01, 0.3, 9.96, 10.4, 1200.6].map(rate),
        ["0/s", "0/s", "0.3/s", "10.0/s", "10/s", "1,201/s"]
    );
    assert_eq!([0, 1023, 1024, 3277, 14 << 20].map(bytes), ["0 B", "1023 B", "1.0 KiB", "3.2 KiB", "14 MiB"]);
    let durations = [850, 4_200, 42_000, 60_000, 250_000, 3_660_000, 273_600_000];
    assert_eq!(
        durations.map(|ms| shown_duration(Duration::from_millis(ms))),
        ["850 ms", "4.2 s", "42 s", "1 min", "4 min 10 s", "1 h 1 min", "3 d 4 h"]
    );
}

#[test]
fn sizes_and_spans_are_readable() {
    for (bytes, expected) in [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (1536, "1.5 KiB"),
        (10 * 1024 * 1024, "10.0 MiB"),
        (u64::MAX, "15.9 EiB"),
    ] {
        assert_eq!(size(&json!(bytes)), expected);
    }
    assert_eq!(size(&Value::Null), "-");
    for (ms, expected) in [
        (0, "0.0s"),
        (9_950, "9.9s"),
        (10_000, "10s"),
        (61_000, "1m1s"),
        (3_660_000, "1h1m"),
        (90_000_000, "1d1h"),
    ] {
        assert_eq!(span(ms), expected);
    }
    assert_eq!(ago(&json!(5_000), 66_000), "1m1s ago");
    assert_eq!(moment(&json!(1_700_000_000_123_u64)), "2023-11-14 22:13:20.123 UTC");
    assert_eq!(moment(&Value::Null), "-");
}

#[test]
fn limits_are_listed_if_they_are_set() {
    assert_eq!(limits_text(&json!({})), "none");
    let limits = json!({"messages": 9, "age_ms": 61_000, "message_bytes": 2048, "bytes": null});
    assert_eq!(limits_text(&limits), "messages 9, age 1m1s, message bytes 2.0 KiB");
}

#[test]
fn bodies_are_text_where_they_can_be() {
    assert_eq!(body(&json!("bmV3dA==")), "newt");
    assert_eq!(body(&json!("/w==")), "base64:/w==");
}

fn told(ready: u64, into: f64, out: f64, more: &Value, consumers: &[Value]) -> String {
    let rate = |per_second: f64| json!({"total": 9, "per_second": per_second});
    let mut queue = json!({
        "ready": ready,
        "consumers": consumers.len(),
        "rates": {"published": rate(into), "delivered": rate(out), "acknowledged": rate(out)},
    });
    let fields = more.as_object().unwrap().clone();
    queue.as_object_mut().unwrap().extend(fields);
    Evidence { queue, consumers: consumers.to_vec(), overview: json!({}) }.diagnosis()
}

#[test]
fn a_queue_that_grows_is_told_with_what_keeps_its_consumers() {
    let none = json!({});
    assert_eq!(
        told(12_345, 1200.0, 0.0, &json!({"oldest_ms": 250_000}), &[]),
        "12,345 messages wait, the oldest for 4 min 10 s. It grows by 1,200/s: 1,200/s come in and 0/s go out. \
         It has no consumer."
    );
    let busy = json!({"credit": 0, "prefetch": 10});
    assert_eq!(
        told(1, 0.0, 0.0, &json!({"unsettled": 10}), std::slice::from_ref(&busy)),
        "1 message waits. It stands still: nothing comes in and nothing goes out. Its consumer has no credit until \
         deliveries are settled: 10 are unsettled, and 0/s are settled."
    );
    let free = json!({"credit": null, "prefetch": null});
    assert!(
        told(9, 9.0, 9.0, &none, &[busy.clone(), free.clone()])
            .contains("1 of its 2 consumers have no credit")
    );
    assert!(told(9, 9.0, 9.0, &none, &[busy.clone(), busy]).contains("It keeps its length"));
    assert!(
        told(9, 0.0, 0.0, &none, std::slice::from_ref(&free))
            .contains("no message may match their selectors")
    );
    assert!(told(90, 9.0, 99.0, &none, &[free]).contains("It shrinks by 90/s, so that it is empty in 1.0 s"));
    let ungranted = json!({"credit": 0, "prefetch": null});
    assert!(
        told(9, 0.0, 0.0, &none, &[ungranted])
            .ends_with("Its consumer has no credit: its client has granted none.")
    );
}

#[test]
fn a_queue_in_which_nothing_waits_is_told_with_what_is_unsettled_or_delayed() {
    assert_eq!(
        told(0, 5.0, 5.0, &json!({"unsettled": 1, "delayed": 2}), &[]),
        "No message waits; 5.0/s come in and 5.0/s go out. 1 delivery waits to be settled; 5.0/s are. 2 messages are \
         delayed and not due yet."
    );
    let new = json!({"rates": {"published": {"total": 0}}});
    assert_eq!(
        told(0, 0.0, 0.0, &new, &[]),
        "No message waits, and none was published to it since the broker started."
    );
}

#[test]
fn limits_and_alarms_are_told_with_their_source() {
    let settings = json!([
        {"key": "max-length", "value": 5, "source": "policy small"},
        {"key": "overflow", "value": "drop-head", "source": "default"},
        {"key": "message-ttl", "value": 60_000, "source": "argument"},
        {"key": "expires", "value": null, "source": "default"},
    ]);
    let told = told(5, 0.0, 0.0, &json!({"in_effect": settings, "publishers_wait": true}), &[]);
    assert!(told.ends_with(
        "It has no consumer. Its publishers wait, because it grows faster than it is written to disk. It is full: \
         `max-length` is 5 by policy small, and `overflow` is `drop-head`. What waits for 1 min expires, by argument."
    ), "{told}");
}
