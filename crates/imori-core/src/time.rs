//! Time as the broker knows it: a number that is handed in.

use std::time::Duration;

/// A point in time: microseconds since the UNIX epoch, never going back within one run.
///
/// The runtime derives it from one reading of the wall clock at start plus a
/// monotonic clock, so it serves both deadlines and time stamps.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub u64);

impl Time {
    /// The far future: what is due then is not due.
    pub const NEVER: Time = Time(u64::MAX);

    /// The point `duration` after this one; [`Time::NEVER`] where that overflows.
    pub fn after(self, duration: Duration) -> Time {
        let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        Time(self.0.saturating_add(micros))
    }

    /// How long it is from `earlier` to this point; zero if `earlier` is later.
    pub fn since(self, earlier: Time) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }
}
