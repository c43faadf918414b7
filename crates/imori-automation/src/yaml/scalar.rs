//! Scalars of YAML 1.1, by the rules of PyYAML.

use jiff::civil::{Date, DateTime, Time};

use crate::value::Value;

const CORE: &str = "tag:yaml.org,2002:";

/// The value of a plain scalar without a tag.
///
/// # Errors
/// It looks like a number or a time, and is none.
pub(super) fn resolve(text: &str) -> Result<Value, String> {
    match kind(text) {
        Kind::Null => Ok(Value::Null),
        Kind::Bool(value) => Ok(Value::Bool(value)),
        Kind::Int => int(text),
        Kind::Float => float(text),
        Kind::Time => time(text),
        Kind::Text => Ok(Value::from(text)),
    }
}

/// The value of a scalar with a tag.
///
/// # Errors
/// The tag is unknown, or the text has not its form.
pub(super) fn tagged(tag: &str, text: &str) -> Result<Value, String> {
    let wrong = |form: &str| Err(format!("`{text}` is no {form}; correct it, or leave out its tag"));
    match tag.strip_prefix(CORE) {
        Some("str" | "value" | "merge") => Ok(Value::from(text)),
        Some("null") => Ok(Value::Null),
        Some("bool") => match bool_of(text) {
            Some(value) => Ok(Value::Bool(value)),
            None => wrong("boolean"),
        },
        Some("int") => int(text),
        Some("float") => float(text),
        Some("timestamp") if is_time(text) => time(text),
        Some("timestamp") => wrong("time"),
        Some("binary") => {
            Err("tag `!!binary` makes bytes, which JSON does not have; write the text without a tag"
                .to_owned())
        }
        _ => Err(unknown_tag(tag)),
    }
}

/// The error of a tag that no value can have.
pub(super) fn unknown_tag(tag: &str) -> String {
    let shown = match tag.strip_prefix(CORE) {
        Some(name) => format!("!!{name}"),
        None => tag.to_owned(),
    };
    format!("tag `{shown}` is not supported; write the value without a tag")
}

enum Kind {
    Null,
    Bool(bool),
    Int,
    Float,
    Time,
    Text,
}

fn kind(text: &str) -> Kind {
    let Some(first) = text.bytes().next() else { return Kind::Null };
    match first {
        b'~' | b'n' | b'N' if matches!(text, "~" | "null" | "Null" | "NULL") => Kind::Null,
        b'a'..=b'z' | b'A'..=b'Z' => bool_of(text).map_or(Kind::Text, Kind::Bool),
        b'+' | b'-' | b'.' | b'0'..=b'9' => {
            if is_float(text) {
                Kind::Float
            } else if is_int(text) {
                Kind::Int
            } else if is_time(text) {
                Kind::Time
            } else {
                Kind::Text
            }
        }
        _ => Kind::Text,
    }
}

fn bool_of(text: &str) -> Option<bool> {
    match text {
        "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => Some(true),
        "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => Some(false),
        _ => None,
    }
}

fn unsigned(text: &str) -> (bool, &str) {
    match text.strip_prefix(['-', '+']) {
        Some(rest) => (text.starts_with('-'), rest),
        None => (false, text),
    }
}

fn is_digits(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_')
}

/// Whether the text is digits and `_`, of which the first is a digit.
fn begins_digits(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_digit()) && is_digits(text)
}

/// Whether each part behind a `:` is a number below 60 of one or two digits.
fn is_sixties<'t>(mut parts: impl Iterator<Item = &'t str>) -> bool {
    parts.all(|part| match part.as_bytes() {
        [digit] => digit.is_ascii_digit(),
        [ten, digit] => (b'0'..=b'5').contains(ten) && digit.is_ascii_digit(),
        _ => false,
    })
}

fn is_int(text: &str) -> bool {
    let (_, text) = unsigned(text);
    if let Some(digits) = text.strip_prefix("0b") {
        return !digits.is_empty() && digits.bytes().all(|byte| matches!(byte, b'0' | b'1' | b'_'));
    }
    if let Some(digits) = text.strip_prefix("0x") {
        return !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'_');
    }
    if let Some(digits) = text.strip_prefix('0') {
        return digits.bytes().all(|byte| matches!(byte, b'0'..=b'7' | b'_'));
    }
    let mut parts = text.split(':');
    parts.next().is_some_and(begins_digits) && is_sixties(parts)
}

