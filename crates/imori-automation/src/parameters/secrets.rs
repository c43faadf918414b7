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
