//! A message that its stream publishes again at times of its own.

use std::time::Duration;

use crate::name::Name;
use crate::time::Time;

/// Years in which a calendar must match, as in nats-server.
const YEARS_MAX: i64 = 5;

const MICROS_A_SECOND: u64 = 1_000_000;
const SECONDS_A_DAY: i64 = 86_400;

/// What a stream publishes of a stored message, and when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule {
    /// The times.
    pub times: ScheduleTimes,
    /// The subject to publish to.
    pub target: Name,
    /// The subject whose last message is published instead of the stored one.
    pub source: Option<Name>,
    /// Time to live of what is published.
    pub ttl: Option<ScheduleTtl>,
    /// What is published replaces the earlier messages of its subject.
    pub is_rollup: bool,
}

/// The time to live of a message in a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScheduleTtl {
    /// The message outlives the limit of age.
    Never,
    /// The message goes after this time.
    After(Duration),
}

/// The times at which a message is published.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScheduleTimes {
    /// Once.
    At(Time),
    /// Repeatedly, at an interval.
    Every(Duration),
    /// At every second that matches, in UTC.
    Calendar(Calendar),
}

impl ScheduleTimes {
    /// Whether the message is published more than once.
    #[must_use]
    pub fn is_repeating(&self) -> bool {
        !matches!(self, ScheduleTimes::At(_))
    }

    /// The time of the publish that follows the one at `last`. Times before `now` are skipped, but for a schedule of
    /// one time. `None` if a calendar does not match within five years.
    #[must_use]
    pub fn next(&self, last: Time, now: Time) -> Option<Time> {
        match self {
            ScheduleTimes::At(time) => Some(*time),
            ScheduleTimes::Every(interval) => {
                let next = rounded_to_second(last).after(*interval);
                Some(if next < now { rounded_to_second(now).after(*interval) } else { next })
            }
            ScheduleTimes::Calendar(calendar) => {
                let next = calendar.next(last)?;
                if next < now { calendar.next(rounded_to_second(now)) } else { Some(next) }
            }
        }
    }
}

fn rounded_to_second(time: Time) -> Time {
    Time(time.0.saturating_add(MICROS_A_SECOND / 2) / MICROS_A_SECOND * MICROS_A_SECOND)
}

/// A set of seconds of the calendar: the numbers that each field matches, as bits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Calendar {
    /// Seconds, from 0.
    pub seconds: u64,
    /// Minutes, from 0.
    pub minutes: u64,
    /// Hours, from 0.
    pub hours: u64,
    /// Days of the month, from 1.
    pub days: u64,
    /// Months, from 1.
    pub months: u64,
    /// Days of the week, 0 for Sunday.
    pub weekdays: u64,
    /// A day matches by either of its two fields; otherwise by both.
    pub is_either_day: bool,
}

impl Calendar {
    /// The first second after `last` that matches; `None` if none does within five years.
    fn next(&self, last: Time) -> Option<Time> {
        let first = i64::try_from(last.0 / MICROS_A_SECOND).ok()?.checked_add(1)?;
        let mut at = Date::of(first);
        let last_year = at.year + YEARS_MAX;
        // Each round sets the largest field that does not match to its next number, and those below it to their first.
        while at.year <= last_year {
            let next = if !has(self.months, at.month) {
                Date { month: at.month + 1, day: 1, hour: 0, minute: 0, second: 0, ..at }
            } else if !self.has_day(at) {
                Date { day: at.day + 1, hour: 0, minute: 0, second: 0, ..at }
            } else if !has(self.hours, at.hour) {
                Date { hour: at.hour + 1, minute: 0, second: 0, ..at }
            } else if !has(self.minutes, at.minute) {
                Date { minute: at.minute + 1, second: 0, ..at }
            } else if !has(self.seconds, at.second) {
                Date { second: at.second + 1, ..at }
            } else {
                return u64::try_from(at.seconds()).ok()?.checked_mul(MICROS_A_SECOND).map(Time);
            };
            let next = match next.month {
                13 => Date { year: next.year + 1, month: 1, ..next },
                _ => next,
            };
            at = Date::of(next.seconds());
        }
        None
    }

