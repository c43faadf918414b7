//! Times in payloads, as StackStorm reads them: ISO 8601, and else what `dateutil` makes of the common forms.

use jiff::SignedDuration;
use jiff::tz::Offset;

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
pub fn parse(text: &str, now: Timestamp) -> Result<Timestamp, String> {
    if text.len() > DATE_BYTES_MAX {
        return Err(format!("the time is longer than {DATE_BYTES_MAX} bytes; use ISO 8601"));
    }
    let today = Offset::UTC.to_datetime(now.to_jiff()).date();
    iso_date::parse(text).or_else(|| loose_date::parse(text, today)).and_then(moment).ok_or_else(|| {
        format!("`{}` is no known form of a time; use ISO 8601, as in `2014-10-30T05:08:30Z`", cut(text))
    })
}

fn moment(written: Written) -> Option<Timestamp> {
    let at = Offset::UTC.to_timestamp(written.at).ok()?;
    let offset = SignedDuration::from_secs(i64::from(written.offset.unwrap_or_default()));
    at.checked_sub(offset).ok().and_then(Timestamp::from_jiff)
}
