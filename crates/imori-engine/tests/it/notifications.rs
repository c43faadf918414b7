//! Notifications of ended executions.

use imori_automation::value::{Map, Value};
use imori_engine::for_tests::{
    notification_id, notification_moments, notification_routes, notification_time,
};

fn map(text: &str) -> Map {
    Value::from_json(text.as_bytes()).unwrap().as_map().unwrap().clone()
}

#[test]
fn each_end_has_its_parts() {
    for (status, expected) in [
        ("succeeded", &["on-complete", "on-success"][..]),
        ("failed", &["on-complete", "on-failure"]),
        ("timeout", &["on-complete", "on-failure"]),
        ("abandoned", &["on-complete", "on-failure"]),
        ("canceled", &["on-complete"]),
    ] {
        let found: Vec<_> = notification_moments(status).into_iter().map(|(moment, _)| moment).collect();
        assert_eq!(found, expected, "{status}");
    }
}

#[test]
fn a_part_names_its_routes() {
    for (part, expected) in [
        (r#"{"routes": ["a", "b"], "channels": ["c"]}"#, r#"["a","b"]"#),
        (r#"{"routes": [], "channels": ["c"]}"#, r#"["c"]"#),
        (r#"{"message": "m"}"#, r#"["notify.default"]"#),
    ] {
        assert_eq!(Value::List(notification_routes(&map(part))).to_json(), expected, "{part}");
    }
}

#[test]
fn an_event_has_the_same_id_whenever_it_is_made() {
    let execution = map(r#"{"id": "e", "end_timestamp": "2026-11-27T01:30:06.000000Z"}"#);
    let id = notification_id(&execution, "on-complete", 0);
    assert_eq!(id, notification_id(&execution, "on-complete", 0));
    assert_ne!(id, notification_id(&execution, "on-complete", 1));
    assert_ne!(id, notification_id(&execution, "on-success", 0));
    assert_eq!(notification_time("2026-11-27T01:30:06.000000Z"), "2026-11-27T01:30:06.000000+00:00");
}
