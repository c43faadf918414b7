//! `to_human_time_from_seconds`: a duration for people.

use minijinja::value::Value;
use minijinja::{Error, State};

use crate::python::arguments::Arguments;
use crate::python::values::{Number, failure, float_text};

const DAY_SECONDS: i64 = 86_400;

/// Days from the first day of the year 1 to the last one of the year 9999, which Python's dates end with.
const DAYS_MAX: i64 = 3_652_058;

/// `to_human_time_from_seconds`: such as `1h3m5s`. StackStorm counts a date from the year 1 on, so the years have
/// leap days, and a month counts as its days.
pub(crate) fn to_human_time_from_seconds(_: &mut State, arguments: Arguments) -> Result<Value, Error> {
    let [seconds] = arguments.bind(["seconds"], 1)?;
    let (seconds, written) = match Number::of(&seconds.unwrap_or_default()) {
        Some(Number::Int(seconds)) => (seconds as f64, seconds.to_string()),
        Some(Number::Float(seconds)) => (seconds, float_text(seconds)),
        None => return Err(failure("`to_human_time_from_seconds` needs a number of seconds")),
    };
    if seconds == 0.0 {
        return Ok(Value::from("0s"));
    }
    if seconds < 1.0 {
        return Ok(Value::from(format!("{written}\u{3bc}s")));
    }
    if !seconds.is_finite() || seconds >= (DAYS_MAX + 1) as f64 * DAY_SECONDS as f64 {
        return Err(failure("the duration is too long"));
    }
    let seconds = seconds.round_ties_even() as i64;
    let (days, rest) = (seconds / DAY_SECONDS, seconds % DAY_SECONDS);
    let (years, month_day) = date(days);
    let parts =
        [(years, "y"), (month_day, "d"), (rest / 3600, "h"), (rest % 3600 / 60, "m"), (rest % 60, "s")];
    let first = parts.iter().position(|(count, _)| *count > 0).unwrap_or(parts.len() - 1);
    Ok(Value::from(
        parts.iter().skip(first).map(|(count, unit)| format!("{count}{unit}")).collect::<String>(),
    ))
}

/// Years since the year 1 and days since the first of the month, `days` days after the first day of the year 1.
fn date(days: i64) -> (i64, i64) {
    let date = jiff::civil::date(1, 1, 1).saturating_add(jiff::Span::new().days(days));
    (i64::from(date.year()) - 1, i64::from(date.day()) - 1)
}