    fn has_day(&self, at: Date) -> bool {
        let (has_day, has_weekday) = (has(self.days, at.day), has(self.weekdays, at.weekday()));
        if self.is_either_day { has_day || has_weekday } else { has_day && has_weekday }
    }
}

fn has(bits: u64, number: u32) -> bool {
    bits >> number & 1 == 1
}

/// A second of the calendar, in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Date {
    year: i64,
    month: u32,
    day: u32,
    hour: u32,
    minute: u32,
    second: u32,
}

impl Date {
    /// The date of a second since 1970.
    fn of(seconds: i64) -> Date {
        let (year, month, day) = date_of_day(seconds.div_euclid(SECONDS_A_DAY));
        let second = u32::try_from(seconds.rem_euclid(SECONDS_A_DAY)).unwrap_or_default();
        Date { year, month, day, hour: second / 3600, minute: second / 60 % 60, second: second % 60 }
    }

    /// Seconds since 1970. Days beyond the end of the month, and longer times of day, carry over.
    fn seconds(self) -> i64 {
        let second_of_day = self.hour * 3600 + self.minute * 60 + self.second;
        self.days() * SECONDS_A_DAY + i64::from(second_of_day)
    }

    fn days(self) -> i64 {
        // Years begin in March, so that the leap day is the last one.
        let year = if self.month <= 2 { self.year - 1 } else { self.year };
        let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
        let month = i64::from((self.month + 9) % 12);
        let day_of_year = (153 * month + 2) / 5 + i64::from(self.day) - 1;
        era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
    }

    /// The day of the week, 0 for Sunday. 1970 began on a Thursday.
    fn weekday(self) -> u32 {
        u32::try_from((self.days() + 4).rem_euclid(7)).unwrap_or_default()
    }
}

/// Year, month and day of a day since 1970.
fn date_of_day(days: i64) -> (i64, u32, u32) {
    let days = days + 719_468;
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let number = |number: i64| u32::try_from(number).unwrap_or_default();
    let (year, month) = (year_of_era + era * 400, if month < 10 { month + 3 } else { month - 9 });
    (year + i64::from(month <= 2), number(month), number(day))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const EVERY: u64 = u64::MAX;

    fn time(seconds: u64) -> Time {
        Time(seconds * MICROS_A_SECOND)
    }

    #[test]
    fn an_interval_skips_what_is_over() {
        let every = ScheduleTimes::Every(Duration::from_secs(10));
        for (last, now, expected) in [(100, 105, 110), (100, 3_700, 3_710)] {
            assert_eq!(every.next(time(last), time(now)), Some(time(expected)), "{last} {now}");
        }
        assert_eq!(every.next(Time(1_600_000), Time(0)), Some(time(12)), "from the nearest second");
        let once = ScheduleTimes::At(time(5));
        assert_eq!(once.next(time(9), time(9)), Some(time(5)));
        assert!(every.is_repeating() && !once.is_repeating());
    }

    #[test]
    fn a_calendar_finds_the_next_second_that_matches() {
        let all = Calendar {
            seconds: 1,
            minutes: 1,
            hours: 1,
            days: EVERY,
            months: EVERY,
            weekdays: EVERY,
            is_either_day: false,
        };
        let leap_day = Calendar { days: 1 << 29, months: 1 << 2, ..all };
        let first_or_friday = Calendar { days: 1 << 1, weekdays: 1 << 5, is_either_day: true, ..all };
        // 2026-11-27 is a Friday.
        for (calendar, last, expected) in [
            (all, 1_795_807_210, Some(1_795_824_000)),
            (leap_day, 1_795_807_210, Some(1_835_395_200)),
            (first_or_friday, 1_795_807_210, Some(1_796_083_200)),
            (Calendar { days: 1 << 31, months: 1 << 2, ..all }, 1_795_807_210, None),
        ] {
            let next = ScheduleTimes::Calendar(calendar).next(time(last), time(last));
            assert_eq!(next, expected.map(time), "{calendar:?}");
        }
    }

    proptest! {
        #[test]
        fn a_date_is_that_of_its_second(seconds in 0i64..4_000_000_000) {
            let date = Date::of(seconds);
            prop_assert_eq!(date.seconds(), seconds);
            prop_assert!((1..=12).contains(&date.month) && (1..=31).contains(&date.day));
        }
    }
}
