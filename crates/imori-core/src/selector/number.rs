//! Numbers of selectors: exact as Java's `long`, approximate as its `double`, and compared without
//! rounding.

use std::cmp::Ordering;
use std::str;

/// A number of a header, of the selector or computed from these.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Number {
    /// An exact number.
    Int(i64),
    /// An exact number above the range of `i64`, as AMQP's unsigned types allow.
    Large(u64),
    /// An approximate number.
    Float(f64),
}

/// An arithmetic operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arithmetic {
    Add,
    Subtract,
    Multiply,
    Divide,
}

impl From<u64> for Number {
    fn from(number: u64) -> Number {
        i64::try_from(number).map_or(Number::Large(number), Number::Int)
    }
}

impl Number {
    /// Compares exactly, without rounding; `None` if either is NaN.
    #[inline]
    pub fn compare(self, other: Number) -> Option<Ordering> {
        match (self, other) {
            (Number::Int(a), Number::Int(b)) => Some(a.cmp(&b)),
            (Number::Float(a), Number::Float(b)) => a.partial_cmp(&b),
            (Number::Float(a), b) => compare_exact(b.exact()?, a).map(Ordering::reverse),
            (a, Number::Float(b)) => compare_exact(a.exact()?, b),
            (a, b) => Some(a.exact()?.cmp(&b.exact()?)),
        }
    }

    /// Calculates as Java does. Exact numbers stay exact, wrap around at 64 bits and divide without
    /// a fraction; if either operand is approximate or beyond `i64`, so is the result. `None` for a
    /// division of exact numbers by zero.
    pub(super) fn calculate(self, operation: Arithmetic, other: Number) -> Option<Number> {
        if let (Number::Int(a), Number::Int(b)) = (self, other) {
            let result = match operation {
                Arithmetic::Add => a.wrapping_add(b),
                Arithmetic::Subtract => a.wrapping_sub(b),
                Arithmetic::Multiply => a.wrapping_mul(b),
                Arithmetic::Divide if b == 0 => return None,
                Arithmetic::Divide => a.wrapping_div(b),
            };
            return Some(Number::Int(result));
        }
        let (a, b) = (self.approximate(), other.approximate());
        Some(Number::Float(match operation {
            Arithmetic::Add => a + b,
            Arithmetic::Subtract => a - b,
            Arithmetic::Multiply => a * b,
            Arithmetic::Divide => a / b,
        }))
    }

    /// Negates the number; as in Java, the least exact number is its own negation.
    pub(super) fn negated(self) -> Number {
        match self {
            Number::Int(number) => Number::Int(number.wrapping_neg()),
            Number::Large(number) => Number::Float(-approximate(number.into())),
            Number::Float(number) => Number::Float(-number),
        }
    }

    /// Parses a decimal number in a text header, with optional sign, fraction and exponent. `None`
    /// if the text is not a number.
    pub(super) fn read(text: &[u8]) -> Option<Number> {
        let is_number = |byte: &u8| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E');
        if text.is_empty() || !text.iter().all(is_number) {
            return None;
        }
        let text = str::from_utf8(text).ok()?;
        if let Ok(exact) = text.parse() {
            return Some(Number::Int(exact));
        }
        if let Ok(large) = text.parse() {
            return Some(Number::Large(large));
        }
        text.parse().ok().map(Number::Float)
    }

    fn exact(self) -> Option<i128> {
        match self {
            Number::Int(number) => Some(number.into()),
            Number::Large(number) => Some(number.into()),
            Number::Float(_) => None,
        }
    }

