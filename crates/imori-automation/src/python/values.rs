//! How Python writes, names, compares and counts the values of a template.

use std::cmp::Ordering;
use std::fmt::Write as _;

use minijinja::value::{Value, ValueKind};
use minijinja::{Error, ErrorKind, State};

use super::objects::{Group, Range, View};
use crate::limits::{TEMPLATE_OUTPUT_BYTES_MAX, TEMPLATE_VALUE_PARTS_MAX, VALUE_DEPTH_MAX};

/// An error with a text.
pub(crate) fn failure(text: impl Into<std::borrow::Cow<'static, str>>) -> Error {
    Error::new(ErrorKind::InvalidOperation, text)
}

/// A number of a template.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Number {
    /// A whole number; booleans count as such.
    Int(i128),
    /// A float.
    Float(f64),
}

impl Number {
    /// The number that the value is, if it is one.
    pub(crate) fn of(value: &Value) -> Option<Number> {
        match value.kind() {
            ValueKind::Bool => Some(Number::Int(i128::from(value.is_true()))),
            ValueKind::Number if value.is_integer() => i128::try_from(value.clone()).ok().map(Number::Int),
            ValueKind::Number => f64::try_from(value.clone()).ok().map(Number::Float),
            _ => None,
        }
    }

    /// The number as a float.
    pub(crate) fn as_float(self) -> f64 {
        match self {
            Number::Int(number) => number as f64,
            Number::Float(number) => number,
        }
    }
}

/// The value of a whole number; small ones take no memory of their own.
pub(crate) fn int_value(number: i128) -> Value {
    i64::try_from(number).map_or_else(|_| Value::from(number), Value::from)
}

/// The name of Python's type.
pub(crate) fn type_name(value: &Value) -> &'static str {
    match value.kind() {
        ValueKind::Undefined => "StrictUndefined",
        ValueKind::None => "NoneType",
        ValueKind::Bool => "bool",
        ValueKind::Number if value.is_integer() => "int",
        ValueKind::Number => "float",
        ValueKind::String => "str",
        ValueKind::Bytes => "bytes",
        ValueKind::Seq if value.is_tuple() => "tuple",
        ValueKind::Seq if value.downcast_object_ref::<Group>().is_some() => "tuple",
        ValueKind::Seq if value.downcast_object_ref::<Range>().is_some() => "range",
        ValueKind::Seq => "list",
        ValueKind::Map => "dict",
        ValueKind::Iterable => match value.downcast_object_ref::<View>() {
            Some(view) => view.kind.name(),
            // What a slice gives is a list in Python.
            None => "list",
        },
        _ => "object",
    }
}

/// Whether the value is a list or a tuple; a slice of one is another kind to the engine.
pub(crate) fn is_list(value: &Value) -> bool {
    let is_view = value.downcast_object_ref::<View>().is_some();
    matches!(value.kind(), ValueKind::Seq | ValueKind::Iterable) && !is_view
}

/// What `str` gives.
///
/// # Errors
/// The value is undefined, nested too deep, or its text too long.
pub(crate) fn text(value: &Value) -> Result<String, Error> {
    let mut out = String::new();
    write_text(&mut out, value)?;
    Ok(out)
}

/// Appends what `str` gives.
///
/// # Errors
/// The value is undefined, nested too deep, or its text too long.
pub(crate) fn write_text(out: &mut String, value: &Value) -> Result<(), Error> {
    match value.as_str() {
        Some(text) => out.push_str(text),
        None => write_repr(out, value, 0)?,
    }
    Ok(())
}

