//! Rate limit for log lines: one reason is logged at once, and then at most once a minute.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::slots::unpoisoned;

/// Time for which a reason is not logged again.
const SILENCE: Duration = Duration::from_secs(60);

/// Reasons remembered; a disk has fewer different errors.
const REASONS_MAX: usize = 16;

/// Limits the rate of log lines that have the same reason.
#[derive(Debug, Default)]
pub(crate) struct RateLimitedLog(Mutex<Vec<Reason>>);

#[derive(Debug)]
struct Reason {
    text: String,
    said: Instant,
    /// Lines suppressed since the last one.
    unsaid: u64,
}

impl RateLimitedLog {
    /// `Some` if the reason may be logged now, with the number of lines suppressed since the last one.
    pub(crate) fn admit(&self, reason: &str, now: Instant) -> Option<u64> {
        let mut reasons = unpoisoned(self.0.lock());
        let Some(known) = reasons.iter_mut().find(|known| known.text == reason) else {
            reasons.truncate(REASONS_MAX - 1);
            reasons.insert(0, Reason { text: String::from(reason), said: now, unsaid: 0 });
            return Some(0);
        };
        if now.saturating_duration_since(known.said) < SILENCE {
            known.unsaid += 1;
            return None;
        }
        known.said = now;
        Some(std::mem::take(&mut known.unsaid))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_said_at_once_and_then_once_a_minute() {
        let (log, begin) = (RateLimitedLog::default(), Instant::now());
        for (seconds, reason, expected) in [
            (0, "full", Some(0)),
            (1, "full", None),
            (2, "broken", Some(0)),
            (59, "full", None),
            (60, "full", Some(2)),
            (61, "broken", None),
            (62, "broken", Some(1)),
            (119, "full", None),
            (500, "full", Some(1)),
        ] {
            let now = begin + Duration::from_secs(seconds);
            assert_eq!(log.admit(reason, now), expected, "{reason} at {seconds} s");
        }
        for number in 0..2 * REASONS_MAX {
            assert_eq!(log.admit(&number.to_string(), begin), Some(0));
        }
    }
}
