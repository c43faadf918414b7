//! Values of the broker as JSON, and back.

use std::borrow::Cow;

use imori_core::message::Value as CoreValue;
use serde_json::Value;

/// A value of JSON as one of the broker's; a whole number is signed where it can be.
pub fn value_of(value: &Value) -> CoreValue<'_> {
    match value {
        Value::Null => CoreValue::Null,
        Value::Bool(flag) => CoreValue::Bool(*flag),
        Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(whole), _) => CoreValue::Int(whole),
            (None, Some(whole)) => CoreValue::Uint(whole),
            (None, None) => CoreValue::Float(number.as_f64().unwrap_or(f64::MAX)),
        },
        Value::String(text) => CoreValue::text(text.as_bytes()),
        Value::Array(items) => CoreValue::List(items.iter().map(value_of).collect()),
        Value::Object(fields) => {
            let entry = |(name, value)| (Cow::Borrowed(String::as_bytes(name)), value_of(value));
            CoreValue::Map(fields.iter().map(entry).collect())
        }
    }
}

/// The value of an argument as JSON.
pub fn shown(value: &CoreValue<'_>) -> Value {
    let mut text = String::new();
    value.push_json(&mut text);
    serde_json::from_str(&text).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn json_is_shown_as_it_was_written() {
        let written =
            json!({"a": 1, "b": "text", "c": true, "d": null, "e": [1, {"f": 2.5}], "g": {"h": []}});
        assert_eq!(shown(&value_of(&written)), written);
    }
}