fn write_repr(out: &mut String, value: &Value, depth: usize) -> Result<(), Error> {
    if depth > VALUE_DEPTH_MAX {
        return Err(failure("the value is nested too deep to be written"));
    }
    if out.len() > TEMPLATE_OUTPUT_BYTES_MAX {
        return Err(failure("the text of the value is too long"));
    }
    match value.kind() {
        ValueKind::Undefined => return Err(Error::from(ErrorKind::UndefinedError)),
        ValueKind::None => out.push_str("None"),
        ValueKind::Bool => out.push_str(if value.is_true() { "True" } else { "False" }),
        ValueKind::Number => match Number::of(value) {
            Some(Number::Float(number)) => out.push_str(&float_text(number)),
            _ => push_display(out, value),
        },
        ValueKind::String => push_string_repr(out, value.as_str().unwrap_or_default()),
        ValueKind::Map => {
            out.push('{');
            for (at, key) in value.try_iter()?.enumerate() {
                out.push_str(if at == 0 { "" } else { ", " });
                write_repr(out, &key, depth + 1)?;
                out.push_str(": ");
                write_repr(out, &value.get_item(&key)?, depth + 1)?;
            }
            out.push('}');
        }
        ValueKind::Seq | ValueKind::Iterable => {
            let (before, after) = match value.downcast_object_ref::<View>() {
                Some(view) => view.kind.brackets(),
                None if value.downcast_object_ref::<Group>().is_some() => ("(", ")"),
                None if value.is_tuple() => ("(", if value.len() == Some(1) { ",)" } else { ")" }),
                None => ("[", "]"),
            };
            if let Some(range) = value.downcast_object_ref::<Range>() {
                push_display(out, range.as_text());
                return Ok(());
            }
            out.push_str(before);
            for (at, item) in value.try_iter()?.checked().enumerate() {
                out.push_str(if at == 0 { "" } else { ", " });
                write_repr(out, &item?, depth + 1)?;
            }
            out.push_str(after);
        }
        _ => push_display(out, value),
    }
    Ok(())
}

fn push_display(out: &mut String, value: impl std::fmt::Display) {
    write!(out, "{value}").expect("a string takes all that is written");
}

/// What `repr` gives of a float.
pub(crate) fn float_text(number: f64) -> String {
    if number.is_nan() {
        return "nan".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { "inf" } else { "-inf" }.to_owned();
    }
    let scientific = format!("{number:e}");
    let (mantissa, exponent) = scientific.split_once('e').expect("the format has an exponent");
    let exponent: i32 = exponent.parse().expect("an exponent is a number");
    if (-4..16).contains(&exponent) {
        let plain = number.to_string();
        return if plain.contains('.') { plain } else { plain + ".0" };
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.abs())
}

/// Appends what `repr` gives of a text.
pub(crate) fn push_string_repr(out: &mut String, text: &str) {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    out.push(quote);
    for c in text.chars() {
        match c {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\\' => out.push_str("\\\\"),
            c if c == quote => {
                out.push('\\');
                out.push(c);
            }
            c if is_printable(c) => out.push(c),
            c => {
                let code = u32::from(c);
                let escaped = match code {
                    0..=0xff => format!("\\x{code:02x}"),
                    0x100..=0xffff => format!("\\u{code:04x}"),
                    _ => format!("\\U{code:08x}"),
                };
                out.push_str(&escaped);
            }
        }
    }
    out.push(quote);
}

/// Whether Python writes the character as itself in a `repr`.
pub(crate) fn is_printable(c: char) -> bool {
    if c.is_ascii() {
        return (' '..='~').contains(&c);
    }
    // Rust escapes the same categories of characters, but at the start of a text also those that combine.
    let mut text = String::from("a");
    text.push(c);
    text.escape_debug().nth(1) == Some(c)
}

/// Whether Python counts the character as white space.
pub(crate) fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\x1c'..='\x1f').contains(&c)
}

/// How Python orders two values.
///
/// # Errors
/// Python cannot order these types; `operator` is the one of its message.
pub(crate) fn compare(a: &Value, b: &Value, operator: &str) -> Result<Ordering, Error> {
    compare_nested(a, b, operator, 0)
}

fn compare_nested(a: &Value, b: &Value, operator: &str, depth: usize) -> Result<Ordering, Error> {
    if let (Some(a), Some(b)) = (a.as_str(), b.as_str()) {
        return Ok(a.cmp(b));
    }
    if Number::of(a).is_some() && Number::of(b).is_some() {
        return Ok(a.cmp(b));
    }
    if is_list(a) && is_list(b) && a.is_tuple() == b.is_tuple() && depth < VALUE_DEPTH_MAX {
        let (mut a, mut b) = (a.try_iter()?, b.try_iter()?);
        loop {
            let (a, b) = match (a.next(), b.next()) {
                (None, None) => return Ok(Ordering::Equal),
                (None, Some(_)) => return Ok(Ordering::Less),
                (Some(_), None) => return Ok(Ordering::Greater),
                (Some(a), Some(b)) => (a, b),
            };
            if a != b {
                return compare_nested(&a, &b, operator, depth + 1);
            }
        }
    }
    if a.is_undefined() || b.is_undefined() {
        return Err(Error::from(ErrorKind::UndefinedError));
    }
    Err(failure(format!(
        "'{operator}' not supported between instances of '{}' and '{}'",
        type_name(a),
        type_name(b)
    )))
}

