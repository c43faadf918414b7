//! Jinja's filters of numbers.

use minijinja::value::{Value, ValueKind};
use minijinja::{Error, ErrorKind, State};

use crate::python::arguments::{Arguments, int_or, is_set, strict_int};
use crate::python::values::{Number, failure, int_value, text, type_name};
use crate::python::{float_of_text, int_of_text};

/// `int`: the whole number, else the default.
pub(crate) fn int(_: &mut State, arguments: Arguments) -> Result<Value, Error> {
    let [value, default, base] = arguments.bind(["value", "default", "base"], 1)?;
    let value = value.unwrap_or_default();
    let value = with_text_read(value)?;
    let default = default.unwrap_or_else(|| Value::from(0));
    let base = int_or(base.as_ref(), 10)?;
    if let Some(text) = value.as_str() {
        let base = u32::try_from(base).ok().filter(|base| *base == 0 || (2..=36).contains(base));
        if let Some(whole) = base.and_then(|base| int_of_text(text, base)) {
            return Ok(int_value(whole));
        }
        return match float_of_text(text).filter(|number| number.is_finite()) {
            Some(number) => {
                truncated(number).map(int_value).ok_or_else(|| failure("the number is too large"))
            }
            None => Ok(default),
        };
    }
    match Number::of(&value) {
        Some(Number::Int(number)) => Ok(int_value(number)),
        Some(Number::Float(number)) if number.is_infinite() => {
            Err(failure("cannot convert float infinity to integer"))
        }
        Some(Number::Float(number)) if number.is_nan() => Ok(default),
        Some(Number::Float(number)) => {
            truncated(number).map(int_value).ok_or_else(|| failure("the number is too large"))
        }
        None if value.is_undefined() => Err(Error::from(ErrorKind::UndefinedError)),
        None => Ok(default),
    }
}

/// `float`: the number, else the default.
pub(crate) fn float(_: &mut State, arguments: Arguments) -> Result<Value, Error> {
    let [value, default] = arguments.bind(["value", "default"], 1)?;
    let value = with_text_read(value.unwrap_or_default())?;
    if value.is_undefined() {
        return Err(Error::from(ErrorKind::UndefinedError));
    }
    let number = match value.as_str() {
        Some(text) => float_of_text(text),
        None => Number::of(&value).map(Number::as_float),
    };
    Ok(number.map_or_else(|| default.unwrap_or_else(|| Value::from(0.0)), Value::from))
}

/// The value; of one that is looked up, its text.
fn with_text_read(value: Value) -> Result<Value, Error> {
    match value.kind() {
        ValueKind::Plain => text(&value).map(Value::from),
        _ => Ok(value),
    }
}

/// `abs`.
pub(crate) fn abs(_: &mut State, arguments: Arguments) -> Result<Value, Error> {
    let [value] = arguments.bind(["x"], 1)?;
    match number(&value.unwrap_or_default(), "abs()")? {
        Number::Int(number) => Ok(int_value(number.saturating_abs())),
        Number::Float(number) => Ok(Value::from(number.abs())),
    }
}

/// `round`.
pub(crate) fn round(_: &mut State, arguments: Arguments) -> Result<Value, Error> {
    let [value, precision, method] = arguments.bind(["value", "precision", "method"], 1)?;
    let number = number(&value.unwrap_or_default(), "round()")?;
    let precision = int_or(precision.as_ref(), 0)?;
    let method = method.unwrap_or_else(|| Value::from("common"));
    let scale = || {
        let power = i32::try_from(precision).unwrap_or(if precision > 0 { i32::MAX } else { i32::MIN });
        10f64.powi(power)
    };
    match (method.as_str(), number) {
        (Some("common"), Number::Int(number)) => rounded_int(number, precision).map(int_value),
        (Some("common"), Number::Float(number)) => rounded_float(number, precision).map(Value::from),
        (Some("ceil"), number) => {
            finite(number.as_float() * scale()).map(|number| Value::from((number.ceil() + 0.0) / scale()))
        }
        (Some("floor"), number) => {
            finite(number.as_float() * scale()).map(|number| Value::from((number.floor() + 0.0) / scale()))
        }
        _ => Err(failure("method must be common, ceil or floor")),
    }
}

