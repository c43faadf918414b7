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
pub fn push_u64(out: &mut Vec<u8>, mut number: u64) {
    if let Ok(digit @ 0..10) = u8::try_from(number) {
        out.push(b'0' + digit);
        return;
    }
    // Two digits a step: a division takes longer than all else here.
    let mut digits = [0_u8; 20];
    let mut unused = digits.len();
    for pair in digits.rchunks_exact_mut(2) {
        let rest = (number % 100) as u8;
        number /= 100;
        pair.copy_from_slice(&[b'0' + rest / 10, b'0' + rest % 10]);
        unused -= 2;
        if number == 0 {
            unused += usize::from(rest < 10);
            break;
        }
    }
    out.extend_from_slice(digits.get(unused..).expect("a number of 64 bits has at most 20 digits"));
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