/// Sorts as Python does: in a stable way, by the keys, also where `reverse` is set.
///
/// # Errors
/// Two of the keys cannot be ordered, or there is no fuel left.
pub(crate) fn sort_by_key<T>(
    state: &State,
    items: Vec<T>,
    reverse: bool,
    key: impl Fn(&T) -> Result<Value, Error>,
) -> Result<Vec<T>, Error> {
    state.consume_fuel(items.len() as u64 * u64::from(items.len().max(1).ilog2() + 1))?;
    let keyed: Result<Vec<(Value, T)>, Error> =
        items.into_iter().map(|item| Ok((key(&item)?, item))).collect();
    Ok(merged(keyed?, reverse)?.into_iter().map(|(_, item)| item).collect())
}

/// A merge sort: the one of the standard library may panic where a comparison fails.
fn merged<T>(mut items: Vec<(Value, T)>, reverse: bool) -> Result<Vec<(Value, T)>, Error> {
    if items.len() < 2 {
        return Ok(items);
    }
    let right = items.split_off(items.len() / 2);
    let mut left = merged(items, reverse)?.into_iter().peekable();
    let mut right = merged(right, reverse)?.into_iter().peekable();
    let mut sorted = Vec::with_capacity(left.len() + right.len());
    while let (Some((a, _)), Some((b, _))) = (left.peek(), right.peek()) {
        let (smaller, larger) = if reverse { (a, b) } else { (b, a) };
        let right_first = compare(smaller, larger, "<")? == Ordering::Less;
        sorted.extend(if right_first { right.next() } else { left.next() });
    }
    sorted.extend(left.chain(right));
    Ok(sorted)
}

/// The value, if it is not too large or too deep to be compared and written. A namespace may be the value itself where
/// `may_be_namespace` is set, but no part of it: with itself for a part it would have no end.
///
/// # Errors
/// It is too large or too deep, or has a namespace in it.
pub(crate) fn bounded(state: &State, value: Value, may_be_namespace: bool) -> Result<Value, Error> {
    let mut parts = 0;
    count_parts(&value, may_be_namespace, 0, &mut parts)?;
    state.consume_fuel(parts as u64 / 16)?;
    Ok(value)
}

fn count_parts(value: &Value, may_be_namespace: bool, depth: usize, parts: &mut usize) -> Result<(), Error> {
    let is_map = value.kind() == ValueKind::Map;
    if !is_map && !matches!(value.kind(), ValueKind::Seq | ValueKind::Iterable) {
        return Ok(());
    }
    if is_map && value.as_object().is_some_and(|object| object.type_name().ends_with("Namespace")) {
        return match may_be_namespace {
            true => Ok(()),
            false => Err(failure("a namespace cannot be a part of another value")),
        };
    }
    if value.downcast_object_ref::<Range>().is_some() {
        return Ok(());
    }
    for key in value.try_iter()?.checked() {
        let item = if is_map { value.get_item(&key?)? } else { key? };
        *parts += 1;
        if *parts > TEMPLATE_VALUE_PARTS_MAX || depth >= VALUE_DEPTH_MAX {
            return Err(failure("a value of the template is too large or nested too deep"));
        }
        count_parts(&item, false, depth + 1, parts)?;
    }
    Ok(())
}

/// The items of a value, paid for with fuel.
///
/// # Errors
/// Python cannot iterate this type, or there is no fuel left.
pub(crate) fn items(state: &State, value: &Value) -> Result<Vec<Value>, Error> {
    match value.kind() {
        ValueKind::String | ValueKind::Seq | ValueKind::Map | ValueKind::Iterable => {}
        ValueKind::Undefined => return Err(Error::from(ErrorKind::UndefinedError)),
        _ => return Err(failure(format!("'{}' object is not iterable", type_name(value)))),
    }
    state.consume_fuel(value.len().unwrap_or(0) as u64 / 4)?;
    let mut items = Vec::new();
    for item in value.try_iter()?.checked() {
        if items.len() % 64 == 63 {
            state.consume_fuel(16)?;
        }
        items.push(item?);
    }
    Ok(items)
}

/// What `len` gives.
///
/// # Errors
/// Values of this type have no length.
pub(crate) fn length(value: &Value) -> Result<usize, Error> {
    let length = match value.kind() {
        ValueKind::Undefined => return Err(Error::from(ErrorKind::UndefinedError)),
        ValueKind::String | ValueKind::Seq | ValueKind::Map | ValueKind::Iterable => value.len(),
        _ => None,
    };
    length.ok_or_else(|| failure(format!("object of type '{}' has no len()", type_name(value))))
}