fn is_float(text: &str) -> bool {
    let (_, rest) = unsigned(text);
    if matches!(rest, ".inf" | ".Inf" | ".INF") || matches!(text, ".nan" | ".NaN" | ".NAN") {
        return true;
    }
    let Some((whole, fraction)) = rest.split_once('.') else { return false };
    if whole.is_empty() {
        return text.starts_with('.') && begins_digits(mantissa(fraction));
    }
    if whole.contains(':') {
        let mut parts = whole.split(':');
        return parts.next().is_some_and(begins_digits) && is_sixties(parts) && is_digits(fraction);
    }
    begins_digits(whole) && is_digits(mantissa(fraction))
}

/// The fraction without its exponent, which has a sign; the whole of it if its exponent is none.
fn mantissa(fraction: &str) -> &str {
    match fraction.split_once(['e', 'E']) {
        Some((mantissa, exponent))
            if exponent.len() > 1
                && exponent.starts_with(['-', '+'])
                && exponent.bytes().skip(1).all(|byte| byte.is_ascii_digit()) =>
        {
            mantissa
        }
        _ => fraction,
    }
}

/// A whole number; beyond 64 bits the nearest float.
fn int(text: &str) -> Result<Value, String> {
    let wrong = || format!("`{text}` is no whole number; put it into quotes if it is a text");
    let digits: String = text.chars().filter(|digit| *digit != '_').collect();
    let (is_negative, digits) = unsigned(&digits);
    let parts: Vec<&str> = match digits.get(..2) {
        Some("0b" | "0x") => vec![digits.get(2..).unwrap_or_default()],
        _ => digits.split(':').collect(),
    };
    let radix = match digits.get(..2) {
        Some("0b") => 2,
        Some("0x") => 16,
        _ if digits.len() > 1 && digits.starts_with('0') => 8,
        _ => 10,
    };
    let mut exact = Some(0_i64);
    let mut near = 0.0_f64;
    for part in parts {
        if part.is_empty() {
            return Err(wrong());
        }
        let (mut exact_part, mut near_part) = (Some(0_i64), 0.0_f64);
        for digit in part.chars() {
            let digit = digit.to_digit(radix).ok_or_else(wrong)?;
            exact_part = exact_part
                .and_then(|number| number.checked_mul(i64::from(radix)))
                .and_then(|number| number.checked_sub(i64::from(digit)));
            near_part = near_part * f64::from(radix) + f64::from(digit);
        }
        exact = exact
            .and_then(|number| number.checked_mul(60))
            .and_then(|number| number.checked_add(exact_part?));
        near = near * 60.0 + near_part;
    }
    // The sum is kept negative, since the lowest number has no opposite.
    let exact = if is_negative { exact } else { exact.and_then(i64::checked_neg) };
    // The sum of digits is rounded at each step, other than the number as a whole.
    let near = if radix == 10 { digits.parse().unwrap_or(near) } else { near };
    Ok(exact.map_or(Value::Float(if is_negative { -near } else { near }), Value::Int))
}

fn float(text: &str) -> Result<Value, String> {
    let digits: String = text.chars().filter(|digit| *digit != '_').collect::<String>().to_lowercase();
    let (is_negative, digits) = unsigned(&digits);
    let number = match digits {
        ".inf" => Some(f64::INFINITY),
        ".nan" => Some(f64::NAN),
        _ if digits.contains(':') => sixties(digits),
        // What Rust reads besides digits.
        _ if digits.contains(['i', 'n']) => None,
        _ => digits.parse().ok(),
    };
    match number {
        Some(number) => Ok(Value::Float(if is_negative { -number } else { number })),
        None => Err(format!("`{text}` is no number; put it into quotes if it is a text")),
    }
}

/// The sum in PyYAML's order, from the last part on.
fn sixties(digits: &str) -> Option<f64> {
    let mut number = 0.0;
    let mut base = 1.0;
    for part in digits.split(':').rev() {
        number += part.parse::<f64>().ok()? * base;
        base *= 60.0;
    }
    Some(number)
}

/// Whether the text has the form of a date, or of a date and a time of day.
fn is_time(text: &str) -> bool {
    parts(text).is_some()
}

