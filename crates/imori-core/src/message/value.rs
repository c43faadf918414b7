//! Header values: every type that a header of some protocol can have.

use std::borrow::Cow;

/// A header value or an argument. It has all of AMQP's types, so that conversion loses nothing.
#[derive(Debug, Clone, PartialEq)]
pub enum Value<'a> {
    /// No value.
    Null,
    /// True or false.
    Bool(bool),
    /// A signed number.
    Int(i64),
    /// An unsigned number.
    Uint(u64),
    /// A number with a fraction.
    Float(f64),
    /// Milliseconds since the UNIX epoch.
    Timestamp(i64),
    /// Text; UTF-8 if the origin kept its own rules.
    Text(Cow<'a, [u8]>),
    /// Bytes.
    Binary(Cow<'a, [u8]>),
    /// Values in order.
    List(Vec<Value<'a>>),
    /// Named values in order; names may repeat.
    Map(Vec<(Cow<'a, [u8]>, Value<'a>)>),
}

impl<'a> Value<'a> {
    /// A text value that borrows.
    pub fn text(text: &'a [u8]) -> Value<'a> {
        Value::Text(Cow::Borrowed(text))
    }

    /// A copy of the value that owns its bytes.
    pub fn into_owned(self) -> Value<'static> {
        match self {
            Value::Null => Value::Null,
            Value::Bool(value) => Value::Bool(value),
            Value::Int(value) => Value::Int(value),
            Value::Uint(value) => Value::Uint(value),
            Value::Float(value) => Value::Float(value),
            Value::Timestamp(value) => Value::Timestamp(value),
            Value::Text(bytes) => Value::Text(Cow::Owned(bytes.into_owned())),
            Value::Binary(bytes) => Value::Binary(Cow::Owned(bytes.into_owned())),
            Value::List(values) => Value::List(values.into_iter().map(Value::into_owned).collect()),
            Value::Map(entries) => Value::Map(
                entries
                    .into_iter()
                    .map(|(name, value)| (Cow::Owned(name.into_owned()), value.into_owned()))
                    .collect(),
            ),
        }
    }
}
