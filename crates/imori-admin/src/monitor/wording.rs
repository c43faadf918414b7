//! Times formatted as in nats-server.

use std::time::Duration;

use imori_core::time::Time;
use jiff::Timestamp;

/// An RFC 3339 timestamp in UTC.
pub fn timestamp(time: Time) -> String {
    let since_epoch = time.since(Time::default());
    // Years above 9999 have no timestamp.
    let timestamp = i64::try_from(since_epoch.as_secs())
        .ok()
        .and_then(|seconds| Timestamp::new(seconds, since_epoch.subsec_nanos().cast_signed()).ok());
    format!("{:.9}", timestamp.unwrap_or(Timestamp::MAX))
}

/// A duration in years of 365 days, days, hours, minutes and seconds, starting with the largest non-zero unit.
pub fn uptime(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    let years = days / 365;
    let mut text = String::new();
    for (whole, part, unit) in
        [(years, years, 'y'), (days, days % 365, 'd'), (hours, hours % 24, 'h'), (minutes, minutes % 60, 'm')]
    {
        if whole > 0 {
            text.push_str(&format!("{part}{unit}"));
        }
    }
    text.push_str(&format!("{}s", seconds % 60));
    text
}
