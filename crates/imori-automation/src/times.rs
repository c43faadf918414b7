//! Moments in UTC, as StackStorm's API writes and reads them.

use std::fmt;
use std::str::FromStr;

use jiff::civil::DateTime;
use jiff::fmt::temporal::{DateTimePrinter, Pieces};
use jiff::tz::Offset;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::limits::TIME_BYTES_MAX;

/// A moment in UTC, in whole microseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

/// A parsed date and time of day, with its offset from UTC if the text has one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WrittenTime {
    pub(crate) datetime: DateTime,
    pub(crate) offset: Option<Offset>,
}

/// Why a text is no time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimeError(String);

impl Timestamp {
    /// The beginning of the year 1.
    pub const MIN: Timestamp = Timestamp(-62_135_596_800_000_000);

    /// The last moment that has a date before the year 10000 in every time zone.
    pub const MAX: Timestamp = Timestamp(253_402_207_199_999_999);

    /// The moment `micros` microseconds after 1970, clamped to the range.
    pub fn from_micros(micros: i64) -> Timestamp {
        Timestamp(micros).clamp(Timestamp::MIN, Timestamp::MAX)
    }

    /// The moment `seconds` seconds after 1970, clamped to the range.
    pub fn from_seconds(seconds: i64) -> Timestamp {
        Timestamp::from_micros(seconds.saturating_mul(1_000_000))
    }

    /// Microseconds since 1970.
    pub fn micros(self) -> i64 {
        self.0
    }

    /// Whole seconds since 1970, rounded down.
    pub fn seconds(self) -> i64 {
        self.0.div_euclid(1_000_000)
    }

    /// The moment `micros` microseconds later, if it is in range.
    pub fn plus_micros(self, micros: i64) -> Option<Timestamp> {
        let moment = Timestamp(self.0.checked_add(micros)?);
        (Timestamp::MIN..=Timestamp::MAX).contains(&moment).then_some(moment)
    }

    /// What Python's `str` gives for the moment in UTC: `2014-10-30 05:08:30.123456+00:00`.
    pub fn to_python(self) -> String {
        let precision = if self.0 % 1_000_000 == 0 { 0 } else { 6 };
        let printer = DateTimePrinter::new().separator(b' ').precision(Some(precision));
        printer.timestamp_with_offset_to_string(&self.to_jiff(), Offset::UTC)
    }

    pub(crate) fn to_jiff(self) -> jiff::Timestamp {
        jiff::Timestamp::from_microsecond(self.0).expect("the range is within that of jiff")
    }

    /// The moment, if it is in range; nanoseconds are dropped.
    pub(crate) fn from_jiff(moment: jiff::Timestamp) -> Option<Timestamp> {
        Timestamp(moment.as_microsecond()).plus_micros(0)
    }
}

/// Without an offset, the time is in UTC.
impl FromStr for Timestamp {
    type Err = TimeError;

    fn from_str(text: &str) -> Result<Timestamp, TimeError> {
        let written: WrittenTime = text.parse()?;
        written
            .offset
            .unwrap_or(Offset::UTC)
            .to_timestamp(written.datetime)
            .ok()
            .and_then(Timestamp::from_jiff)
            .ok_or_else(|| TimeError(format!("time `{text}` is out of range; use a year from 1 to 9999")))
    }
}

/// ISO 8601: a date, and behind `T` or a space a time of day with seconds, a fraction and an offset, or less.
impl FromStr for WrittenTime {
    type Err = TimeError;

    fn from_str(text: &str) -> Result<WrittenTime, TimeError> {
        if text.len() > TIME_BYTES_MAX {
            return Err(TimeError(format!("the time is longer than {TIME_BYTES_MAX} bytes")));
        }
        let wrong =
            || TimeError(format!("time `{text}` is not ISO 8601; write it as `2014-10-30T05:08:30.123456Z`"));
        let pieces = Pieces::parse(text).map_err(|_| wrong())?;
        if pieces.time_zone_annotation().is_some() || pieces.date().year() < 1 {
            return Err(wrong());
        }
        Ok(WrittenTime {
            datetime: pieces.date().to_datetime(pieces.time().unwrap_or_default()),
            offset: pieces.to_numeric_offset(),
        })
    }
}

/// The time as in StackStorm's API: `2014-10-30T05:08:30.123456Z`.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.6}", self.to_jiff())
    }
}

impl fmt::Display for TimeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for TimeError {}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Timestamp, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}
