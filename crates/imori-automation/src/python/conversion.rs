//! Values of the automation as values of a template and back.

use minijinja::Error;
use minijinja::value::{Value, ValueKind};

use super::values::{Number, failure, is_list, text};
use crate::limits::VALUE_DEPTH_MAX;
use crate::value::{Map, Value as Json};

/// The value in a template.
pub(crate) fn to_template(value: &Json) -> Value {
    match value {
        Json::Null => Value::from(()),
        Json::Bool(value) => Value::from(*value),
        Json::Int(number) => Value::from(*number),
        Json::Float(number) => Value::from(*number),
        Json::String(text) => Value::from(text.as_str()),
        Json::List(list) => Value::from(list.iter().map(to_template).collect::<Vec<_>>()),
        Json::Map(map) => Value::from_pairs(map.iter().map(|(key, value)| (key, to_template(value)))),
    }
}

/// The value that Python's `json` would write: tuples become lists and keys become texts.
///
/// # Errors
/// Python could not write it as JSON, or it is nested too deep.
pub(crate) fn from_template(value: &Value) -> Result<Json, Error> {
    nested(value, 0)
}

fn nested(value: &Value, depth: usize) -> Result<Json, Error> {
    if depth > VALUE_DEPTH_MAX {
        return Err(failure("the value is nested too deep to be written"));
    }
    Ok(match value.kind() {
        ValueKind::None => Json::Null,
        ValueKind::Bool => Json::Bool(value.is_true()),
        ValueKind::Number => match Number::of(value) {
            Some(Number::Float(number)) => Json::Float(number),
            Some(Number::Int(number)) => i64::try_from(number).map_or(Json::Float(number as f64), Json::Int),
            None => Json::Float(f64::INFINITY),
        },
        ValueKind::String => Json::String(value.as_str().unwrap_or_default().to_owned()),
        _ if is_list(value) => {
            let items: Result<Vec<Json>, Error> =
                value.try_iter()?.checked().map(|item| nested(&item?, depth + 1)).collect();
            Json::List(items?)
        }
        ValueKind::Map => {
            let mut map = Map::new();
            for key in value.try_iter()? {
                let name = match key.kind() {
                    ValueKind::String => key.as_str().unwrap_or_default().to_owned(),
                    ValueKind::None => "null".to_owned(),
                    ValueKind::Bool => if key.is_true() { "true" } else { "false" }.to_owned(),
                    ValueKind::Number => text(&key)?,
                    _ => return Err(failure("keys must be str, int, float, bool or None")),
                };
                map.insert(name, nested(&value.get_item(&key)?, depth + 1)?);
            }
            Json::Map(map)
        }
        ValueKind::Undefined => {
            return Err(failure("Object of type StrictUndefined is not JSON serializable"));
        }
        _ => {
            let name = super::values::type_name(value);
            return Err(failure(format!("Object of type {name} is not JSON serializable")));
        }
    })
}
