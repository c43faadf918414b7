//! Decimal numbers of headers: digits and nothing else, in both directions.

/// Reads a number that is digits only: no sign, no space, no overflow.
///
/// Leading zeros are allowed, up to 20 digits in all.
pub fn parse_u64(digits: &[u8]) -> Option<u64> {
    // 2^64 - 1 has 20 digits.
    if digits.is_empty() || digits.len() > 20 {
        return None;
    }
    let mut number = 0_u64;
    for byte in digits {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        number = number.checked_mul(10)?.checked_add(u64::from(digit))?;
    }
    Some(number)
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
    fn only_digits_are_a_number() {
        for (text, expected) in [
            ("0", Some(0)),
            ("007", Some(7)),
            ("9223372036854775808", Some(1 << 63)),
            ("18446744073709551615", Some(u64::MAX)),
            ("18446744073709551616", None),
            ("99999999999999999999", None),
            ("000000000000000000001", None),
            ("", None),
            ("-1", None),
            ("+1", None),
            (" 1", None),
            ("1 ", None),
            ("1e3", None),
            ("0x10", None),
            ("1:", None),
            ("1/", None),
        ] {
            assert_eq!(parse_u64(text.as_bytes()), expected, "{text}");
        }
    }

    #[test]
    fn written_number_is_read_back() {
        for number in [0, 1, 9, 10, 99, 100, 65_535, 1 << 32, u64::MAX - 1, u64::MAX] {
            let mut out = Vec::new();
            push_u64(&mut out, number);
            assert_eq!(out, number.to_string().as_bytes());
            assert_eq!(parse_u64(&out), Some(number));
        }
    }
}
