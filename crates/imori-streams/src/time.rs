//! Points in time as JetStream writes them: RFC 3339 in UTC, with as many digits as needed.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::duration::Nanos;

const NANOS_A_SECOND: u32 = 1_000_000_000;
const SECONDS_A_DAY: i64 = 86_400;

/// A point in time, with nanoseconds, between the years 0 and 9999.
///
/// Go's zero time, the start of year 1, stands for "no time" in all answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp {
    /// Seconds since 1970.
    seconds: i64,
    /// Nanoseconds of the second.
    nanos: u32,
}

/// The date and the time of day of a [`Timestamp`], in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Civil {
    /// The year.
    pub year: i64,
    /// The month, from 1.
    pub month: u32,
    /// The day of the month, from 1.
    pub day: u32,
    /// The hour.
    pub hour: u32,
    /// The minute.
    pub minute: u32,
    /// The second.
    pub second: u32,
}

impl Timestamp {
    /// Go's zero time, `0001-01-01T00:00:00Z`.
    pub const ZERO: Self = Self { seconds: -62_135_596_800, nanos: 0 };

    /// Returns the time that is this many nanoseconds after the start of 1970.
    pub fn from_unix_nanos(nanos: i64) -> Self {
        let (seconds, nanos) =
            (nanos.div_euclid(i64::from(NANOS_A_SECOND)), nanos.rem_euclid(i64::from(NANOS_A_SECOND)));
        Self { seconds, nanos: u32::try_from(nanos).unwrap_or_default() }
    }

    /// Returns the nanoseconds since the start of 1970, saturated outside of the years 1678 to 2261.
    pub fn unix_nanos(self) -> i64 {
        let nanos = i128::from(self.seconds) * i128::from(NANOS_A_SECOND) + i128::from(self.nanos);
        i64::try_from(nanos).unwrap_or(if nanos < 0 { i64::MIN } else { i64::MAX })
    }

    /// Returns the time of a date. Days beyond the end of the month, and longer times of day, carry over.
    pub fn from_civil(civil: Civil) -> Self {
        let days = days_from_civil(civil.year, civil.month, civil.day);
        let second_of_day = civil.hour * 3600 + civil.minute * 60 + civil.second;
        Self { seconds: days * SECONDS_A_DAY + i64::from(second_of_day), nanos: 0 }
    }

    /// Returns the date and the time of day.
    pub fn civil(self) -> Civil {
        let (year, month, day) = civil_from_days(self.seconds.div_euclid(SECONDS_A_DAY));
        let second = u32::try_from(self.seconds.rem_euclid(SECONDS_A_DAY)).unwrap_or_default();
        Civil { year, month, day, hour: second / 3600, minute: second / 60 % 60, second: second % 60 }
    }

    /// Returns the start of the second.
    pub fn truncated_to_second(self) -> Self {
        Self { nanos: 0, ..self }
    }

    /// Returns the start of the nearest second; of the next one for the middle.
    pub fn rounded_to_second(self) -> Self {
        let is_late = self.nanos >= NANOS_A_SECOND / 2;
        Self { seconds: self.seconds.saturating_add(i64::from(is_late)), nanos: 0 }
    }

    /// Returns the time this much later, or the last one there is.
    pub fn saturating_add(self, span: Nanos) -> Self {
        let (seconds, nanos) = (
            span.0.div_euclid(i64::from(NANOS_A_SECOND)),
            span.0.rem_euclid(i64::from(NANOS_A_SECOND)) + i64::from(self.nanos),
        );
        let carry = nanos / i64::from(NANOS_A_SECOND);
        let nanos = u32::try_from(nanos % i64::from(NANOS_A_SECOND)).unwrap_or_default();
        Self { seconds: self.seconds.saturating_add(seconds).saturating_add(carry), nanos }
    }

    /// Returns the day of the week, 0 for Sunday.
    pub fn weekday(self) -> u32 {
        // 1970 started on a Thursday.
        let weekday = (self.seconds.div_euclid(SECONDS_A_DAY) + 4).rem_euclid(7);
        u32::try_from(weekday).unwrap_or_default()
    }

