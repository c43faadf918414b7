//! The values of columns.

use imori_automation::value::Value;

/// A value that is stored, or that a statement compares with one.
///
/// In both stores values compare alike: nothing comes before numbers, numbers before texts, and texts are compared byte
/// by byte.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Field<'a> {
    /// No value.
    Null,
    /// A whole number.
    Int(i64),
    /// A number.
    Real(f64),
    /// A text.
    Text(&'a str),
    /// Bytes.
    Bytes(&'a [u8]),
}

impl<'a> Field<'a> {
    /// The value of a column; `true` and `false` are numbers, lists and objects have none.
    pub(crate) fn of(value: Option<&'a Value>) -> Field<'a> {
        match value {
            Some(Value::String(text)) => Field::Text(text),
            Some(Value::Int(number)) => Field::Int(*number),
            Some(Value::Bool(value)) => Field::Int(i64::from(*value)),
            Some(Value::Float(number)) => Field::Real(*number),
            _ => Field::Null,
        }
    }
}
