//! The broker's clock: the wall clock at the start plus elapsed time.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use imori_core::time::Time;

/// Provides [`Time`]; never goes backwards.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    started: Instant,
    started_at: Time,
}

impl Clock {
    pub(crate) fn start() -> Clock {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Clock { started: Instant::now(), started_at: Time::default().after(since_epoch) }
    }

    pub(crate) fn now(&self) -> Time {
        self.started_at.after(self.started.elapsed())
    }

    /// Converts a time of the core to an instant of the runtime's clock.
    pub(crate) fn instant(&self, time: Time) -> Instant {
        self.started + time.since(self.started_at)
    }
}

/// Whole milliseconds, for the log and the monitor.
pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
