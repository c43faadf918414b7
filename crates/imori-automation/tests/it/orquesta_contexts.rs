//! Variables that tasks publish.

use imori_automation::for_tests::{Context, variables};
use imori_automation::value::{Map, Value};

use crate::map;

fn change(parent: usize, json: &str) -> Context {
    Context::Change { parent, published: map(json) }
}

#[test]
fn later_places_count_more() {
    let contexts = [
        Context::Root(map(r#"{"x": 0, "o": {"a": 1}}"#)),
        change(0, r#"{"x": 1}"#),
        change(1, r#"{"y": 2, "o": {"b": 2}}"#),
        change(1, r#"{"y": 3, "x": 3}"#),
        Context::Join { left: 2, right: 3 },
        Context::Join { left: 3, right: 2 },
        change(4, r#"{"o": 5}"#),
    ];
    let rows = [
        (0, r#"{"x":0,"o":{"a":1}}"#),
        (2, r#"{"x":1,"o":{"a":1,"b":2},"y":2}"#),
        (4, r#"{"x":3,"o":{"a":1,"b":2},"y":3}"#),
        // A value that both branches have from before the split counts again with the second one.
        (5, r#"{"x":1,"o":{"a":1,"b":2},"y":2}"#),
        (6, r#"{"x":3,"o":5,"y":3}"#),
        (99, r#"{"x":0,"o":{"a":1}}"#),
    ];
    for (place, expected) in rows {
        assert_eq!(Value::Map(variables(&contexts, place)).to_json(), expected, "{place}");
    }
}

#[test]
fn joins_of_joins_take_no_longer_than_their_number() {
    let mut contexts = vec![Context::Root(Map::new())];
    for at in 0..1_000 {
        contexts.push(Context::Join { left: at, right: at });
    }
    assert!(variables(&contexts, 1_000).is_empty());
}
