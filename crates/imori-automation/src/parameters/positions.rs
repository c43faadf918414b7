//! Parameters of a shell script as arguments of its command line.

use std::collections::BTreeMap;

use crate::python::{repr, text_of};
use crate::value::{Map, Value};

/// Splits parameters into the arguments that have a position, in its order, and the others by name. A parameter with
/// a position that has no value is an empty argument. Of two with the same position the later one counts.
pub fn positional_arguments(action_parameters: &Map, values: &Map) -> (Vec<String>, Map) {
    let mut by_position: BTreeMap<Position, (&str, &Value)> = BTreeMap::new();
    for (name, schema) in action_parameters.iter() {
        if let Some(position) = schema.get("position").and_then(Value::as_number) {
            by_position.insert(Position(position), (name, schema));
        }
    }
    let positional = by_position
        .values()
        .map(|(name, schema)| {
            let kind = schema.get("type").and_then(Value::as_str);
            argument(kind, values.get(name).unwrap_or(&Value::Null))
        })
        .collect();
    let named = values
        .iter()
        .filter(|(name, _)| !by_position.values().any(|(known, _)| known == name))
        .map(|(name, value)| (name, value.clone()))
        .collect();
    (positional, named)
}

/// A position, which a schema may give as a float.
#[derive(Debug, Clone, Copy)]
struct Position(f64);

impl PartialEq for Position {
    fn eq(&self, other: &Position) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Position {}

impl PartialOrd for Position {
    fn partial_cmp(&self, other: &Position) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Position {
    fn cmp(&self, other: &Position) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

/// A value as one argument, by the type of its parameter.
fn argument(kind: Option<&str>, value: &Value) -> String {
    match (kind, value) {
        (Some("null"), _) | (_, Value::Null) => String::new(),
        (Some("string" | "number" | "float"), value) => text_of(value),
        (Some("boolean"), value) => if value.is_truthy() { "1" } else { "0" }.to_owned(),
        (_, value) if !value.is_truthy() => String::new(),
        (Some("array" | "list"), Value::List(items)) => {
            items.iter().map(text_of).collect::<Vec<_>>().join(",")
        }
        // Python takes any other value apart: a text into its characters, an object into its keys.
        (Some("array" | "list"), Value::String(text)) => {
            text.chars().map(String::from).collect::<Vec<_>>().join(",")
        }
        (Some("array" | "list"), Value::Map(map)) => {
            map.iter().map(|(key, _)| key.to_owned()).collect::<Vec<_>>().join(",")
        }
        (Some("object"), value) => value.to_json(),
        (_, Value::String(text)) => text.clone(),
        (_, value) => repr(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let map = |text: &str| Value::from_json(text.as_bytes()).unwrap().as_map().unwrap().clone();
        for (schemas, values, expected) in ROWS {
            let (positional, named) = positional_arguments(&map(schemas), &map(values));
            let positional = positional.into_iter().map(Value::from).collect();
            let both = Value::List(vec![Value::List(positional), Value::Map(named)]);
            assert_eq!(both, Value::from_json(expected.as_bytes()).unwrap(), "{schemas}");
        }
    }
}
