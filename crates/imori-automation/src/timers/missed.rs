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
