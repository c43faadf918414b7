//! Converts TOML values to configuration values.

use imori_server::config::Value;
use toml::de::DeValue;

/// Converts a TOML value; types that no key accepts become `Other`.
pub(super) fn reading(value: &DeValue<'_>) -> Value {
    match value {
        DeValue::Boolean(truth) => Value::Boolean(*truth),
        DeValue::String(text) => Value::Text(text.to_string()),
        DeValue::Integer(integer) => {
            i64::from_str_radix(integer.as_str(), integer.radix()).map_or(Value::Other, Value::Integer)
        }
        DeValue::Array(items) => Value::List(items.iter().map(|item| reading(item.get_ref())).collect()),
        DeValue::Float(_) | DeValue::Datetime(_) | DeValue::Table(_) => Value::Other,
    }
}
