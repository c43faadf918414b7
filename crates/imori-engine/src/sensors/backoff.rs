//! The pause before a sensor that has ended is started again. It grows with each end, and starts anew once the sensor
//! has run for a while. A sensor is never given up.

use std::time::Duration;

use crate::limits::{SENSOR_CRASH_LOOP_ENDS, SENSOR_PAUSE_MAX, SENSOR_PAUSE_MIN, SENSOR_STABLE_TIME};

/// How often a sensor ended in a row.
#[derive(Debug, Default)]
pub(super) struct Backoff {
    ends: u32,
}

impl Backoff {
    /// Notes that the sensor ended after it ran this long; returns the pause before its next start.
    pub(super) fn ended(&mut self, ran: Duration) -> Duration {
        if ran >= SENSOR_STABLE_TIME {
            self.ends = 0;
        }
        self.ends = self.ends.saturating_add(1);
        let factor = 1_u32.checked_shl(self.ends - 1).unwrap_or(u32::MAX);
        SENSOR_PAUSE_MIN.saturating_mul(factor).min(SENSOR_PAUSE_MAX)
    }

    /// Whether it ended so often in a row that its operator should look at it.
    pub(super) fn is_crash_loop(&self) -> bool {
        self.ends >= SENSOR_CRASH_LOOP_ENDS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pause_doubles_up_to_its_limit_and_starts_anew_after_a_stable_run() {
        let (crash, stable) = (Duration::from_millis(10), SENSOR_STABLE_TIME);
        let rows = [
            (crash, 1, false),
            (crash, 2, false),
            (crash, 4, true),
            (crash, 8, true),
            (stable, 1, false),
            (crash, 2, false),
            (crash, 4, true),
            (crash, 8, true),
            (crash, 16, true),
            (crash, 32, true),
            (crash, 64, true),
            (crash, 128, true),
            (crash, 256, true),
            (crash, 300, true),
            (crash, 300, true),
            (stable, 1, false),
        ];
        let mut backoff = Backoff::default();
        for (index, (ran, seconds, is_crash_loop)) in rows.into_iter().enumerate() {
            assert_eq!(backoff.ended(ran), Duration::from_secs(seconds), "end {index}");
            assert_eq!(backoff.is_crash_loop(), is_crash_loop, "end {index}");
        }
    }

    #[test]
    fn the_pause_of_a_sensor_that_never_recovers_stays_at_its_limit() {
        let mut backoff = Backoff { ends: u32::MAX };
        assert_eq!(backoff.ended(Duration::ZERO), SENSOR_PAUSE_MAX);
    }
}
