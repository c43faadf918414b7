//! The values that an argument takes.

use std::fmt;
use std::time::Duration;

use super::MILLISECONDS_MAX;
use crate::limits::SUBJECT_BYTES_MAX;
use crate::message::Value;
use crate::name::Name;
use crate::stream::parse_age;

/// The type and range of an argument's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Takes {
    /// A time in milliseconds, from `min` to [`MILLISECONDS_MAX`].
    Milliseconds {
        /// The shortest time.
        min: i64,
    },
    /// A whole number; one outside the range is refused.
    Whole {
        /// The lowest number.
        min: i64,
        /// The highest number.
        max: i64,
    },
    /// The name of an exchange, or a routing key.
    Name,
    /// One of these words.
    Words(&'static [&'static str]),
    /// True or false.
    Flag,
    /// A text that is not empty.
    Text,
    /// A number of years, months, days, hours, minutes or seconds, as [`parse_age`] reads it.
    Age,
    /// Any value: nothing here depends on it.
    Anything,
}

/// A value of the right type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taken<'a> {
    /// A value of [`Takes::Milliseconds`] or [`Takes::Whole`].
    Number(i64),
    /// A value of [`Takes::Name`], [`Takes::Words`], [`Takes::Text`] or [`Takes::Age`].
    Text(&'a [u8]),
    /// A value of [`Takes::Flag`].
    Flag(bool),
    /// A value of [`Takes::Anything`].
    Anything,
}

/// Why [`Takes::check`] refuses a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ValueFault {
    /// The value, shortened, has another type.
    Type(String),
    /// The number is below or above the range.
    Range(i128),
    /// The text is not one of the words, is empty, or is too long for a name; it is shortened here.
    Word(String),
}

impl fmt::Display for ValueFault {
    /// Shows the value.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ValueFault::Type(value) | ValueFault::Word(value) => f.write_str(value),
            ValueFault::Range(number) => write!(f, "{number}"),
        }
    }
}

impl Taken<'_> {
    /// The number, or none if it is negative.
    pub(super) fn natural(self) -> Option<u64> {
        match self {
            Taken::Number(number) => u64::try_from(number).ok(),
            _ => None,
        }
    }

    pub(super) fn age(self) -> Option<Duration> {
        match self {
            Taken::Text(text) => parse_age(text),
            _ => None,
        }
    }

    pub(super) fn milliseconds(self) -> Option<Duration> {
        self.natural().map(Duration::from_millis)
    }

    pub(super) fn name(self) -> Option<Name> {
        match self {
            Taken::Text(text) => Some(Name::new(text)),
            _ => None,
        }
    }

    pub(super) fn flag(self) -> bool {
        self == Taken::Flag(true)
    }
}

impl Takes {
    /// Reads a value of the right type, whatever its range.
    pub(super) fn read<'a>(self, value: &'a Value<'_>) -> Option<Taken<'a>> {
        match (self, value) {
            (Takes::Milliseconds { .. } | Takes::Whole { .. }, Value::Int(number)) => {
                Some(Taken::Number(*number))
            }
            (Takes::Milliseconds { .. } | Takes::Whole { .. }, Value::Uint(number)) => {
                Some(Taken::Number(i64::try_from(*number).unwrap_or(i64::MAX)))
            }
            (Takes::Name | Takes::Words(_) | Takes::Text | Takes::Age, Value::Text(text)) => {
                Some(Taken::Text(text))
            }
            (Takes::Flag, Value::Bool(flag)) => Some(Taken::Flag(*flag)),
            (Takes::Anything, _) => Some(Taken::Anything),
            _ => None,
        }
    }

