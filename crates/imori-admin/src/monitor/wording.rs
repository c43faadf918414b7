//! Times formatted as in nats-server.

use std::time::{Duration, SystemTime};

use imori_core::time::Time;

/// An RFC 3339 timestamp in UTC.
pub(super) fn timestamp(time: Time) -> String {
    let since_epoch = time.since(Time::default());
    humantime::format_rfc3339_nanos(SystemTime::UNIX_EPOCH + since_epoch).to_string()
}

/// A duration in years of 365 days, days, hours, minutes and seconds, starting with the largest non-zero unit.
pub(super) fn uptime(duration: Duration) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_worded_from_the_largest_unit_on() {
        const DAY: u64 = 86_400;
        for (seconds, worded) in [
            (0, "0s"),
            (59, "59s"),
            (60, "1m0s"),
            (3_600, "1h0m0s"),
            (3_661, "1h1m1s"),
            (DAY, "1d0h0m0s"),
            (365 * DAY + 59, "1y0d0h0m59s"),
            (2 * 365 * DAY + 3 * DAY + 4 * 3_600 + 5 * 60 + 6, "2y3d4h5m6s"),
        ] {
            assert_eq!(uptime(Duration::from_secs(seconds)), worded);
        }
        assert_eq!(uptime(Duration::from_millis(1_999)), "1s");
    }

    #[test]
    fn times_are_in_utc_with_nanoseconds() {
        let time = Time::default().after(Duration::new(1_700_000_000, 5_000));
        assert_eq!(timestamp(time), "2023-11-14T22:13:20.000005000Z");
    }
}
