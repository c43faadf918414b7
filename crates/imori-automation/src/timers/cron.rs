//! Cron timers. They fire at the same moments as APScheduler 3's, which StackStorm uses.
//!
//! The search goes from the year to the second. A field without a value from where it stands carries into the field
//! before it. Carries add to the time in UTC and skipped hours count as if they existed, also where that makes
//! APScheduler pass over a firing on the day after clocks change.

use jiff::civil::DateTime;

use super::field::Field;
use super::place::Place;
use super::zone::Zone;
use crate::limits::CRON_STEPS_MAX;
use crate::times::Timestamp;
use crate::value::{Map, Value};

/// The fields of a cron timer and its time zone.
#[derive(Debug, Clone, PartialEq)]
pub struct Cron {
    fields: Box<[Field; 8]>,
    zone: Zone,
}

/// A time of the zone. `is_second` tells which of two equal ones it is where clocks are set back.
#[derive(Debug, Clone, Copy)]
struct Local {
    datetime: DateTime,
    is_second: bool,
}

impl Cron {
    /// The names of the fields.
    pub(super) fn parameters() -> [&'static str; 8] {
        Place::ALL.map(Place::name)
    }

    /// Reads the fields. One that is absent is `*`, or its least value where only less significant ones follow.
    pub(super) fn read(parameters: &Map, zone: Zone) -> Result<Cron, String> {
        let given = Place::ALL.map(|place| parameters.get(place.name()).filter(|value| !value.is_null()));
        // Where no field is given, none is less significant than the last one.
        let last_given = given.iter().rposition(Option::is_some).unwrap_or(given.len());
        let mut fields = Vec::with_capacity(given.len());
        for (index, (place, value)) in Place::ALL.into_iter().zip(given).enumerate() {
            fields.push(match value {
                None if index > last_given => Field::default_of(place),
                None => Field::any(place),
                Some(Value::String(text)) => Field::read(place, text)?,
                Some(Value::Int(number)) => Field::read(place, &number.to_string())?,
                Some(other) => {
                    let name = place.name();
                    return Err(format!("`{name}` is {other}; use a whole number or a text as \"*/5\""));
                }
            });
        }
        let fields: Box<[Field; 8]> =
            fields.into_boxed_slice().try_into().expect("there is a field for each place");
        Ok(Cron { fields, zone })
    }

    /// The first firing at `start` or later.
    pub(super) fn next_from(&self, start: Timestamp) -> Option<Timestamp> {
        let whole = start.to_jiff().as_second() + i64::from(start.to_jiff().subsec_nanosecond() > 0);
        let mut at = self.local(jiff::Timestamp::from_second(whole).ok()?);
        let mut index = 0;
        for _ in 0..CRON_STEPS_MAX {
            let Some(field) = self.fields.get(index) else {
                return self.zone.instant(at.datetime, at.is_second).and_then(Timestamp::from_jiff);
            };
            let place = field.place();
            let current = place.value(at.datetime);
            match field.next_value(at.datetime) {
                None => (at, index) = self.carry(at, index.checked_sub(1)?)?,
                Some(next) if next <= current => index += 1,
                Some(next) if place.is_real() => {
                    at.datetime = with_minimum_after(at.datetime, place, next)?;
                    index += 1;
                }
                Some(_) => (at, index) = self.carry(at, index)?,
            }
        }
        None
    }

    /// Adds one to the field at `index`, or to one before it that is not at its end, and gives that one's index.
    fn carry(&self, at: Local, index: usize) -> Option<(Local, usize)> {
        let places = Place::ALL.get(..=index)?;
        let is_free =
            |place: &Place| place.is_real() && place.value(at.datetime) < place.maximum(at.datetime);
        let index = places.iter().rposition(is_free)?;
        let place = *places.get(index)?;
        let target = with_minimum_after(at.datetime, place, place.value(at.datetime) + 1)?;
        let seconds = target.duration_since(at.datetime);
        let moment = self.zone.instant(at.datetime, at.is_second)?.checked_add(seconds).ok()?;
        Some((self.local(moment), index))
    }

    fn local(&self, moment: jiff::Timestamp) -> Local {
        let (datetime, is_second) = self.zone.local(moment);
        Local { datetime, is_second }
    }
}

/// The time with `value` at `place`, and the least values after it.
fn with_minimum_after(at: DateTime, place: Place, value: i16) -> Option<DateTime> {
    let kept = |other: Place, now: i16| match other.cmp(&place) {
        std::cmp::Ordering::Less => now,
        std::cmp::Ordering::Equal => value,
        std::cmp::Ordering::Greater => other.minimum(),
    };
    let byte = |other: Place, now: i8| i8::try_from(kept(other, i16::from(now))).ok();
    let (month, day) = (byte(Place::Month, at.month())?, byte(Place::Day, at.day())?);
    let (hour, minute) = (byte(Place::Hour, at.hour())?, byte(Place::Minute, at.minute())?);
    let second = byte(Place::Second, at.second())?;
    DateTime::new(kept(Place::Year, at.year()), month, day, hour, minute, second, 0).ok()
}

#[cfg(test)]
mod tests {
    use super::super::timer::{Timer, TimerError};
    use super::*;

