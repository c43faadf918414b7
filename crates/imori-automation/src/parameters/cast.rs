//! Casts of rendered values to the types of their parameters.

use super::ParameterError;
use crate::python::python_literal;
use crate::python::{
    NONE_MAGIC_VALUE, capitalized_text, float_of_text, int_of_text, repr_text, text_of, type_of,
};
use crate::value::Value;

/// Casts a value to a type of JSON Schema; a value is left as it is where there is no type, or one without a cast.
///
/// # Errors
/// The value cannot be cast; the text is Python's error message.
pub fn cast(value: &Value, kind: Option<&str>) -> Result<Value, ParameterError> {
    if value.is_null() {
        return Ok(Value::Null);
    }
    let is_none = value.as_str() == Some(NONE_MAGIC_VALUE);
    let value = if is_none { &Value::Null } else { value };
    match kind {
        Some("array" | "object") => match value {
            Value::String(text) => match Value::from_json(text.as_bytes()) {
                Ok(value) => Ok(value),
                Err(_) => python_literal(text).map_err(ParameterError::new),
            },
            value => Ok(value.clone()),
        },
        Some("boolean") => match value {
            Value::String(text) => python_literal(&capitalized_text(text)).map_err(ParameterError::new),
            value => Ok(value.clone()),
        },
        Some("integer") => integer(value),
        Some("number") => number(value),
        Some("string") => match value {
            Value::String(_) | Value::Null => Ok(value.clone()),
            value => Err(ParameterError::new(format!(
                "Value \"{}\" must either be a string or None. Got \"{}\".",
                text_of(value),
                type_of(value)
            ))),
        },
        // The text that stands for `None` is read by casts alone.
        _ if is_none => Ok(Value::from(NONE_MAGIC_VALUE)),
        _ => Ok(value.clone()),
    }
}

fn integer(value: &Value) -> Result<Value, ParameterError> {
    match value {
        Value::Int(number) => Ok(Value::Int(*number)),
        Value::Bool(value) => Ok(Value::Int(i64::from(*value))),
        Value::Float(number) if number.is_nan() => {
            Err(ParameterError::new("cannot convert float NaN to integer"))
        }
        Value::Float(number) if number.is_infinite() => {
            Err(ParameterError::new("cannot convert float infinity to integer"))
        }
        // Beyond 64 bits a whole number is kept as a float.
        Value::Float(number) if number.abs() >= 9.2e18 => Ok(Value::Float(number.trunc())),
        Value::Float(number) => Ok(Value::Int(number.trunc() as i64)),
        Value::String(text) => match int_of_text(text, 10) {
            Some(number) => Ok(i64::try_from(number).map_or(Value::Float(number as f64), Value::Int)),
            None => Err(ParameterError::new(format!(
                "invalid literal for int() with base 10: {}",
                repr_text(text)
            ))),
        },
        value => Err(ParameterError::new(format!(
            "int() argument must be a string, a bytes-like object or a real number, not '{}'",
            type_of(value)
        ))),
    }
}

fn number(value: &Value) -> Result<Value, ParameterError> {
    match value {
        Value::Int(number) => Ok(Value::Float(*number as f64)),
        Value::Float(number) => Ok(Value::Float(*number)),
        Value::Bool(value) => Ok(Value::Float(if *value { 1.0 } else { 0.0 })),
        Value::String(text) => match float_of_text(text) {
            Some(number) => Ok(Value::Float(number)),
            None => {
                Err(ParameterError::new(format!("could not convert string to float: {}", repr_text(text))))
            }
        },
        value => Err(ParameterError::new(format!(
            "float() argument must be a string or a real number, not '{}'",
            type_of(value)
        ))),
    }
}
