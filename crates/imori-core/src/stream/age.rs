//! Ages of messages, as RabbitMQ writes them: a number and a unit.

use std::time::Duration;

const SECOND: u64 = 1;
const HOUR: u64 = 3600;
const DAY: u64 = 24 * HOUR;

/// Reads an age such as `7D` or `90s`; the units are years, months of 30 days, days, hours, minutes and seconds. `None`
/// for any other text.
#[must_use]
pub fn parse_age(text: &[u8]) -> Option<Duration> {
    let (unit, digits) = text.split_last()?;
    let seconds = match unit {
        b'Y' => 365 * DAY,
        b'M' => 30 * DAY,
        b'D' => DAY,
        b'h' => HOUR,
        b'm' => 60 * SECOND,
        b's' => SECOND,
        _ => return None,
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let count: u64 = std::str::from_utf8(digits).ok()?.parse().ok()?;
    let age = count.checked_mul(seconds).filter(|age| *age > 0 && *age <= AGE_SECONDS_MAX)?;
    Some(Duration::from_secs(age))
}

/// Longer ages do not fit into the milliseconds of other arguments.
const AGE_SECONDS_MAX: u64 = u32::MAX as u64 * 100;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_is_a_number_and_a_unit() {
        for (text, expected) in [
            ("7D", Some(7 * DAY)),
            ("1Y", Some(365 * DAY)),
            ("2M", Some(60 * DAY)),
            ("12h", Some(12 * HOUR)),
            ("5m", Some(300)),
            ("90s", Some(90)),
            ("007s", Some(7)),
            ("0s", None),
            ("", None),
            ("s", None),
            ("7", None),
            ("7d", None),
            ("-7D", None),
            ("+7D", None),
            ("7 D", None),
            ("7DD", None),
            ("99999999999999999999Y", None),
            ("18446744073709551615Y", None),
        ] {
            assert_eq!(parse_age(text.as_bytes()), expected.map(Duration::from_secs), "{text}");
        }
    }
}
