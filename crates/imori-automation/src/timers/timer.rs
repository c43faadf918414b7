//! A timer, read from the parameters of its trigger.

use std::fmt;

use super::cron::Cron;
use super::zone::Zone;
use crate::times::{Timestamp, WrittenTime};
use crate::value::{Map, Value};

/// When a trigger fires.
#[derive(Debug, Clone, PartialEq)]
pub enum Timer {
    /// `core.st2.IntervalTimer`: again and again after so long.
    Interval(Interval),
    /// `core.st2.DateTimer`: once.
    Date(Timestamp),
    /// `core.st2.CronTimer`: whenever date and time match its fields.
    Cron(Cron),
}

/// The time between two firings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interval {
    micros: i64,
}

/// Why parameters make no timer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimerError(String);

const INTERVAL: &str = "core.st2.IntervalTimer";
const DATE: &str = "core.st2.DateTimer";
const CRON: &str = "core.st2.CronTimer";

const UNITS: [(&str, i64); 5] =
    [("weeks", 604_800), ("days", 86_400), ("hours", 3_600), ("minutes", 60), ("seconds", 1)];

impl Timer {
    /// The types of triggers that are timers.
    pub const TYPES: [&'static str; 3] = [INTERVAL, DATE, CRON];

    /// Reads the parameters of a trigger of one of `TYPES`. A timer without `timezone` is in UTC; one of the bundled
    /// tz database is known under its name there. A parameter that is `null` counts as absent.
    ///
    /// # Errors
    /// The type is no timer, or a parameter is unknown, absent or wrong.
    pub fn read(trigger_type: &str, parameters: &Map) -> Result<Timer, TimerError> {
        match trigger_type {
            INTERVAL => {
                known(trigger_type, parameters, &["timezone", "unit", "delta"])?;
                zone(parameters)?;
                Interval::read(parameters).map(Timer::Interval)
            }
            DATE => {
                known(trigger_type, parameters, &["timezone", "date"])?;
                date(parameters, &zone(parameters)?).map(Timer::Date)
            }
            CRON => {
                let fields = Cron::parameters();
                known(trigger_type, parameters, &[&["timezone"], &fields[..]].concat())?;
                Cron::read(parameters, zone(parameters)?).map(Timer::Cron).map_err(TimerError)
            }
            _ => {
                let known = Timer::TYPES.map(|name| format!("`{name}`")).join(", ");
                Err(TimerError(format!("trigger type `{trigger_type}` is no timer; use one of {known}")))
            }
        }
    }

    /// The next firing. `previous` is the last one, or a moment since when the timer is known; the result is later, and
    /// maybe not later than `now`. Without `previous` the timer is new: an interval begins, a date that is over never
    /// fires, and cron may fire at once. `None` means that it never fires again.
    pub fn next_after(&self, previous: Option<Timestamp>, now: Timestamp) -> Option<Timestamp> {
        match self {
            Timer::Interval(interval) => previous.unwrap_or(now).plus_micros(interval.micros),
            Timer::Date(date) => {
                let is_ahead = previous.map_or(*date >= now, |previous| previous < *date);
                is_ahead.then_some(*date)
            }
            Timer::Cron(cron) => {
                cron.next_from(previous.map_or(Some(now), |previous| previous.plus_micros(1))?)
            }
        }
    }

    /// The payload of the trigger when the timer fires at `at`. `schedule` is always `null`, as in StackStorm, which
    /// reads it from a parameter that no timer has.
    pub fn payload(&self, at: Timestamp) -> Value {
        let entries = [("executed_at", Value::from(at.to_python())), ("schedule", Value::Null)];
        Value::Map(entries.into_iter().collect())
    }
}

impl Interval {
    /// Microseconds between two firings.
    pub fn micros(self) -> i64 {
        self.micros
    }

    fn read(parameters: &Map) -> Result<Interval, TimerError> {
        let unit = required(parameters, "unit")?;
        let seconds = UNITS.iter().find(|(name, _)| unit.as_str() == Some(name)).map(|(_, seconds)| *seconds);
        let seconds = seconds.ok_or_else(|| {
            TimerError(format!("`unit` is {unit}; use one of `weeks`, `days`, `hours`, `minutes`, `seconds`"))
        })?;
        let delta = required(parameters, "delta")?;
        let delta_seconds = match delta.as_int() {
            // APScheduler takes an interval of zero for a second.
            Some(0) => Some(1),
            Some(delta) if delta > 0 => delta.checked_mul(seconds),
            _ => None,
        };
        let micros = delta_seconds.and_then(|seconds| seconds.checked_mul(1_000_000));
        let micros = micros.ok_or_else(|| {
            TimerError(format!(
                "`delta` is {delta}; use a whole number of {unit} from 1 on that is not too large"
            ))
        })?;
        Ok(Interval { micros })
    }

    /// The latest moment of the series that begins at `base`, after `base` and up to `until`.
    pub(super) fn latest(self, base: Timestamp, until: Timestamp) -> Option<Timestamp> {
        let elapsed = until.micros() - base.micros();
        if elapsed < self.micros {
            return None;
        }
        base.plus_micros(elapsed - elapsed % self.micros)
    }
}

/// A date without an offset is in the time zone of the timer.
fn date(parameters: &Map, zone: &Zone) -> Result<Timestamp, TimerError> {
    let value = required(parameters, "date")?;
    let wrong = || TimerError(format!("`date` is {value}; write it as \"2014-12-31 23:59:59\""));
    let text = value.as_str().ok_or_else(wrong)?;
    let written: WrittenTime = text.trim().parse().map_err(|_| wrong())?;
    let moment = match written.offset {
        Some(offset) => offset.to_timestamp(written.datetime).ok(),
        None => zone.instant(written.datetime, false),
    };
    moment.and_then(Timestamp::from_jiff).ok_or_else(wrong)
}

fn zone(parameters: &Map) -> Result<Zone, TimerError> {
    match parameters.get("timezone") {
        None | Some(Value::Null) => Ok(Zone::UTC),
        Some(value) => value.as_str().and_then(Zone::named).ok_or_else(|| {
            TimerError(format!("`timezone` is {value}; use a name of the tz database, as \"Europe/Berlin\""))
        }),
    }
}

fn required<'a>(parameters: &'a Map, name: &str) -> Result<&'a Value, TimerError> {
    let value = parameters.get(name).filter(|value| !value.is_null());
    value.ok_or_else(|| TimerError(format!("`{name}` is missing; the timer needs it")))
}

fn known(trigger_type: &str, parameters: &Map, names: &[&str]) -> Result<(), TimerError> {
    match parameters.iter().find(|(name, _)| !names.contains(name)) {
        None => Ok(()),
        Some((name, _)) => {
            let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
            let names = names.join(", ");
            Err(TimerError(format!("parameter `{name}` of `{trigger_type}` is unknown; use one of {names}")))
        }
    }
}

impl fmt::Display for TimerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for TimerError {}
