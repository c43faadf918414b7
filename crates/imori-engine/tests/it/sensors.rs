//! Sensors: their output, the pauses between their starts, and their events.

use std::time::Duration;

use imori_automation::value::Value;
use imori_engine::for_tests::{Backoff, Lines, LogWindow, Trigger, check_payload, trigger_reference};
use imori_engine::limits::{
    SENSOR_LINE_BYTES_MAX, SENSOR_LINES_LOGGED_PER_SECOND, SENSOR_PAUSE_MAX, SENSOR_STABLE_TIME,
};
use tokio::time::Instant;

#[test]
fn output_becomes_lines_of_bounded_length() {
    let long = "x".repeat(SENSOR_LINE_BYTES_MAX);
    let rows: [(&[&str], &[&str]); 6] = [
        (&["a\nb\n"], &["a", "b"]),
        (&["a", "b\nc"], &["ab", "c"]),
        (&["\n\na\r\n"], &["a"]),
        (&[&format!("{long}y\n")], &[&long, "y"]),
        (&[&long, "y"], &[&long, "y"]),
        (&[""], &[]),
    ];
    for (pieces, expected) in rows {
        let mut lines = Lines::default();
        let mut found: Vec<String> = pieces.iter().flat_map(|piece| lines.push(piece.as_bytes())).collect();
        found.extend(lines.rest());
        assert_eq!(found, expected);
    }
}

#[test]
fn lines_beyond_the_limit_of_a_second_are_counted() {
    let start = Instant::now();
    let mut window = LogWindow::new(start);
    let admitted = (0..SENSOR_LINES_LOGGED_PER_SECOND + 5).filter(|_| window.admits_line()).count();
    assert_eq!(admitted, SENSOR_LINES_LOGGED_PER_SECOND as usize);
    assert_eq!(window.next(start), 0);
    assert_eq!(window.next(start + Duration::from_secs(1)), 5);
    assert!(window.admits_line());
}

#[test]
fn the_pause_doubles_up_to_its_limit_and_starts_anew_after_a_stable_run() {
    let (crash, stable) = (Duration::from_millis(10), SENSOR_STABLE_TIME);
    let rows = [
        (crash, 1, false),
        (crash, 2, false),
        (crash, 4, true),
        (crash, 8, true),
        (stable, 1, false),
        (crash, 2, false),
        (crash, 4, true),
        (crash, 8, true),
        (crash, 16, true),
        (crash, 32, true),
        (crash, 64, true),
        (crash, 128, true),
        (crash, 256, true),
        (crash, 300, true),
        (crash, 300, true),
        (stable, 1, false),
    ];
    let mut backoff = Backoff::default();
    for (index, (ran, seconds, is_crash_loop)) in rows.into_iter().enumerate() {
        assert_eq!(backoff.ended(ran), Duration::from_secs(seconds), "end {index}");
        assert_eq!(backoff.is_crash_loop(), is_crash_loop, "end {index}");
    }
}

#[test]
fn the_pause_of_a_sensor_that_never_recovers_stays_at_its_limit() {
    let mut backoff = Backoff { ends: u32::MAX };
    assert_eq!(backoff.ended(Duration::ZERO), SENSOR_PAUSE_MAX);
}

#[test]
fn a_trigger_is_named_by_its_reference_or_by_an_object() {
    let with_parameters = Trigger::new("p.t", [("a", Value::from(1))].into_iter().collect()).reference;
    for (json, expected) in [
        (r#""p.t""#, Some("p.t")),
        (r#"{"ref": "p.5f", "type": "p.t"}"#, Some("p.5f")),
        (r#"{"type": "p.t"}"#, Some("p.t")),
        (r#"{"type": "p.t", "parameters": {"a": 1}}"#, Some(with_parameters.as_str())),
        (r#"{"pack": "p", "name": "t"}"#, Some("p.t")),
        (r#"{"name": "t"}"#, None),
        (r#""""#, None),
        ("null", None),
        ("5", None),
    ] {
        let trigger = Value::from_json(json.as_bytes()).unwrap();
        assert_eq!(trigger_reference(&trigger).as_deref(), expected, "{json}");
    }
}

#[test]
fn a_payload_is_checked_by_the_schema_of_its_type() {
    let schema = r#"{"type": "object", "properties": {"id": {"type": "string"}}}"#;
    for (schema, payload, is_valid) in [
        ("{}", r#"{"id": 5}"#, true),
        (schema, r#"{"id": "5", "other": 1}"#, true),
        (schema, r#"{"id": null}"#, true),
        (schema, "{}", true),
        (schema, r#"{"id": 5}"#, false),
    ] {
        let value = |json: &str| Value::from_json(json.as_bytes()).unwrap();
        let checked = check_payload(Some(&value(schema)), &value(payload));
        assert_eq!(checked.is_ok(), is_valid, "{payload} by {schema}: {checked:?}");
    }
}
