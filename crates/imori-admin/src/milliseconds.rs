//! Durations and times in whole milliseconds.

use std::time::Duration;

use imori_core::time::Time;

/// Whole milliseconds.
pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Milliseconds since the UNIX epoch.
pub(crate) fn since_epoch(time: Time) -> u64 {
    millis(time.since(Time::default()))
}
