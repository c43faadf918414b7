//! Positional arguments.

use imori_automation::parameters::positional_arguments;
use imori_automation::value::Value;

use crate::{json, map};

/// Schemas, values, and the arguments by position and by name as in StackStorm.
const ROWS: &[(&str, &str, &str)] = &[
    (
        r#"{"a": {"type": "string", "position": 1}, "b": {"type": "boolean", "position": 0}, "c": {"type": "array", "position": 2}, "d": {"type": "object", "position": 3}, "e": {}}"#,
        r#"{"a": "x", "b": true, "c": [1, "y", null], "d": {"k": [1]}, "e": 5}"#,
        r#"[["1", "x", "1,y,None", "{\"k\":[1]}"], {"e": 5}]"#,
    ),
    (
        r#"{"a": {"type": "string", "position": 0}, "b": {"type": "integer", "position": 1}, "c": {"type": "number", "position": 2}, "d": {"type": "boolean", "position": 3}}"#,
        r#"{"b": 0, "c": 1.0, "d": false}"#,
        r#"[["", "", "1.0", "0"], {}]"#,
    ),
    (
        r#"{"a": {"type": "integer", "position": 0}, "b": {"type": "string", "position": 0}}"#,
        r#"{"a": 7, "b": "z"}"#,
        r#"[["z"], {"a": 7}]"#,
    ),
];

#[test]
fn arguments_are_those_of_stackstorm() {
    for (schemas, values, expected) in ROWS {
        let (positional, named) = positional_arguments(&map(schemas), &map(values));
        let positional = positional.into_iter().map(Value::from).collect();
        let both = Value::List(vec![Value::List(positional), Value::Map(named)]);
        assert_eq!(both, json(expected), "{schemas}");
    }
}
