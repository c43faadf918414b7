//! Times in payloads, as StackStorm reads them: ISO 8601, and else what `dateutil` makes of the common forms.

use jiff::civil::Date;
use jiff::{SignedDuration, Timestamp as Moment};

use super::iso_date::{self, Written};
use super::loose_date;
use super::outcome::cut;
use crate::limits::DATE_BYTES_MAX;
use crate::times::Timestamp;

/// The moment that a text writes; without an offset it is in UTC, and parts of a date that are left out are those of
/// today.
///
/// # Errors
/// The text has none of the known forms, or the time does not exist.
pub(super) fn parse(text: &str, now: Timestamp) -> Result<Timestamp, String> {
    if text.len() > DATE_BYTES_MAX {
        return Err(format!("the time is longer than {DATE_BYTES_MAX} bytes; use ISO 8601"));
    }
    iso_date::parse(text).or_else(|| loose_date::parse(text, today(now)?)).and_then(moment).ok_or_else(|| {
        format!("`{}` is no known form of a time; use ISO 8601, as in `2014-10-30T05:08:30Z`", cut(text))
    })
}

fn today(now: Timestamp) -> Option<Date> {
    let moment = Moment::from_microsecond(now.micros()).ok()?;
    Some(jiff::tz::Offset::UTC.to_datetime(moment).date())
}

fn moment(written: Written) -> Option<Timestamp> {
    let at = jiff::tz::Offset::UTC.to_timestamp(written.at).ok()?;
    let offset = SignedDuration::from_secs(i64::from(written.offset.unwrap_or_default()));
    let micros = at.checked_sub(offset).ok()?.as_microsecond();
    let moment = Timestamp::from_micros(micros);
    (moment.micros() == micros).then_some(moment)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_by_ciso8601_and_dateutil() {
        let now: Timestamp = "2026-11-26T12:00:00Z".parse().unwrap();
        let rows = [
            ("2014-01", "2014-01-01T00:00:00.000000Z"),
            ("20140130", "2014-01-30T00:00:00.000000Z"),
            ("2014-130", "2014-05-10T00:00:00.000000Z"),
            ("2014-W05-3", "2014-01-29T00:00:00.000000Z"),
            ("2014W053", "2014-01-29T00:00:00.000000Z"),
            ("2014-01-30T05", "2014-01-30T05:00:00.000000Z"),
            ("2014-01-30 05:08:30,5", "2014-01-30T05:08:30.500000Z"),
            ("2014-01-30T05:08:30.1234567891", "2014-01-30T05:08:30.123456Z"),
            ("2014-01-30T24:00", "2014-01-31T00:00:00.000000Z"),
            ("2014-01-30T05:08:30+0130", "2014-01-30T03:38:30.000000Z"),
            ("2014-01-30T05:08:30-05:00", "2014-01-30T10:08:30.000000Z"),
            ("2014-01-30T05Z", "2014-01-30T05:00:00.000000Z"),
            ("2014", "2014-11-26T00:00:00.000000Z"),
            ("Fri, 02 Jan 2015 10:00:30 GMT", "2015-01-02T10:00:30.000000Z"),
            ("Fri, 02 Jan 2015 10:00:30 +0100", "2015-01-02T09:00:30.000000Z"),
            ("Fri Jan  2 10:00:30 2015", "2015-01-02T10:00:30.000000Z"),
            ("January 2, 2015 10:00 PM", "2015-01-02T22:00:00.000000Z"),
            ("2 Jan 2015", "2015-01-02T00:00:00.000000Z"),
            ("02-Jan-15", "2015-01-02T00:00:00.000000Z"),
            ("1/2/2015 12:30 am", "2015-01-02T00:30:00.000000Z"),
            ("13/2/2015", "2015-02-13T00:00:00.000000Z"),
            ("2015/1/2 3:04", "2015-01-02T03:04:00.000000Z"),
            ("20150102030405", "2015-01-02T03:04:05.000000Z"),
            ("2014-01-30T05:08:30 Z", "2014-01-30T05:08:30.000000Z"),
            ("10:30", "2026-11-26T10:30:00.000000Z"),
        ];
        for (text, expected) in rows {
            assert_eq!(parse(text, now).map(|moment| moment.to_string()), Ok(expected.to_owned()), "{text}");
        }
        let long = "1".repeat(DATE_BYTES_MAX + 1);
        for text in [
            "",
            "None",
            "yesterday",
            "2014-02-30",
            "1420070400",
            "2014-01-30T25:00",
            "0000-01-01",
            "ä",
            &long,
        ] {
            assert!(parse(text, now).is_err(), "{text}");
        }
    }
}