    /// Reads a value of the right type within its range.
    ///
    /// # Errors
    /// [`ValueFault`].
    pub fn check<'a>(self, value: &'a Value<'_>) -> Result<Taken<'a>, ValueFault> {
        let taken = self.read(value).ok_or_else(|| ValueFault::Type(shown(value)))?;
        let out_of_range = ValueFault::Range;
        match (self, taken, value) {
            (Takes::Milliseconds { .. } | Takes::Whole { .. }, _, Value::Uint(number))
                if i64::try_from(*number).is_err() =>
            {
                Err(out_of_range(i128::from(*number)))
            }
            (Takes::Milliseconds { .. } | Takes::Whole { .. }, Taken::Number(number), _) => {
                let (min, max) = self.range();
                let is_within = (min..=max).contains(&number);
                if is_within { Ok(taken) } else { Err(out_of_range(i128::from(number))) }
            }
            (Takes::Words(words), Taken::Text(text), _)
                if !words.iter().any(|word| word.as_bytes() == text) =>
            {
                Err(ValueFault::Word(shown(value)))
            }
            (Takes::Text, Taken::Text([]), _) => Err(ValueFault::Word(String::new())),
            (Takes::Age, Taken::Text(text), _) if parse_age(text).is_none() => {
                Err(ValueFault::Word(shown(value)))
            }
            (Takes::Name, Taken::Text(text), _) if text.len() > SUBJECT_BYTES_MAX => {
                Err(ValueFault::Word(shown(value)))
            }
            _ => Ok(taken),
        }
    }

    /// Reads a value that a protocol carries as text: `true` or `false` in any case, digits without a plus sign. A text
    /// of another form stays a text, so that [`Takes::check`] refuses it.
    pub fn parse(self, text: &[u8]) -> Value<'_> {
        let parsed = match self {
            Takes::Flag if text.eq_ignore_ascii_case(b"true") => Some(Value::Bool(true)),
            Takes::Flag if text.eq_ignore_ascii_case(b"false") => Some(Value::Bool(false)),
            Takes::Milliseconds { .. } | Takes::Whole { .. } => whole(text),
            _ => None,
        };
        parsed.unwrap_or(Value::text(text))
    }

    fn range(self) -> (i64, i64) {
        match self {
            Takes::Milliseconds { min } => (min, MILLISECONDS_MAX),
            Takes::Whole { min, max } => (min, max),
            _ => (i64::MIN, i64::MAX),
        }
    }
}

/// Digits, with a minus sign in front or none. A number beyond 64 bits is the largest, which every range refuses or
/// that means no limit.
fn whole(text: &[u8]) -> Option<Value<'static>> {
    let (is_negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let number = std::str::from_utf8(digits).ok()?.parse::<u64>().unwrap_or(u64::MAX);
    if !is_negative {
        return Some(Value::Uint(number));
    }
    Some(Value::Int(i64::try_from(number).map_or(i64::MIN, |number| -number)))
}

/// The most bytes of a refused value that an error repeats.
const SHOWN_BYTES_MAX: usize = 64;

/// Returns a value as errors show it, shortened.
pub fn shown(value: &Value<'_>) -> String {
    let mut text = match value {
        Value::Text(text) => text.escape_ascii().to_string(),
        Value::Null => String::from("null"),
        Value::Bool(flag) => flag.to_string(),
        Value::Int(number) => number.to_string(),
        Value::Uint(number) => number.to_string(),
        Value::Float(number) => number.to_string(),
        Value::Timestamp(_) => String::from("a timestamp"),
        Value::Binary(_) => String::from("binary"),
        Value::List(_) => String::from("a list"),
        Value::Map(_) => String::from("a map"),
    };
    text.truncate(text.floor_char_boundary(SHOWN_BYTES_MAX));
    text
}

impl fmt::Display for Takes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Takes::Whole { min: i64::MIN, .. } => f.write_str("a whole number"),
            Takes::Whole { min, max: i64::MAX } => write!(f, "a whole number from {min}"),
            Takes::Milliseconds { .. } | Takes::Whole { .. } => {
                let (min, max) = self.range();
                write!(f, "a whole number from {min} to {max}")
            }
            Takes::Name => write!(f, "a name of at most {SUBJECT_BYTES_MAX} bytes"),
            Takes::Words([words @ .., last]) if !words.is_empty() => {
                write!(f, "`{}` or `{last}`", words.join("`, `"))
            }
            Takes::Words(words) => write!(f, "`{}`", words.concat()),
            Takes::Flag => f.write_str("`true` or `false`"),
            Takes::Text => f.write_str("a text that is not empty"),
            Takes::Age => f.write_str("a number with `Y`, `M`, `D`, `h`, `m` or `s`, such as `7D`"),
            Takes::Anything => f.write_str("anything"),
        }
    }
}
