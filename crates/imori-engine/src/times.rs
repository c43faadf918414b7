//! The clock, and times in requests.

use std::time::{SystemTime, UNIX_EPOCH};

use imori_automation::times::Timestamp;

/// The time now.
pub(crate) fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_micros(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
}

/// Reads a time in ISO 8601.
///
/// # Errors
/// The text is no time.
pub(crate) fn parse(text: &str) -> Result<Timestamp, String> {
    text.parse::<Timestamp>().map_err(|error| error.to_string())
}
