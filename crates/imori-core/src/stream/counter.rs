//! Counters: integers of any length in decimal, the bodies of a counter's messages.

/// Adds two integers with or without signs; `None` if one of the texts is no integer.
pub(crate) fn add(one: &[u8], other: &[u8]) -> Option<Vec<u8>> {
    let ((one_minus, one), (other_minus, other)) = (parse(one)?, parse(other)?);
    let (is_minus, digits) = match (one_minus == other_minus, is_less(one, other)) {
        (true, _) => (one_minus, sum(one, other)),
        (false, false) => (one_minus, difference(one, other)),
        (false, true) => (other_minus, difference(other, one)),
    };
    let digits = trimmed(&digits);
    let sign: &[u8] = if is_minus && digits != b"0" { b"-" } else { b"" };
    Some([sign, digits].concat())
}

/// Splits a number into its sign and its digits without leading zeros.
fn parse(text: &[u8]) -> Option<(bool, &[u8])> {
    let (is_minus, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    };
    let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    is_number.then(|| (is_minus, trimmed(digits)))
}

/// The digits without leading zeros, but for the last one.
fn trimmed(digits: &[u8]) -> &[u8] {
    let first = digits.iter().position(|digit| *digit != b'0').unwrap_or(digits.len().saturating_sub(1));
    digits.get(first..).unwrap_or_default()
}

fn is_less(one: &[u8], other: &[u8]) -> bool {
    (one.len(), one) < (other.len(), other)
}

/// The digits of both numbers from the last to the first, with zeros in front of the shorter one.
fn from_the_end<'a>(one: &'a [u8], other: &'a [u8]) -> impl Iterator<Item = (u8, u8)> + use<'a> {
    let digit = |digits: &[u8], at: usize| {
        digits.len().checked_sub(at + 1).and_then(|at| digits.get(at)).map_or(0, |digit| digit - b'0')
    };
    (0..one.len().max(other.len())).map(move |at| (digit(one, at), digit(other, at)))
}

fn sum(one: &[u8], other: &[u8]) -> Vec<u8> {
    let (mut out, mut carry) = (Vec::with_capacity(one.len().max(other.len()) + 1), 0);
    for (one, other) in from_the_end(one, other) {
        let digit = one + other + carry;
        carry = digit / 10;
        out.push(b'0' + digit % 10);
    }
    out.push(b'0' + carry);
    out.reverse();
    out
}

/// The difference of a number and one that is not larger.
fn difference(larger: &[u8], smaller: &[u8]) -> Vec<u8> {
    let (mut out, mut borrow) = (Vec::with_capacity(larger.len()), 0);
    for (one, other) in from_the_end(larger, smaller) {
        let digit = 10 + one - other - borrow;
        borrow = u8::from(digit < 10);
        out.push(b'0' + digit % 10);
    }
    out.reverse();
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn integers_of_any_length_are_added() {
        for (one, other, expected) in [
            ("0", "0", Some("0")),
            ("5", "-5", Some("0")),
            ("-5", "5", Some("0")),
            ("-0", "+0", Some("0")),
            ("007", "+3", Some("10")),
            ("999999999999999999999999", "1", Some("1000000000000000000000000")),
            ("-1000000000000000000000000", "1", Some("-999999999999999999999999")),
            ("", "1", None),
            ("1", "-", None),
            ("1", "1.5", None),
        ] {
            assert_eq!(
                add(one.as_bytes(), other.as_bytes()).as_deref(),
                expected.map(str::as_bytes),
                "{one} {other}"
            );
        }
    }

    proptest! {
        #[test]
        fn a_sum_is_that_of_the_machine(one in any::<i64>(), other in any::<i64>()) {
            let expected = (i128::from(one) + i128::from(other)).to_string();
            let (one, other) = (one.to_string(), other.to_string());
            prop_assert_eq!(add(one.as_bytes(), other.as_bytes()), Some(expected.into_bytes()));
        }
    }
}
