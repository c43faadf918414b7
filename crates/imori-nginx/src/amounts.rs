//! Sizes and times as nginx writes them.

/// Reads a size: digits, then `k`, `m` or `g` in either case.
pub(super) fn bytes(text: &str) -> Option<u64> {
    let (digits, unit) = match text.char_indices().next_back()? {
        (at, 'k' | 'K') => (text.get(..at)?, 1 << 10),
        (at, 'm' | 'M') => (text.get(..at)?, 1 << 20),
        (at, 'g' | 'G') => (text.get(..at)?, 1 << 30),
        _ => (text, 1),
    };
    number(digits)?.checked_mul(unit)
}

/// Reads a time in milliseconds: parts as `1h30m`, with spaces between them or not; a number alone is seconds.
pub(super) fn milliseconds(text: &str) -> Option<u64> {
    let mut rest = text.trim();
    let mut total = 0_u64;
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let digits = rest.find(|char: char| !char.is_ascii_digit()).unwrap_or(rest.len());
        let (amount, after) = rest.split_at(digits);
        let letters = after.find(|char: char| !char.is_ascii_alphabetic()).unwrap_or(after.len());
        let (unit, after) = after.split_at(letters);
        let factor = match unit {
            "ms" => 1,
            "s" => 1_000,
            "m" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            "w" => 604_800_000,
            // nginx counts a month as 30 days and a year as 365.
            "M" => 2_592_000_000,
            "y" => 31_536_000_000,
            // Only the last part may lack its unit.
            "" if after.trim().is_empty() => 1_000,
            _ => return None,
        };
        total = total.checked_add(number(amount)?.checked_mul(factor)?)?;
        rest = after.trim_start();
    }
    Some(total)
}

fn number(digits: &str) -> Option<u64> {
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| digits.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::{bytes, milliseconds};

    #[test]
    fn sizes() {
        for (text, expected) in [
            ("0", Some(0)),
            ("100", Some(100)),
            ("8k", Some(8 << 10)),
            ("10M", Some(10 << 20)),
            ("2g", Some(2 << 30)),
            ("", None),
            ("k", None),
            ("-1", None),
            ("1.5m", None),
            ("99999999999999999999", None),
            ("99999999999999999g", None),
        ] {
            assert_eq!(bytes(text), expected, "{text}");
        }
    }

    #[test]
    fn times() {
        for (text, expected) in [
            ("60", Some(60_000)),
            ("60s", Some(60_000)),
            ("250ms", Some(250)),
            ("1h30m", Some(5_400_000)),
            ("1h 30m", Some(5_400_000)),
            ("1m 30", Some(90_000)),
            ("1M", Some(2_592_000_000)),
            ("", None),
            ("s", None),
            ("5x", None),
            ("30 1m", None),
            ("-1s", None),
            ("99999999999y", None),
        ] {
            assert_eq!(milliseconds(text), expected, "{text}");
        }
    }
}
