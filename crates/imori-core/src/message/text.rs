//! Values as text and as JSON, for readers that know nothing else.
//!
//! The text is never parsed back, so types without a JSON form are written as the nearest JSON type.

use std::borrow::Cow;
use std::fmt::{Display, Write};

use super::value::Value;

impl Value<'_> {
    /// The value as a text header: texts and bytes unchanged, null as nothing, everything else as JSON.
    pub fn to_text(&self) -> Cow<'_, [u8]> {
        match self {
            Value::Text(bytes) | Value::Binary(bytes) => Cow::Borrowed(bytes),
            Value::Null => Cow::Borrowed(b""),
            other => {
                let mut out = String::new();
                other.push_json(&mut out);
                Cow::Owned(out.into_bytes())
            }
        }
    }

    /// Appends the value as JSON on one line. Bytes that are not UTF-8 are replaced, and numbers without a
    /// JSON form become `null`. A timestamp becomes seconds since the UNIX epoch, as in AMQP.
    pub fn push_json(&self, out: &mut String) {
        match self {
            Value::Null => out.push_str("null"),
            Value::Bool(value) => push(out, value),
            Value::Int(number) => push(out, number),
            Value::Uint(number) => push(out, number),
            Value::Float(number) if number.is_finite() => push_float(out, *number),
            Value::Float(_) => out.push_str("null"),
            Value::Timestamp(milliseconds) => push(out, milliseconds / 1000),
            Value::Text(bytes) | Value::Binary(bytes) => push_text(out, bytes),
            Value::List(values) => {
                out.push('[');
                for (index, value) in values.iter().enumerate() {
                    push_comma(out, index);
                    value.push_json(out);
                }
                out.push(']');
            }
            // Fields with the same name are both written: most readers take the last.
            Value::Map(fields) => {
                out.push('{');
                for (index, (name, value)) in fields.iter().enumerate() {
                    push_comma(out, index);
                    push_text(out, name);
                    out.push(':');
                    value.push_json(out);
                }
                out.push('}');
            }
        }
    }
}

/// Appends a floating-point number, with an exponent if it is huge or tiny.
fn push_float(out: &mut String, number: f64) {
    if number == 0.0 || (1e-5..1e16).contains(&number.abs()) {
        push(out, number);
    } else {
        push(out, format_args!("{number:e}"));
    }
}

fn push_comma(out: &mut String, index: usize) {
    if index > 0 {
        out.push(',');
    }
}

/// RFC 8259, 7: quotation marks, reverse solidi and control characters are escaped.
fn push_text(out: &mut String, bytes: &[u8]) {
    out.push('"');
    for character in String::from_utf8_lossy(bytes).chars() {
        match character {
            '"' | '\\' => out.extend(['\\', character]),
            control if control.is_control() => push(out, format_args!("\\u{:04x}", u32::from(control))),
            other => out.push(other),
        }
    }
    out.push('"');
}

fn push(out: &mut String, value: impl Display) {
    // Writing to a string does not fail.
    let _ = write!(out, "{value}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_of_text_has_texts_as_they_are_and_all_else_as_json() {
        for (value, expected) in [
            (Value::text(b"a \"b\"\xff"), &b"a \"b\"\xff"[..]),
            (Value::Binary(Cow::Borrowed(b"\0")), b"\0"),
            (Value::Null, b""),
            (Value::Bool(true), b"true"),
            (Value::Int(-7), b"-7"),
            (Value::Float(0.5), b"0.5"),
            (Value::Timestamp(1_700_000_000_000), b"1700000000"),
            (Value::List(vec![Value::text(b"a"), Value::Null]), br#"["a",null]"#),
        ] {
            assert_eq!(&*value.to_text(), expected, "{value:?}");
        }
    }

    #[test]
    fn every_value_has_a_text_that_json_readers_take() {
        for (value, expected) in [
            (Value::Null, "null"),
            (Value::Bool(true), "true"),
            (Value::Int(i64::MIN), "-9223372036854775808"),
            (Value::Uint(u64::MAX), "18446744073709551615"),
            (Value::Float(1.5), "1.5"),
            (Value::Float(0.0), "0"),
            (Value::Float(1e15), "1000000000000000"),
            (Value::Float(-1e300), "-1e300"),
            (Value::Float(5e-324), "5e-324"),
            (Value::Float(f64::NAN), "null"),
            (Value::Float(f64::INFINITY), "null"),
            (Value::Timestamp(9_000), "9"),
            (Value::text(b"a \"b\" \\ \n \xc3\xa9 \xff"), r#""a \"b\" \\ \u000a é �""#),
            (Value::Binary(Cow::Borrowed(b"x")), r#""x""#),
            (Value::List(vec![]), "[]"),
            (Value::List(vec![Value::Int(1), Value::List(vec![Value::Null])]), "[1,[null]]"),
            (Value::Map(vec![]), "{}"),
            (
                Value::Map(vec![
                    (Cow::Borrowed(b"a"), Value::Int(1)),
                    (Cow::Borrowed(b"b\t"), Value::Map(vec![(Cow::Borrowed(b""), Value::Bool(false))])),
                ]),
                r#"{"a":1,"b\u0009":{"":false}}"#,
            ),
        ] {
            let mut out = String::new();
            value.push_json(&mut out);
            assert_eq!(out, expected);
        }
    }
}
