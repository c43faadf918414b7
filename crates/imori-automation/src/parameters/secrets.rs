//! Secrets of parameters, masked for people and logs.

use crate::limits::VALUE_DEPTH_MAX;
use crate::value::{Map, Value};

/// The mask of a secret.
pub const MASK: &str = "********";

/// Masks the secrets of a value by its schema. A list or an object that is secret is masked as a whole.
pub fn mask(value: &Value, schema: &Value) -> Value {
    masked(value, schema, 0)
}

/// Masks the secrets of parameters by their schemas. A parameter without a schema is left as it is.
pub fn mask_parameters(parameters: &Map, schemas: &Map) -> Map {
    let mask = |name: &str, value: &Value| match schemas.get(name) {
        Some(schema) => mask(value, schema),
        None => value.clone(),
    };
    parameters.iter().map(|(name, value)| (name, mask(name, value))).collect()
}

fn masked(value: &Value, schema: &Value, depth: usize) -> Value {
    // A value that is too deep to look for its secrets could have some.
    if schema.get("secret").is_some_and(Value::is_truthy) || depth > VALUE_DEPTH_MAX {
        return Value::from(MASK);
    }
    match value {
        Value::Map(map) if has_type(schema, "object") => {
            let properties = schema.get("properties");
            let part =
                |name: &str, value: &Value| match properties.and_then(|properties| properties.get(name)) {
                    Some(schema) => masked(value, schema, depth + 1),
                    None => value.clone(),
                };
            Value::Map(map.iter().map(|(name, value)| (name, part(name, value))).collect())
        }
        Value::List(items) if has_type(schema, "array") => match schema.get("items") {
            Some(schema @ Value::Map(_)) => {
                Value::List(items.iter().map(|item| masked(item, schema, depth + 1)).collect())
            }
            _ => value.clone(),
        },
        // A value of another type, such as JSON as a text, may have the secrets in it.
        value if !value.is_null() && has_secret(schema, depth) => Value::from(MASK),
        value => value.clone(),
    }
}

fn has_type(schema: &Value, wanted: &str) -> bool {
    match schema.get("type") {
        Some(Value::String(name)) => name == wanted,
        Some(Value::List(names)) => names.iter().any(|name| name.as_str() == Some(wanted)),
        _ => false,
    }
}

/// Whether a part of a value of this schema is secret.
fn has_secret(schema: &Value, depth: usize) -> bool {
    let is_secret = |schema: &Value| {
        depth > VALUE_DEPTH_MAX
            || schema.get("secret").is_some_and(Value::is_truthy)
            || has_secret(schema, depth + 1)
    };
    let properties = schema.get("properties").and_then(Value::as_map);
    (has_type(schema, "object")
        && properties.into_iter().flat_map(Map::iter).any(|(_, schema)| is_secret(schema)))
        || (has_type(schema, "array") && schema.get("items").is_some_and(is_secret))
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let map = |text: &str| Value::from_json(text.as_bytes()).unwrap().as_map().unwrap().clone();
        for (schemas, values, expected) in ROWS {
            assert_eq!(mask_parameters(&map(values), &map(schemas)), map(expected), "{schemas}");
        }
    }
}
