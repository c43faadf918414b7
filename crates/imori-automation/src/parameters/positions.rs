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
