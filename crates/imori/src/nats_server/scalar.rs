//! Unquoted words: truth values, numbers with units, and texts.

use super::value::Value;

/// The units of whole numbers, in lower case.
const UNITS: [(&str, i64); 24] = [
    ("", 1),
    ("k", 1000),
    ("kb", 1 << 10),
    ("ki", 1 << 10),
    ("kib", 1 << 10),
    ("m", 1000_i64.pow(2)),
    ("mb", 1 << 20),
    ("mi", 1 << 20),
    ("mib", 1 << 20),
    ("g", 1000_i64.pow(3)),
    ("gb", 1 << 30),
    ("gi", 1 << 30),
    ("gib", 1 << 30),
    ("t", 1000_i64.pow(4)),
    ("tb", 1 << 40),
    ("ti", 1 << 40),
    ("tib", 1 << 40),
    ("p", 1000_i64.pow(5)),
    ("pb", 1 << 50),
    ("pi", 1 << 50),
    ("pib", 1 << 50),
    ("e", 1000_i64.pow(6)),
    ("eb", 1 << 60),
    ("ei", 1 << 60),
];

/// Parses a word as nats-server does; anything but a truth value or a number is a text.
pub fn scalar(word: &str) -> Value {
    match word.to_ascii_lowercase().as_str() {
        "true" | "yes" | "on" => return Value::Truth(true),
        "false" | "no" | "off" => return Value::Truth(false),
        _ => {}
    }
    if let Some(number) = whole(word) {
        return Value::Whole(number);
    }
    let is_fraction =
        word.contains('.') && word.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'.' | b'-'));
    match word.parse() {
        Ok(fraction) if is_fraction => Value::Fraction(fraction),
        _ => Value::Text(word.to_owned()),
    }
}

fn whole(word: &str) -> Option<i64> {
    let unsigned = word.strip_prefix('-').unwrap_or(word);
    let digits = unsigned.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = word.split_at_checked(word.len() - unsigned.len() + digits)?;
    let unit = unit.to_ascii_lowercase();
    let (_, factor) = UNITS.iter().find(|(known, _)| *known == unit)?;
    number.parse::<i64>().ok().filter(|_| digits > 0)?.checked_mul(*factor)
}