struct Parts<'t> {
    date: [i16; 3],
    time: Option<[i16; 3]>,
    fraction: &'t str,
    /// The sign, the hours and the minutes of its offset from UTC.
    offset: Option<(char, i16, i16)>,
}

fn parts(text: &str) -> Option<Parts<'_>> {
    if text.len() < 8 || !text.as_bytes().get(..4)?.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let mut rest = text;
    let year = number(&mut rest, 4..=4)?;
    rest = rest.strip_prefix('-')?;
    let month_len = digits(rest);
    let month = number(&mut rest, 1..=2)?;
    rest = rest.strip_prefix('-')?;
    let day_len = digits(rest);
    let day = number(&mut rest, 1..=2)?;
    let date = [year, month, day];
    if rest.is_empty() {
        let is_date = month_len == 2 && day_len == 2;
        return is_date.then_some(Parts { date, time: None, fraction: "", offset: None });
    }
    rest = match rest.strip_prefix(['T', 't']) {
        Some(rest) => rest,
        None if rest.starts_with([' ', '\t']) => rest.trim_start_matches([' ', '\t']),
        None => return None,
    };
    let hour = number(&mut rest, 1..=2)?;
    rest = rest.strip_prefix(':')?;
    let minute = number(&mut rest, 2..=2)?;
    rest = rest.strip_prefix(':')?;
    let second = number(&mut rest, 2..=2)?;
    let mut fraction = "";
    if let Some(after) = rest.strip_prefix('.') {
        fraction = after.get(..digits(after))?;
        rest = after.get(digits(after)..)?;
    }
    let time = Some([hour, minute, second]);
    if rest.is_empty() {
        return Some(Parts { date, time, fraction, offset: None });
    }
    rest = rest.trim_start_matches([' ', '\t']);
    if rest == "Z" {
        return Some(Parts { date, time, fraction, offset: Some(('+', 0, 0)) });
    }
    let sign = rest.chars().next().filter(|sign| matches!(sign, '+' | '-'))?;
    rest = rest.get(1..)?;
    let hours = number(&mut rest, 1..=2)?;
    let minutes = match rest.strip_prefix(':') {
        Some(after) => {
            rest = after;
            number(&mut rest, 2..=2)?
        }
        None => 0,
    };
    rest.is_empty().then_some(Parts { date, time, fraction, offset: Some((sign, hours, minutes)) })
}

fn digits(text: &str) -> usize {
    text.bytes().take_while(u8::is_ascii_digit).count()
}

/// Takes a number off the beginning, if its count of digits is in `len`.
fn number(text: &mut &str, len: std::ops::RangeInclusive<usize>) -> Option<i16> {
    let count = digits(text);
    if !len.contains(&count) {
        return None;
    }
    let (number, rest) = text.split_at_checked(count)?;
    *text = rest;
    number.parse().ok()
}

/// The time in the form of Python's `isoformat`, since JSON has no times.
fn time(text: &str) -> Result<Value, String> {
    parts(text)
        .and_then(|parts| iso(&parts))
        .map(Value::String)
        .ok_or_else(|| format!("time `{text}` does not exist; correct it, or put it into quotes"))
}

fn iso(parts: &Parts<'_>) -> Option<String> {
    let [year, month, day] = parts.date;
    let date = Date::new(year, i8::try_from(month).ok()?, i8::try_from(day).ok()?).ok()?;
    if year < 1 {
        return None;
    }
    let Some([hour, minute, second]) = parts.time else { return Some(date.to_string()) };
    let (hour, minute, second) =
        (i8::try_from(hour).ok()?, i8::try_from(minute).ok()?, i8::try_from(second).ok()?);
    let at = DateTime::from_parts(date, Time::new(hour, minute, second, 0).ok()?);
    let mut text = at.to_string();
    let micros: String = parts.fraction.chars().chain("000000".chars()).take(6).collect();
    if micros != "000000" {
        text = format!("{text}.{micros}");
    }
    match parts.offset {
        None => Some(text),
        Some((_, 0, 0)) => Some(format!("{text}+00:00")),
        Some((sign, hours, minutes)) => {
            // Python carries minutes over 59, and knows offsets below a day.
            let (hours, minutes) = (hours + minutes / 60, minutes % 60);
            (hours < 24).then(|| format!("{text}{sign}{hours:02}:{minutes:02}"))
        }
    }
}
