//! Numbers and booleans in headers. Decimal numbers are digits only, in both directions.

/// Parses a number that consists of digits only: no sign, no space, no overflow.
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

/// Parses the whole part of a number with an optional fraction, such as a clock in seconds.
pub fn parse_whole(number: &[u8]) -> Option<u64> {
    let mut parts = number.splitn(2, |byte| *byte == b'.');
    let whole = parts.next().unwrap_or_default();
    let is_fraction = |part: &[u8]| !part.is_empty() && part.iter().all(u8::is_ascii_digit);
    if parts.next().is_none_or(is_fraction) { parse_u64(whole) } else { None }
}

/// Parses `true` or `false` in any case; Python writes `True`.
#[inline]
pub fn parse_bool(text: &[u8]) -> Option<bool> {
    match text {
        b"true" => Some(true),
        b"false" => Some(false),
        _ if text.eq_ignore_ascii_case(b"true") => Some(true),
        _ if text.eq_ignore_ascii_case(b"false") => Some(false),
        _ => None,
    }
}

/// Appends a number in decimal.
#[inline]
pub fn push_u64(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// The decimal digits of a number that usually rises by one, in which case no division is needed.
#[derive(Debug, Clone, Copy)]
pub struct Counter {
    value: u64,
    digits: [u8; 20],
    /// Index of the first digit.
    start: usize,
}

impl Default for Counter {
    fn default() -> Self {
        Self { value: 0, digits: [b'0'; 20], start: 19 }
    }
}

impl Counter {
    /// Returns the digits of `number`.
    #[inline]
    pub fn digits(&mut self, number: u64) -> &[u8] {
        if number != self.value {
            match number.checked_sub(1) {
                Some(before) if before == self.value => self.rise(),
                _ => self.set(number),
            }
            self.value = number;
        }
        self.digits.get(self.start..).unwrap_or_default()
    }

    #[inline]
    fn rise(&mut self) {
        for (place, digit) in self.digits.iter_mut().enumerate().rev() {
            self.start = self.start.min(place);
            if *digit != b'9' {
                *digit += 1;
                return;
            }
            *digit = b'0';
        }
    }

    #[cold]
    fn set(&mut self, mut number: u64) {
        self.digits = [b'0'; 20];
        self.start = 19;
        for (place, digit) in self.digits.iter_mut().enumerate().rev() {
            *digit = b'0' + (number % 10) as u8;
            if number > 0 {
                self.start = place;
            }
            number /= 10;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counter_shows_any_number_in_any_order() {
        let mut counter = Counter::default();
        let jumps =
            [0, 0, 1, 2, 98, 99, 100, 101, 999, 1000, 7, 8, 9, 10, 11, 0, 1, u64::MAX - 1, u64::MAX, 0];
        for number in jumps.into_iter().chain(0..2000) {
            assert_eq!(counter.digits(number), number.to_string().as_bytes());
        }
    }

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
    fn a_fraction_is_cut_off() {
        for (text, expected) in [
            ("1700000000", Some(1_700_000_000)),
            ("1700000000.5", Some(1_700_000_000)),
            ("1.000001", Some(1)),
            ("1.", None),
            (".5", None),
            ("1.5e3", None),
            ("1.-5", None),
            ("1.2.3", None),
        ] {
            assert_eq!(parse_whole(text.as_bytes()), expected, "{text}");
        }
    }

    #[test]
    fn a_boolean_is_a_word_in_any_case() {
        for (text, expected) in [
            ("true", Some(true)),
            ("True", Some(true)),
            ("TRUE", Some(true)),
            ("false", Some(false)),
            ("False", Some(false)),
            ("1", None),
            ("yes", None),
            ("", None),
            ("true ", None),
        ] {
            assert_eq!(parse_bool(text.as_bytes()), expected, "{text}");
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
