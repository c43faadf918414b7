//! Masked secrets.

use imori_automation::parameters::mask_parameters;

use crate::map;

/// Schemas, values, and the masked values as in StackStorm.
const ROWS: &[(&str, &str, &str)] = &[
    (
        r#"{"a": {"type": "string", "secret": true}, "b": {"type": "string"}}"#,
        r#"{"a": "x", "b": "y", "c": "z"}"#,
        r#"{"a": "********", "b": "y", "c": "z"}"#,
    ),
    (
        r#"{"o": {"type": "object", "properties": {"s": {"type": "string", "secret": true}, "n": {"type": "object", "properties": {"t": {"type": "integer", "secret": true}}}}}}"#,
        r#"{"o": {"s": "x", "n": {"t": 5, "u": 6}}}"#,
        r#"{"o": {"s": "********", "n": {"t": "********", "u": 6}}}"#,
    ),
    (
        r#"{"l": {"type": "array", "items": {"type": "string", "secret": true}}, "m": {"type": "array", "items": {"type": "object", "properties": {"s": {"secret": true, "type": "string"}}}}}"#,
        r#"{"l": ["a", "b"], "m": [{"s": "x", "k": 1}, {}]}"#,
        r#"{"l": ["********", "********"], "m": [{"s": "********", "k": 1}, {}]}"#,
    ),
    (r#"{"o": {"type": "object", "secret": true}}"#, r#"{"o": {"a": 1}}"#, r#"{"o": "********"}"#),
    // StackStorm fails here.
    (
        r#"{"o": {"type": "object", "properties": {"s": {"secret": true}}}}"#,
        r#"{"o": "text"}"#,
        r#"{"o": "********"}"#,
    ),
    (
        r#"{"o": {"type": ["object", "null"], "properties": {"s": {"secret": true}}}}"#,
        r#"{"o": {"s": 1}}"#,
        r#"{"o": {"s": "********"}}"#,
    ),
];

#[test]
fn secrets_are_masked_wherever_they_are() {
    for (schemas, values, expected) in ROWS {
        assert_eq!(mask_parameters(&map(values), &map(schemas)), map(expected), "{schemas}");
    }
}
