//! Time as the core sees it: a number passed in by the caller.

use std::time::Duration;

/// A point in time, in microseconds since the UNIX epoch; never goes back within one run.
///
/// The runtime derives it from one reading of the wall clock at start plus a monotonic clock, so it
/// serves both deadlines and time stamps.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub u64);

impl Time {
    /// A time that is never reached.
    pub const NEVER: Time = Time(u64::MAX);

    /// The time `duration` after this one; [`Time::NEVER`] on overflow.
    pub fn after(self, duration: Duration) -> Time {
        let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        Time(self.0.saturating_add(micros))
    }

    /// The time `duration` before this one, but not before the epoch.
    pub fn before(self, duration: Duration) -> Time {
        let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        Time(self.0.saturating_sub(micros))
    }

    /// The duration from `earlier` to this time; zero if `earlier` is later.
    pub fn since(self, earlier: Time) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }
}