    fn read(parameters: &str) -> Result<Timer, TimerError> {
        let parameters = Value::from_json(parameters.as_bytes()).unwrap();
        Timer::read("core.st2.CronTimer", parameters.as_map().unwrap())
    }

    fn firings(parameters: &str, now: &str, count: usize) -> Vec<String> {
        let timer = read(parameters).unwrap();
        let now = now.parse().unwrap();
        let first = timer.next_after(None, now);
        let moments = std::iter::successors(first, |previous| timer.next_after(Some(*previous), now));
        moments.take(count).map(|moment| moment.to_string().replace(":00.000000Z", "Z")).collect()
    }

    /// Rows, as JSON, of parameters, the microsecond of `now`, and the seconds of the next firings in APScheduler 3.11.3 with the
    /// tz database 2026f; `null` stands for an error, and in a list for the end. All are before 2025, when rules of
    /// time zones are known.
    const APSCHEDULER: &str = include_str!("../../tests/cron.txt");

    #[test]
    fn cron_fires_when_that_of_apscheduler_does() {
        for line in APSCHEDULER.lines() {
            let row = Value::from_json(line.as_bytes()).unwrap();
            let [Value::Map(parameters), Value::Int(now), expected] = row.as_list().unwrap() else {
                panic!("{line}")
            };
            let timer = Timer::read("core.st2.CronTimer", parameters);
            let Some(expected) = expected.as_list() else {
                assert!(timer.is_err(), "{line}");
                continue;
            };
            let (timer, mut previous) = (timer.unwrap(), None);
            for moment in expected {
                let next = timer.next_after(previous, Timestamp::from_micros(*now));
                assert_eq!(next, moment.as_int().map(Timestamp::from_seconds), "{line}");
                previous = next;
            }
        }
    }

    #[test]
    fn skipped_hour_counts_as_if_it_existed() {
        let daily = r#"{"hour":2,"minute":30,"timezone":"America/New_York"}"#;
        let expected = ["2021-03-13T07:30Z", "2021-03-14T07:30Z", "2021-03-15T06:30Z"];
        assert_eq!(firings(daily, "2021-03-13T00:00:00Z", 3), expected);
    }

    #[test]
    fn repeated_hour_fires_twice() {
        let daily = r#"{"hour":1,"minute":30,"timezone":"America/New_York"}"#;
        let expected = ["2021-11-07T05:30Z", "2021-11-07T06:30Z", "2021-11-08T06:30Z"];
        assert_eq!(firings(daily, "2021-11-07T00:00:00Z", 3), expected);
    }

    #[test]
    fn midnight_after_a_skipped_hour_is_passed_over_as_in_apscheduler() {
        let daily = r#"{"hour":0,"timezone":"America/New_York"}"#;
        assert_eq!(firings(daily, "2021-03-14T00:00:00Z", 2), ["2021-03-14T05:00Z", "2021-03-16T04:00Z"]);
    }

    #[test]
    fn timer_without_fields_fires_every_second() {
        assert_eq!(read("{}").unwrap(), read(r#"{"second":"*"}"#).unwrap());
    }

    #[test]
    fn impossible_date_ends() {
        for parameters in [
            r#"{"month":2,"day":30}"#,
            r#"{"month":"jan-nov","week":53,"day_of_week":"mon"}"#,
            r#"{"month":"2-10","week":1,"second":"*"}"#,
            r#"{"year":2020}"#,
            r#"{"year":"9999","month":12,"day":31,"hour":23}"#,
        ] {
            let expected: &[&str] = &[];
            assert_eq!(firings(parameters, "2024-01-01T00:00:00Z", 1), expected, "{parameters}");
        }
    }

    #[test]
    fn wrong_fields_are_refused_with_what_to_do() {
        let long = format!(r#"{{"minute":"{}"}}"#, "1,".repeat(200));
        let rows = [
            (r#"{"minute":"60"}"#, "`minute` has `60`; use values from 0 to 59"),
            (r#"{"minute":-1}"#, "`minute` has `-1`; use a list of numbers, ranges `a-b`, and steps `*/n`"),
            (r#"{"minute":"*/60"}"#, "`minute` has `*/60`; the step 60 has to be from 1 to 59"),
            (r#"{"minute":"*/0"}"#, "`minute` has `*/0`; the step 0 has to be from 1 to 59"),
            (r#"{"minute":"5-3"}"#, "`minute` has `5-3`; write the smaller value of a range first"),
            (r#"{"minute":1.5}"#, "`minute` is 1.5; use a whole number or a text as \"*/5\""),
            (r#"{"minute":""}"#, "`minute` has ``; use a list of numbers, ranges `a-b`, and steps `*/n`"),
            (
                r#"{"day_of_week":"monday"}"#,
                "`day_of_week` has `monday`; use one of `mon`, `tue`, `wed`, `thu`, `fri`, `sat`, `sun`",
            ),
            (
                r#"{"day_of_week":"sat-mon"}"#,
                "`day_of_week` has `sat-mon`; write the smaller value of a range first",
            ),
            (&long, "`minute` is longer than 256 bytes; use ranges and steps"),
        ];
        for (parameters, message) in rows {
            assert_eq!(read(parameters).unwrap_err().to_string(), message);
        }
    }
}