    fn approximate(self) -> f64 {
        match self {
            Number::Int(number) => approximate(number.into()),
            Number::Large(number) => approximate(number.into()),
            Number::Float(number) => number,
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "Java rounds a long to a double where the other is one")]
fn approximate(number: i128) -> f64 {
    number as f64
}

/// Compares an exact number with an approximate one mathematically.
fn compare_exact(exact: i128, float: f64) -> Option<Ordering> {
    if float.is_nan() {
        return None;
    }
    // A larger float converts to a bound of `i128`, which lies beyond any exact number.
    #[expect(clippy::cast_possible_truncation, reason = "the fraction is compared below")]
    let whole = float as i128;
    let fraction = || 0.0_f64.partial_cmp(&(float - float.trunc()));
    match exact.cmp(&whole) {
        Ordering::Equal => fraction(),
        unequal => Some(unequal),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_compared_without_rounding() {
        let most = i64::MAX;
        for (a, b, expected) in [
            (Number::Int(most), Number::Float(9_223_372_036_854_775_808.0), Some(Ordering::Less)),
            (Number::Int(most - 1), Number::Int(most), Some(Ordering::Less)),
            (Number::Int(i64::MIN), Number::Float(-9_223_372_036_854_775_808.0), Some(Ordering::Equal)),
            (
                Number::Int(9_007_199_254_740_993),
                Number::Float(9_007_199_254_740_992.0),
                Some(Ordering::Greater),
            ),
            (Number::Int(1), Number::Float(1.5), Some(Ordering::Less)),
            (Number::Int(-1), Number::Float(-1.5), Some(Ordering::Greater)),
            (Number::Int(0), Number::Float(-0.0), Some(Ordering::Equal)),
            (Number::Int(0), Number::Float(-5e-324), Some(Ordering::Greater)),
            (Number::Int(1), Number::Float(f64::INFINITY), Some(Ordering::Less)),
            (Number::Int(1), Number::Float(f64::NEG_INFINITY), Some(Ordering::Greater)),
            (Number::Int(1), Number::Float(f64::NAN), None),
            (Number::from(u64::MAX), Number::Int(most), Some(Ordering::Greater)),
            (Number::from(u64::MAX), Number::Float(18_446_744_073_709_551_616.0), Some(Ordering::Less)),
            (Number::from(7), Number::Int(7), Some(Ordering::Equal)),
        ] {
            assert_eq!(a.compare(b), expected, "{a:?} to {b:?}");
            assert_eq!(b.compare(a), expected.map(Ordering::reverse), "{b:?} to {a:?}");
        }
    }

    #[test]
    fn exact_numbers_calculate_as_a_long_of_java_does() {
        use Arithmetic::{Add, Divide, Multiply, Subtract};
        let int = Number::Int;
        for (a, operation, b, expected) in [
            (int(i64::MAX), Add, int(1), Some(int(i64::MIN))),
            (int(i64::MIN), Subtract, int(1), Some(int(i64::MAX))),
            (int(i64::MAX), Multiply, int(2), Some(int(-2))),
            (int(7), Divide, int(2), Some(int(3))),
            (int(-7), Divide, int(2), Some(int(-3))),
            (int(i64::MIN), Divide, int(-1), Some(int(i64::MIN))),
            (int(7), Divide, int(0), None),
            (int(7), Divide, Number::Float(2.0), Some(Number::Float(3.5))),
            (int(7), Divide, Number::Float(0.0), Some(Number::Float(f64::INFINITY))),
            (Number::Large(u64::MAX), Add, int(1), Some(Number::Float(18_446_744_073_709_551_616.0))),
        ] {
            assert_eq!(a.calculate(operation, b), expected, "{a:?} {operation:?} {b:?}");
        }
        assert_eq!(int(i64::MIN).negated(), int(i64::MIN));
    }

    #[test]
    fn a_text_of_a_header_is_a_number_where_it_reads_as_one() {
        for (text, expected) in [
            ("0", Some(Number::Int(0))),
            ("-17", Some(Number::Int(-17))),
            ("+17", Some(Number::Int(17))),
            ("007", Some(Number::Int(7))),
            ("9223372036854775807", Some(Number::Int(i64::MAX))),
            ("9223372036854775808", Some(Number::Large(1 << 63))),
            ("99999999999999999999", Some(Number::Float(1e20))),
            ("1.5", Some(Number::Float(1.5))),
            ("-2e3", Some(Number::Float(-2000.0))),
            (".5", Some(Number::Float(0.5))),
            ("", None),
            (" 1", None),
            ("1L", None),
            ("inf", None),
            ("NaN", None),
            ("0x10", None),
            ("1-1", None),
            ("--1", None),
            (".", None),
        ] {
            assert_eq!(Number::read(text.as_bytes()), expected, "{text}");
        }
    }
}
