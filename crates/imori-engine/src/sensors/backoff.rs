//! The pause before a sensor that has ended is started again. It grows with each end, and starts anew once the sensor
//! has run for a while. A sensor is never given up.

use std::time::Duration;

use crate::limits::{SENSOR_CRASH_LOOP_ENDS, SENSOR_PAUSE_MAX, SENSOR_PAUSE_MIN, SENSOR_STABLE_TIME};

/// How often a sensor ended in a row.
#[derive(Debug, Default)]
pub struct Backoff {
    /// Ends in a row.
    pub ends: u32,
}

impl Backoff {
    /// Notes that the sensor ended after it ran this long; returns the pause before its next start.
    pub fn ended(&mut self, ran: Duration) -> Duration {
        if ran >= SENSOR_STABLE_TIME {
            self.ends = 0;
        }
        self.ends = self.ends.saturating_add(1);
        let factor = 1_u32.checked_shl(self.ends - 1).unwrap_or(u32::MAX);
        SENSOR_PAUSE_MIN.saturating_mul(factor).min(SENSOR_PAUSE_MAX)
    }

    /// Whether it ended so often in a row that its operator should look at it.
    pub fn is_crash_loop(&self) -> bool {
        self.ends >= SENSOR_CRASH_LOOP_ENDS
    }
}
