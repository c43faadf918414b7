//! Spans of time: nanoseconds in JSON, Go's notation such as `1h30m` in texts.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Nanoseconds as JSON carries them; negative until a configuration is checked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Nanos(pub i64);

const MICROSECOND: i64 = 1_000;
const MILLISECOND: i64 = 1_000_000;
const SECOND: i64 = 1_000_000_000;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;

impl Nanos {
    /// No time.
    pub const ZERO: Self = Self(0);

    /// Returns a number of milliseconds, saturated.
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis.saturating_mul(MILLISECOND))
    }

    /// Returns a number of seconds, saturated.
    pub const fn from_secs(seconds: i64) -> Self {
        Self(seconds.saturating_mul(SECOND))
    }

    /// Whether this is no time. JSON omits it.
    pub fn is_zero(&self) -> bool {
        self.0 == 0
    }

    /// Returns the duration; none for a negative one.
    pub fn duration(self) -> Duration {
        Duration::from_nanos(u64::try_from(self.0).unwrap_or_default())
    }

    /// Parses Go's notation: `1.5h`, `1h30m`, `-100ms`, `0`. `None` for any other text, also for a
    /// number without a unit.
    pub fn parse(text: &str) -> Option<Self> {
        let (is_negative, mut rest) = match text.as_bytes().first()? {
            b'-' => (true, text.get(1..)?),
            b'+' => (false, text.get(1..)?),
            _ => (false, text),
        };
        if rest == "0" {
            return Some(Self(0));
        }
        if rest.is_empty() {
            return None;
        }
        let mut nanos = 0_i128;
        while !rest.is_empty() {
            let (part, after) = leading_part(rest)?;
            nanos = nanos.checked_add(part)?;
            rest = after;
        }
        i64::try_from(if is_negative { -nanos } else { nanos }).ok().map(Self)
    }
}

impl From<Duration> for Nanos {
    fn from(duration: Duration) -> Self {
        Self(i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX))
    }
}

/// Go's notation, with the largest unit that leaves a digit before the point.
impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.0.unsigned_abs();
        if self.0 < 0 {
            f.write_str("-")?;
        }
        let unit = |unit: i64| unit.unsigned_abs();
        match nanos {
            0 => f.write_str("0s"),
            _ if nanos < unit(MICROSECOND) => write!(f, "{nanos}ns"),
            _ if nanos < unit(MILLISECOND) => write!(f, "{}µs", Decimal(nanos, unit(MICROSECOND))),
            _ if nanos < unit(SECOND) => write!(f, "{}ms", Decimal(nanos, unit(MILLISECOND))),
            _ => {
                let (hours, minutes) = (nanos / unit(HOUR), nanos / unit(MINUTE));
                if hours > 0 {
                    write!(f, "{hours}h")?;
                }
                if minutes > 0 {
                    write!(f, "{}m", minutes % 60)?;
                }
                write!(f, "{}s", Decimal(nanos % unit(MINUTE), unit(SECOND)))
            }
        }
    }
}

/// A number of nanoseconds in a unit, with as many digits as needed.
struct Decimal(u64, u64);

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, fraction) = (self.0 / self.1, self.0 % self.1);
        write!(f, "{whole}")?;
        if fraction > 0 {
            let len = self.1.ilog10() as usize;
            let digits = format!("{fraction:0len$}");
            write!(f, ".{}", digits.trim_end_matches('0'))?;
        }
        Ok(())
    }
}

/// Reads one number with its unit as nanoseconds, and returns the rest.
fn leading_part(text: &str) -> Option<(i128, &str)> {
    let number_len =
        text.bytes().position(|byte| !byte.is_ascii_digit() && byte != b'.').unwrap_or(text.len());
    let (number, rest) = text.split_at_checked(number_len)?;
    let unit_len = rest.bytes().position(|byte| byte.is_ascii_digit() || byte == b'.').unwrap_or(rest.len());
    let (unit, rest) = rest.split_at_checked(unit_len)?;
    let unit = match unit {
        "ns" => 1,
        "us" | "µs" | "μs" => MICROSECOND,
        "ms" => MILLISECOND,
        "s" => SECOND,
        "m" => MINUTE,
        "h" => HOUR,
        _ => return None,
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() || fraction.contains('.') {
        return None;
    }
    let whole: i128 = if whole.is_empty() { 0 } else { whole.parse::<u64>().ok()?.into() };
    let (mut remainder, mut scale) = (0_i128, 1_i128);
    // Digits beyond a nanosecond of an hour do not count.
    for digit in fraction.bytes().take(13) {
        remainder = remainder * 10 + i128::from(digit - b'0');
        scale *= 10;
    }
    let nanos = whole * i128::from(unit) + remainder * i128::from(unit) / scale;
    Some((nanos, rest))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn durations_are_read_as_go_reads_them() {
        for (text, expected) in [
            ("0", Some(0)),
            ("-0", Some(0)),
            ("1ns", Some(1)),
            ("1.5us", Some(1_500)),
            ("2µs", Some(2_000)),
            ("100ms", Some(100 * MILLISECOND)),
            ("1h30m", Some(90 * MINUTE)),
            ("1h0.5s", Some(HOUR + SECOND / 2)),
            (".5s", Some(SECOND / 2)),
            ("1.s", Some(SECOND)),
            ("-2m", Some(-2 * MINUTE)),
            ("+2m", Some(2 * MINUTE)),
            ("0s", Some(0)),
            ("2562047h47m16.854775807s", Some(i64::MAX)),
            ("2562047h47m16.854775808s", None),
            ("-2562047h47m16.854775808s", Some(i64::MIN)),
            ("99999999999999999999s", None),
            ("", None),
            ("-", None),
            (".", None),
            (".s", None),
            ("1", None),
            ("1d", None),
            ("s", None),
            ("1..5s", None),
            ("1s ", None),
            ("--1s", None),
        ] {
            assert_eq!(Nanos::parse(text), expected.map(Nanos), "{text:?}");
        }
    }

    #[test]
    fn durations_are_written_as_go_writes_them() {
        for (nanos, text) in [
            (0, "0s"),
            (1, "1ns"),
            (1_100, "1.1µs"),
            (2_200_000, "2.2ms"),
            (SECOND, "1s"),
            (SECOND + 1, "1.000000001s"),
            (90 * SECOND, "1m30s"),
            (HOUR, "1h0m0s"),
            (-HOUR - SECOND / 2, "-1h0m0.5s"),
            (i64::MAX, "2562047h47m16.854775807s"),
            (i64::MIN, "-2562047h47m16.854775808s"),
        ] {
            assert_eq!(Nanos(nanos).to_string(), text);
        }
        assert_eq!(Nanos(-1).duration(), Duration::ZERO);
        assert_eq!(Nanos::from(Duration::MAX), Nanos(i64::MAX));
    }

    proptest! {
        #[test]
        fn every_duration_survives_its_text(nanos in any::<i64>()) {
            prop_assert_eq!(Nanos::parse(&Nanos(nanos).to_string()), Some(Nanos(nanos)));
        }
    }
}