    /// Whether this is Go's zero time.
    pub fn is_zero(self) -> bool {
        self == Self::ZERO
    }

    /// Parses RFC 3339 with any offset. `None` for any other text.
    pub fn parse(text: &str) -> Option<Self> {
        let (date, rest) = text.split_at_checked(10)?;
        let (time, rest) = rest.strip_prefix('T')?.split_at_checked(8)?;
        let [year, month, day] = fields(date, '-', [4, 2, 2])?;
        let [hour, minute, second] = fields(time, ':', [2, 2, 2])?;
        if !(1..=12).contains(&month) || !(1..=days_of_month(i64::from(year), month)).contains(&day) {
            return None;
        }
        if hour > 23 || minute > 59 || second > 59 {
            return None;
        }
        let (nanos, zone) = fraction(rest)?;
        let civil = Civil { year: i64::from(year), month, day, hour, minute, second };
        Some(Self { seconds: Self::from_civil(civil).seconds.checked_sub(offset(zone)?)?, nanos })
    }
}

/// Go's zero time.
impl Default for Timestamp {
    fn default() -> Self {
        Self::ZERO
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Civil { year, month, day, hour, minute, second } = self.civil();
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")?;
        if self.nanos > 0 {
            let digits = format!("{:09}", self.nanos);
            write!(f, ".{}", digits.trim_end_matches('0'))?;
        }
        f.write_str("Z")
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| de::Error::custom(format!("`{text}` is not a time of RFC 3339")))
    }
}

/// Splits a text into three numbers of these many digits.
fn fields(text: &str, separator: char, lens: [usize; 3]) -> Option<[u32; 3]> {
    let mut parts = text.split(separator);
    let numbers = lens.map(|len| parts.next().and_then(|part| digits(part, len)));
    match (numbers, parts.next()) {
        ([Some(first), Some(second), Some(third)], None) => Some([first, second, third]),
        _ => None,
    }
}

fn digits(text: &str, len: usize) -> Option<u32> {
    let is_number = text.len() == len && text.bytes().all(|byte| byte.is_ascii_digit());
    if is_number { text.parse().ok() } else { None }
}

/// Reads the digits after the dot as nanoseconds, and returns the rest. Digits beyond the ninth are
/// dropped.
fn fraction(text: &str) -> Option<(u32, &str)> {
    let Some(after) = text.strip_prefix(['.', ',']) else {
        return Some((0, text));
    };
    let len = after.bytes().position(|byte| !byte.is_ascii_digit()).unwrap_or(after.len());
    let (digits, rest) = after.split_at_checked(len).filter(|_| len > 0)?;
    let nanos = digits.bytes().chain(std::iter::repeat(b'0')).take(9);
    Some((nanos.fold(0, |nanos, digit| nanos * 10 + u32::from(digit - b'0')), rest))
}

/// Reads `Z` or `±hh:mm` as seconds ahead of UTC.
fn offset(zone: &str) -> Option<i64> {
    if zone == "Z" {
        return Some(0);
    }
    let (sign, after) = zone.split_at_checked(1)?;
    let (hour, minute) = after.split_once(':')?;
    let (hour, minute) = (digits(hour, 2)?, digits(minute, 2)?);
    if hour > 23 || minute > 59 {
        return None;
    }
    let seconds = i64::from(hour * 3600 + minute * 60);
    match sign {
        "+" => Some(seconds),
        "-" => Some(-seconds),
        _ => None,
    }
}

fn days_of_month(year: i64, month: u32) -> u32 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days from 1970 to a date of the Gregorian calendar, counted in eras of 400 years from March.
fn days_from_civil(year: i64, month: u32, day: u32) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let month_from_march = i64::from((month + 9) % 12);
    let day_of_year = (153 * month_from_march + 2) / 5 + i64::from(day) - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

