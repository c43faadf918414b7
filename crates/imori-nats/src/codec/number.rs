//! Decimal numbers of control lines and headers: digits only, in both directions.

use crate::limits::SIZE_DIGITS_MAX;

/// Parses a size: up to nine digits, no sign, no space.
#[inline]
pub fn parse_size(digits: &[u8]) -> Option<usize> {
    if digits.is_empty() || digits.len() > SIZE_DIGITS_MAX {
        return None;
    }
    let mut number = 0_usize;
    for byte in digits {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        number = number.checked_mul(10)?.checked_add(usize::from(digit))?;
    }
    Some(number)
}

/// Parses the number of a header: digits only, no overflow.
pub fn parse_u64(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0_u64, |number, byte| {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        number.checked_mul(10)?.checked_add(u64::from(digit))
    })
}

/// Appends a number in decimal.
#[inline]
pub fn push_u64(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_digits_and_nothing_else() {
        for (text, size, number) in [
            ("0", Some(0), Some(0)),
            ("007", Some(7), Some(7)),
            ("999999999", Some(999_999_999), Some(999_999_999)),
            ("1000000000", None, Some(1_000_000_000)),
            ("18446744073709551615", None, Some(u64::MAX)),
            ("18446744073709551616", None, None),
            ("", None, None),
            ("-1", None, None),
            ("+1", None, None),
            ("1 ", None, None),
            ("1a", None, None),
        ] {
            assert_eq!(parse_size(text.as_bytes()), size, "{text:?}");
            assert_eq!(parse_u64(text.as_bytes()), number, "{text:?}");
        }
    }
}