/// `filesizeformat`: bytes for people.
pub(crate) fn filesizeformat(_: &mut State, arguments: Arguments) -> Result<Value, Error> {
    let [value, binary] = arguments.bind(["value", "binary"], 1)?;
    let value = value.unwrap_or_default();
    let bytes = match value.as_str() {
        Some(text) => float_of_text(text)
            .ok_or_else(|| failure(format!("could not convert string to float: '{text}'")))?,
        None => number(&value, "float()")?.as_float(),
    };
    let (base, infix) = if is_set(binary.as_ref()) { (1024.0, "iB") } else { (1000.0f64, "B") };
    if bytes == 1.0 {
        return Ok(Value::from("1 Byte"));
    }
    if bytes < base {
        return Ok(Value::from(format!("{:.0} Bytes", bytes.trunc() + 0.0)));
    }
    let mut unit = base;
    let mut text = String::new();
    for prefix in ["k", "M", "G", "T", "P", "E", "Z", "Y"] {
        unit *= base;
        let prefix = if prefix == "k" && infix == "iB" { "K" } else { prefix };
        text = format!("{:.1} {prefix}{infix}", base * bytes / unit);
        if bytes < unit {
            break;
        }
    }
    Ok(Value::from(text))
}

fn number(value: &Value, function: &str) -> Result<Number, Error> {
    if value.is_undefined() {
        return Err(Error::from(ErrorKind::UndefinedError));
    }
    Number::of(value)
        .ok_or_else(|| failure(format!("bad operand type for {function}: '{}'", type_name(value))))
}

fn finite(number: f64) -> Result<f64, Error> {
    match number.is_finite() {
        true => Ok(number),
        false => Err(failure("cannot convert float infinity to integer")),
    }
}

/// The whole part, if it fits.
fn truncated(number: f64) -> Option<i128> {
    let whole = number.trunc();
    (whole.is_finite() && whole.abs() < i128::MAX as f64).then_some(whole as i128)
}

fn rounded_int(number: i128, precision: i128) -> Result<i128, Error> {
    if precision >= 0 {
        return Ok(number);
    }
    let Some(scale) = u32::try_from(-precision).ok().and_then(|power| 10i128.checked_pow(power)) else {
        return Ok(0);
    };
    let (quotient, rest) = (number.div_euclid(scale), number.rem_euclid(scale));
    let up = rest * 2 > scale || (rest * 2 == scale && quotient % 2 != 0);
    (quotient + i128::from(up)).checked_mul(scale).ok_or_else(|| failure("the number is too large"))
}

fn rounded_float(number: f64, precision: i128) -> Result<f64, Error> {
    if !number.is_finite() {
        return Ok(number);
    }
    // Beyond this many digits a float does not change.
    if precision > 340 {
        return Ok(number);
    }
    if precision < -308 {
        return Ok(0.0f64.copysign(number));
    }
    if let Ok(digits) = usize::try_from(precision) {
        return Ok(format!("{number:.digits$}").parse().unwrap_or(number));
    }
    let scale = 10f64.powi(i32::try_from(-precision).unwrap_or(308));
    Ok((number / scale).round_ties_even() * scale)
}

/// The number of characters that an argument asks for.
///
/// # Errors
/// It is no whole number, or negative.
pub(crate) fn count_of(value: Option<&Value>, default: usize) -> Result<usize, Error> {
    match value {
        None => Ok(default),
        Some(value) if value.kind() == ValueKind::None => Ok(default),
        Some(value) => {
            usize::try_from(strict_int(value)?.max(0)).map_err(|_| failure("the number is too large"))
        }
    }
}
