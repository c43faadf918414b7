//! Times, spans and limits of JetStream's JSON, as the core has them, and back.

use std::time::Duration;

use imori_core::time::Time;

use crate::duration::Nanos;
use crate::time::Timestamp;

/// A time of the core, in nanoseconds.
pub fn nanos(time: Time) -> u64 {
    time.0.saturating_mul(1000)
}

/// A time of the core, as JSON has it.
pub fn time(time: Time) -> Timestamp {
    Timestamp::from_unix_nanos(i64::try_from(nanos(time)).unwrap_or(i64::MAX))
}

/// A time of JSON, as the core has it.
pub fn since(time: Timestamp) -> Time {
    Time(u64::try_from(time.unix_nanos()).unwrap_or_default() / 1000)
}

/// A positive number; any other is no limit.
pub fn limit(number: i64) -> Option<u64> {
    u64::try_from(number).ok().filter(|number| *number > 0)
}

/// A limit in JSON; -1 for none.
pub fn number(limit: Option<u64>) -> i64 {
    limit.map_or(-1, |limit| i64::try_from(limit).unwrap_or(i64::MAX))
}

/// A span of time; `None` for 0.
pub fn span(nanos: Nanos) -> Option<Duration> {
    Some(nanos.duration()).filter(|span| !span.is_zero())
}

/// A span of time in JSON; 0 for none.
pub fn duration(span: Option<Duration>) -> Nanos {
    span.map_or(Nanos::ZERO, |span| Nanos(i64::try_from(span.as_nanos()).unwrap_or(i64::MAX)))
}
