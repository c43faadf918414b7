//! Firings that came due while the engine was down.

use super::timer::Timer;
use crate::limits::MISSED_FIRINGS_MAX;
use crate::times::Timestamp;

/// The treatment of missed firings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Missed {
    /// They are skipped, as in StackStorm.
    #[default]
    Skip,
    /// The timer fires once, for the latest of them.
    Once,
    /// The timer fires for each of them, for the latest `MISSED_FIRINGS_MAX` if there are more.
    All,
}

impl Timer {
    /// The missed firings to make up for: those after `last_fired` and up to `now` that `missed` asks for, oldest
    /// first. A timer that never fired missed none.
    pub fn firings(&self, last_fired: Option<Timestamp>, now: Timestamp, missed: Missed) -> Vec<Timestamp> {
        let Some(last_fired) = last_fired else { return Vec::new() };
        match missed {
            Missed::Skip => Vec::new(),
            Missed::Once => self.latest(last_fired, now).into_iter().collect(),
            Missed::All => self.all(last_fired, now),
        }
    }

    /// The first firing after `now`, in the series that goes on from `last_fired`.
    pub(super) fn next_from(&self, last_fired: Option<Timestamp>, now: Timestamp) -> Option<Timestamp> {
        let Some(last_fired) = last_fired else { return self.next_after(None, now) };
        let base = match self {
            Timer::Interval(_) => self.latest(last_fired, now).unwrap_or(last_fired),
            Timer::Date(_) | Timer::Cron(_) => last_fired.max(now),
        };
        self.next_after(Some(base), now)
    }

    fn all(&self, last_fired: Timestamp, now: Timestamp) -> Vec<Timestamp> {
        let mut moments = Vec::new();
        let mut base = last_fired;
        while let Some(moment) = self.next_after(Some(base), now).filter(|moment| *moment <= now) {
            if moments.len() == MISSED_FIRINGS_MAX {
                return self.latest_many(last_fired, now);
            }
            moments.push(moment);
            base = moment;
        }
        moments
    }

    fn latest_many(&self, last_fired: Timestamp, now: Timestamp) -> Vec<Timestamp> {
        let mut moments = Vec::new();
        let mut until = Some(now);
        while let Some(moment) = until.and_then(|until| self.latest(last_fired, until)) {
            moments.push(moment);
            if moments.len() == MISSED_FIRINGS_MAX {
                break;
            }
            until = moment.plus_micros(-1);
        }
        moments.reverse();
        moments
    }

    /// The latest firing after `after` and up to `until`.
    fn latest(&self, after: Timestamp, until: Timestamp) -> Option<Timestamp> {
        if let Timer::Interval(interval) = self {
            return interval.latest(after, until);
        }
        let first_after = |moment| self.next_after(Some(moment), until).filter(|next| *next <= until);
        let mut latest = first_after(after)?;
        // No firing lies between `bound` and `until`, so that halving what is between finds the latest one without
        // visiting all, which may be one a second for a year.
        let mut bound = until;
        while latest < bound {
            let half = (bound.micros() - latest.micros()) / 2;
            let Some(middle) = latest.plus_micros(half) else { break };
            match first_after(middle) {
                Some(next) => latest = next,
                None if middle == latest => break,
                None => bound = middle,
            }
        }
        Some(latest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::{Map, Value};

    fn timer(kind: &str, parameters: &str) -> Timer {
        let parameters = Value::from_json(parameters.as_bytes()).unwrap();
        Timer::read(kind, parameters.as_map().unwrap_or(&Map::new())).unwrap()
    }

    fn check(timer: &Timer, last_fired: &str, now: &str, missed: Missed, expected: &[&str]) {
        let moments = timer.firings(Some(last_fired.parse().unwrap()), now.parse().unwrap(), missed);
        let shown: Vec<String> = moments.iter().map(ToString::to_string).collect();
        let expected: Vec<String> =
            expected.iter().map(|text| text.parse::<Timestamp>().unwrap().to_string()).collect();
        assert_eq!(shown, expected, "{timer:?} {missed:?}");
    }

    #[test]
    fn hourly_timer_makes_up_for_three_hours() {
        let hourly = timer("core.st2.CronTimer", r#"{"minute":0,"timezone":"Europe/Berlin"}"#);
        let (last_fired, now) = ("2024-05-01T10:00:00Z", "2024-05-01T13:30:00Z");
        check(&hourly, last_fired, now, Missed::Skip, &[]);
        check(&hourly, last_fired, now, Missed::Once, &["2024-05-01T13:00:00Z"]);
        let all = ["2024-05-01T11:00:00Z", "2024-05-01T12:00:00Z", "2024-05-01T13:00:00Z"];
        check(&hourly, last_fired, now, Missed::All, &all);
        check(&hourly, last_fired, "2024-05-01T10:59:59.999999Z", Missed::All, &[]);
        check(&hourly, last_fired, "2024-05-01T11:00:00Z", Missed::Once, &["2024-05-01T11:00:00Z"]);
    }

    #[test]
    fn date_is_made_up_for_once() {
        let date = timer("core.st2.DateTimer", r#"{"date":"2024-05-01T12:00:00Z"}"#);
        check(&date, "2024-05-01T10:00:00Z", "2024-05-02", Missed::Once, &["2024-05-01T12:00:00Z"]);
        check(&date, "2024-05-01T10:00:00Z", "2024-05-02", Missed::All, &["2024-05-01T12:00:00Z"]);
        check(&date, "2024-05-01T12:00:00Z", "2024-05-02", Missed::All, &[]);
    }

    #[test]
    fn of_too_many_the_latest_are_made_up_for() {
        let seconds = timer("core.st2.CronTimer", r#"{"second":"*"}"#);
        let interval = timer("core.st2.IntervalTimer", r#"{"unit":"seconds","delta":1}"#);
        for timer in [seconds, interval] {
            let (last_fired, now) = (Timestamp::from_seconds(0), Timestamp::from_micros(86_400_500_000));
            let moments = timer.firings(Some(last_fired), now, Missed::All);
            let expected: Vec<Timestamp> = (86_400 - 999..=86_400).map(Timestamp::from_seconds).collect();
            assert_eq!(moments, expected);
        }
    }

    #[test]
    fn interval_keeps_its_phase() {
        let interval = timer("core.st2.IntervalTimer", r#"{"unit":"minutes","delta":7}"#);
        let (last_fired, now) = ("2024-05-01T10:00:00.5Z", "2024-05-01T10:15:00Z");
        check(&interval, last_fired, now, Missed::Once, &["2024-05-01T10:14:00.5Z"]);
        check(&interval, last_fired, now, Missed::All, &["2024-05-01T10:07:00.5Z", "2024-05-01T10:14:00.5Z"]);
        let next = interval.next_from(Some(last_fired.parse().unwrap()), now.parse().unwrap());
        assert_eq!(next.unwrap().to_string(), "2024-05-01T10:21:00.500000Z");
    }

    #[test]
    fn timer_that_never_fired_missed_nothing() {
        let seconds = timer("core.st2.CronTimer", r#"{"second":"*"}"#);
        assert_eq!(seconds.firings(None, Timestamp::MAX, Missed::All), []);
    }
}
