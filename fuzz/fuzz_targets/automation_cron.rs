//! Any fields of cron, in any time zone, from any moment on.
//!
//! Input: two bytes of the time since 1970, then the fields and the time zone, a line each; an empty one is absent.
//! Held: nothing panics, and a search ends; firings are whole seconds and follow each other; what is made up for lies
//! between the last firing and now.

use imori_automation::limits::MISSED_FIRINGS_MAX;
use imori_automation::timers::{Missed, Timer};
use imori_automation::times::Timestamp;
use imori_automation::value::Map;

use crate::planted::fail_if_planted;

const NAMES: [&str; 9] =
    ["day", "hour", "timezone", "minute", "month", "day_of_week", "week", "second", "year"];

/// Runs one input.
pub(crate) fn test_one_input(data: &[u8]) {
    let Some((time, text)) = data.split_first_chunk() else { return };
    // To the year 2106, at any time of day.
    let now = Timestamp::from_seconds(i64::from(u16::from_le_bytes(*time)) * 65_537);
    let text = String::from_utf8_lossy(text);
    let parameters: Map =
        NAMES.into_iter().zip(text.split('\n')).filter(|(_, value)| !value.is_empty()).collect();
    let timer = match Timer::read("core.st2.CronTimer", &parameters) {
        Ok(timer) => timer,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    planted(&parameters);
    let mut previous = None;
    for _ in 0..5 {
        let Some(next) = timer.next_after(previous, now) else { break };
        assert!(previous.map_or(now <= next, |previous| previous < next), "{next} is behind {previous:?}");
        assert_eq!(next.micros() % 1_000_000, 0);
        previous = Some(next);
    }
    let last_fired = Timestamp::from_seconds(now.seconds() - now.seconds() % 1_100);
    for missed in [Missed::Once, Missed::All] {
        let firings = timer.firings(Some(last_fired), now, missed);
        assert!(firings.len() <= MISSED_FIRINGS_MAX);
        assert!(firings.is_sorted() && firings.iter().all(|moment| last_fired < *moment && *moment <= now));
    }
}

/// Does nothing unless a fault is planted: then days in steps are one too many.
fn planted(parameters: &Map) {
    let day = parameters.get("day").and_then(|day| day.as_str());
    let is_found = day.is_some_and(|day| day.contains('/'));
    fail_if_planted(is_found);
}