/// The reverse of [`days_from_civil`].
fn civil_from_days(days: i64) -> (i64, u32, u32) {
    let days = days + 719_468;
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, u32::try_from(month).unwrap_or_default(), u32::try_from(day).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn times_are_written_as_go_writes_them() {
        for (nanos, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (1_767_323_045_123_456_789, "2026-01-02T03:04:05.123456789Z"),
            (1_767_323_045_120_000_000, "2026-01-02T03:04:05.12Z"),
            (1_767_323_045_000_000_001, "2026-01-02T03:04:05.000000001Z"),
            (-1, "1969-12-31T23:59:59.999999999Z"),
            (1_709_164_800_000_000_000, "2024-02-29T00:00:00Z"),
            (i64::MAX, "2262-04-11T23:47:16.854775807Z"),
            (i64::MIN, "1677-09-21T00:12:43.145224192Z"),
        ] {
            let time = Timestamp::from_unix_nanos(nanos);
            assert_eq!(time.to_string(), text);
            assert_eq!(Timestamp::parse(text), Some(time), "{text}");
            assert_eq!(time.unix_nanos(), nanos, "{text}");
        }
        assert_eq!(Timestamp::ZERO.to_string(), "0001-01-01T00:00:00Z");
        assert_eq!(Timestamp::ZERO.unix_nanos(), i64::MIN);
    }

    #[test]
    fn any_offset_is_read_and_any_other_text_is_refused() {
        for (text, expected) in [
            ("2026-01-02T03:04:05+02:00", Some("2026-01-02T01:04:05Z")),
            ("2026-01-02T03:04:05.5-00:30", Some("2026-01-02T03:34:05.5Z")),
            ("2026-01-02T03:04:05.1234567891Z", Some("2026-01-02T03:04:05.123456789Z")),
            ("2024-02-29T00:00:00Z", Some("2024-02-29T00:00:00Z")),
            ("0000-01-01T00:00:00Z", Some("0000-01-01T00:00:00Z")),
            ("9999-12-31T23:59:59Z", Some("9999-12-31T23:59:59Z")),
            ("2026-02-29T00:00:00Z", None),
            ("2026-13-01T00:00:00Z", None),
            ("2026-00-01T00:00:00Z", None),
            ("2026-01-02T24:00:00Z", None),
            ("2026-01-02T03:04:60Z", None),
            ("2026-01-02T03:04:05", None),
            ("2026-01-02T03:04:05.Z", None),
            ("2026-01-02 03:04:05Z", None),
            ("2026-01-02T03:04:05*02:00", None),
            ("2026-01-02T03:04:05+24:00", None),
            ("+026-01-02T03:04:05Z", None),
            ("é026-01-02T03:04:05Z", None),
            ("", None),
        ] {
            let read = Timestamp::parse(text).map(|time| time.to_string());
            assert_eq!(read.as_deref(), expected, "{text:?}");
        }
    }

    #[test]
    fn times_are_rounded_and_moved() {
        for (text, span, rounded, moved) in [
            ("2026-01-02T03:04:05.4Z", 700_000_000, "2026-01-02T03:04:05Z", "2026-01-02T03:04:06.1Z"),
            ("2026-01-02T03:04:05.5Z", -600_000_000, "2026-01-02T03:04:06Z", "2026-01-02T03:04:04.9Z"),
            ("2026-12-31T23:59:59.9Z", 0, "2027-01-01T00:00:00Z", "2026-12-31T23:59:59.9Z"),
        ] {
            let time = Timestamp::parse(text).unwrap();
            assert_eq!(time.rounded_to_second().to_string(), rounded, "{text}");
            assert_eq!(time.saturating_add(Nanos(span)).to_string(), moved, "{text}");
        }
    }

    #[test]
    fn weekdays_are_those_of_the_calendar() {
        for (text, weekday) in
            [("1970-01-01T00:00:00Z", 4), ("2026-11-29T23:59:59Z", 0), ("1969-12-31T00:00:00Z", 3)]
        {
            assert_eq!(Timestamp::parse(text).map(Timestamp::weekday), Some(weekday), "{text}");
        }
    }

    proptest! {
        #[test]
        fn every_time_survives_its_text(nanos in any::<i64>()) {
            let time = Timestamp::from_unix_nanos(nanos);
            prop_assert_eq!(Timestamp::parse(&time.to_string()), Some(time));
            prop_assert_eq!(time.unix_nanos(), nanos);
        }
    }
}
