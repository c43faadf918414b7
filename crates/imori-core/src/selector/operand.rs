//! Values during evaluation, and the interface that looks them up.

use std::borrow::Cow;

use super::field_name::FieldName;
use super::number::Number;
use crate::message::Value;

/// A value during evaluation.
#[derive(Debug, Default, Clone, PartialEq)]
pub enum Operand<'a> {
    /// Missing or unknown.
    #[default]
    Null,
    /// True or false.
    Bool(bool),
    /// A number, whole or not.
    Number(Number),
    /// A text that is never converted.
    Text(Cow<'a, [u8]>),
    /// A text of a protocol with untyped headers: compared with a number or a boolean, it is parsed
    /// as one.
    Untyped(Cow<'a, [u8]>),
    /// A value that compares with nothing, such as bytes or a list.
    Other,
}

/// Looks up the names of a selector in one message.
pub trait Fields {
    /// The value of a name; [`Operand::Null`] if the message has none.
    fn field(&self, name: &FieldName) -> Operand<'_>;
}

impl<'a> Operand<'a> {
    /// The value of a header; `is_typed` is true if the origin protocol has typed headers.
    #[inline]
    pub fn of(value: Value<'a>, is_typed: bool) -> Operand<'a> {
        match value {
            Value::Null => Operand::Null,
            Value::Bool(value) => Operand::Bool(value),
            Value::Int(number) | Value::Timestamp(number) => Operand::Number(Number::Int(number)),
            Value::Uint(number) => Operand::Number(Number::from(number)),
            Value::Float(number) => Operand::Number(Number::Float(number)),
            Value::Text(text) if is_typed => Operand::Text(text),
            Value::Text(text) => Operand::Untyped(text),
            Value::Binary(_) | Value::List(_) | Value::Map(_) => Operand::Other,
        }
    }

    /// The value as a condition: `None` if unknown or not a boolean.
    #[inline]
    pub(super) fn truth(&self) -> Option<bool> {
        match self {
            Operand::Bool(value) => Some(*value),
            Operand::Untyped(text) => read_bool(text),
            _ => None,
        }
    }

    /// The value as a number, if it is one.
    #[inline]
    pub(super) fn number(&self) -> Option<Number> {
        match self {
            Operand::Number(number) => Some(*number),
            Operand::Untyped(text) => Number::read(text),
            _ => None,
        }
    }

    /// The value as a text, if it is one.
    #[inline]
    pub(super) fn text(&self) -> Option<&[u8]> {
        match self {
            Operand::Text(text) | Operand::Untyped(text) => Some(text),
            _ => None,
        }
    }
}

impl From<Option<bool>> for Operand<'_> {
    #[inline]
    fn from(truth: Option<bool>) -> Self {
        truth.map_or(Operand::Null, Operand::Bool)
    }
}

fn read_bool(text: &[u8]) -> Option<bool> {
    match text.len() {
        4 if text.eq_ignore_ascii_case(b"true") => Some(true),
        5 if text.eq_ignore_ascii_case(b"false") => Some(false),
        _ => None,
    }
}
