//! The body of a request as a value.

use std::fmt;

use super::form::fields;
use crate::limits::FORM_FIELDS_MAX;
use crate::value::{Map, Value};

/// Why a body is no value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BodyError {
    /// It is announced as JSON and is none; the text says where.
    Json(String),
    /// It has bytes that are no UTF-8.
    Encoding,
    /// It is a form of more than `FORM_FIELDS_MAX` fields.
    FormFields,
}

/// Decodes a body. JSON, also of types such as `application/cloudevents+json` and where no type is given, becomes its
/// value, and an empty one an empty object. A form becomes an object of lists of texts, as in StackStorm. Any other is
/// a text.
pub(super) fn decode(content_type: Option<&str>, body: &[u8]) -> Result<Value, BodyError> {
    let media_type =
        content_type.map_or("application/json", |value| value.split(';').next().unwrap_or(value).trim());
    let media_type = media_type.to_ascii_lowercase();
    if media_type.is_empty() || media_type == "application/json" || media_type.ends_with("+json") {
        if body.is_empty() {
            return Ok(Value::Map(Map::new()));
        }
        return Value::from_json(body).map_err(|error| BodyError::Json(error.to_string()));
    }
    let text = std::str::from_utf8(body).map_err(|_| BodyError::Encoding)?;
    if media_type == "application/x-www-form-urlencoded" {
        return form(text);
    }
    Ok(Value::from(text))
}

/// The value that is sent as JSON in the only field, `payload`, of a form.
pub(super) fn payload_of_form(body: &Value) -> Option<Value> {
    let form = body.as_map().filter(|form| form.len() == 1)?;
    match form.get("payload")?.as_list()? {
        [Value::String(text)] => Value::from_json(text.as_bytes()).ok(),
        _ => None,
    }
}

fn form(text: &str) -> Result<Value, BodyError> {
    let mut form = Map::new();
    for (name, value) in fields(text).ok_or(BodyError::FormFields)? {
        match form.get_mut(&name) {
            Some(Value::List(values)) => values.push(Value::from(value)),
            _ => drop(form.insert(name, vec![Value::from(value)])),
        }
    }
    Ok(Value::Map(form))
}

impl fmt::Display for BodyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BodyError::Json(error) => {
                write!(f, "the body is no JSON: {error}; send JSON, or another `Content-Type`")
            }
            BodyError::Encoding => f.write_str("the body is no UTF-8; send it in UTF-8"),
            BodyError::FormFields => {
                write!(f, "the form has more than {FORM_FIELDS_MAX} fields; send fewer, or JSON")
            }
        }
    }
}

impl std::error::Error for BodyError {}
