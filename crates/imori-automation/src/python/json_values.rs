//! What Python writes of the values of the automation.

use super::conversion::to_template;
use super::values::{push_string_repr, text, type_name};
use crate::value::Value;

/// What `str` gives.
pub(crate) fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        value => repr(value),
    }
}

/// What `repr` gives; JSON where that would be too long or too deep.
pub(crate) fn repr(value: &Value) -> String {
    match value {
        Value::String(text) => repr_text(text),
        value => text(&to_template(value)).unwrap_or_else(|_| value.to_json()),
    }
}

/// What `repr` gives of a text.
pub(crate) fn repr_text(text: &str) -> String {
    let mut out = String::new();
    push_string_repr(&mut out, text);
    out
}

/// The name of Python's type.
pub(crate) fn type_of(value: &Value) -> &'static str {
    type_name(&to_template(value))
}
