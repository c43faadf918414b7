//! Schedules of messages: a time, an interval, or a pattern of cron with seconds.
//!
//! Patterns have the dialect of nats-server. Timers of the automation have APScheduler's and a
//! parser of their own: the dialects differ in signs, names, steps, empty items, the first day of
//! the week, and in what a day of the month means beside one of the week. APScheduler's has weeks,
//! years and time zones besides.

use imori_core::message::{Calendar, ScheduleTimes};
use imori_streams::duration::Nanos;
use imori_streams::time::Timestamp;
use imori_streams::units::since;

/// The shortest interval, as in nats-server.
const INTERVAL_MIN: Nanos = Nanos::from_secs(1);

/// Parses the value of `Nats-Schedule`: `@at <RFC 3339>`, `@every <duration>`, `@daily` and the like, or six fields of
/// cron in UTC, the first for seconds. `None` for any other text.
pub fn parse(text: &str) -> Option<ScheduleTimes> {
    if let Some(time) = text.strip_prefix("@at ") {
        return Timestamp::parse(time).map(|time| ScheduleTimes::At(since(time)));
    }
    if let Some(interval) = text.strip_prefix("@every ") {
        let interval = Nanos::parse(interval).filter(|interval| *interval >= INTERVAL_MIN);
        return interval.map(|interval| ScheduleTimes::Every(interval.duration()));
    }
    let text = match text {
        "@yearly" | "@annually" => "0 0 0 1 1 *",
        "@monthly" => "0 0 0 1 * *",
        "@weekly" => "0 0 0 * * 0",
        "@daily" | "@midnight" => "0 0 0 * * *",
        "@hourly" => "0 0 * * * *",
        _ => text,
    };
    cron(text).map(ScheduleTimes::Calendar)
}

/// The numbers that a field matches.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Field {
    bits: u64,
    /// A part of the field is `*`.
    has_star: bool,
}

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const WEEKDAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

fn cron(text: &str) -> Option<Calendar> {
    let mut parts = text.split_whitespace();
    let mut field = |min, max, names: &[&str]| Field::parse(parts.next()?, min, max, names);
    let (seconds, minutes, hours) = (field(0, 59, &[])?, field(0, 59, &[])?, field(0, 23, &[])?);
    let (days, months, weekdays) = (field(1, 31, &[])?, field(1, 12, &MONTHS)?, field(0, 6, &WEEKDAYS)?);
    let calendar = Calendar {
        seconds: seconds.bits,
        minutes: minutes.bits,
        hours: hours.bits,
        days: days.bits,
        months: months.bits,
        weekdays: weekdays.bits,
        is_either_day: !days.has_star && !weekdays.has_star,
    };
    parts.next().is_none().then_some(calendar)
}

impl Field {
    /// Parses parts separated by commas: `*`, a number, a range, each with `/` and a step.
    fn parse(text: &str, min: u32, max: u32, names: &[&str]) -> Option<Self> {
        let mut field = Self::default();
        for part in text.split(',').filter(|part| !part.is_empty()) {
            let (range, step) = match part.split_once('/') {
                None => (part, None),
                Some((range, step)) => (range, Some(number(step)?)),
            };
            let (first, last) = match range.split_once('-') {
                None => (range, None),
                Some((first, last)) => (first, Some(last)),
            };
            let is_star = matches!(first, "*" | "?");
            let start = if is_star { min } else { named(first, min, names)? };
            let end = match last {
                _ if is_star => max,
                Some(last) => named(last, min, names)?,
                None if step.is_some() => max,
                None => start,
            };
            let step = step.unwrap_or(1);
            if start < min || end > max || start > end || step == 0 {
                return None;
            }
            let numbers = (start..=end).step_by(usize::try_from(step).ok()?);
            field.bits |= numbers.fold(0, |bits, number| bits | 1 << number);
            field.has_star |= is_star && step == 1;
        }
        // A field without a number would be looked for second by second.
        (field.bits != 0).then_some(field)
    }
}

/// Reads a number, or one of the names that stand for the numbers from `min` on.
fn named(text: &str, min: u32, names: &[&str]) -> Option<u32> {
    match names.iter().position(|name| name.eq_ignore_ascii_case(text)) {
        Some(at) => u32::try_from(at).ok().map(|at| min + at),
        None => number(text),
    }
}

fn number(text: &str) -> Option<u32> {
    // A number that does not fit is out of every range too.
    text.strip_prefix('+').unwrap_or(text).parse().ok().filter(|number| *number <= 1_000_000)
}

#[cfg(test)]
mod tests {
    use imori_core::time::Time;

    use super::*;

    fn time(text: &str) -> Time {
        since(Timestamp::parse(text).unwrap())
    }

    #[test]
    fn schedules_follow_their_pattern() {
        // A Friday.
        let last = "2026-11-27T19:20:10.6Z";
        for (pattern, last, expected) in [
            ("@at 2030-01-02T03:04:05Z", last, "2030-01-02T03:04:05Z"),
            ("@at 2020-01-02T03:04:05Z", last, "2020-01-02T03:04:05Z"),
            ("@every 1s", last, "2026-11-27T19:20:12Z"),
            ("@every 1h30m", last, "2026-11-27T20:50:11Z"),
            ("* * * * * *", last, "2026-11-27T19:20:11Z"),
            ("@hourly", last, "2026-11-27T20:00:00Z"),
            ("@daily", last, "2026-11-28T00:00:00Z"),
            ("@midnight", last, "2026-11-28T00:00:00Z"),
            ("@weekly", last, "2026-11-29T00:00:00Z"),
            ("@monthly", last, "2026-12-01T00:00:00Z"),
            ("@yearly", last, "2027-01-01T00:00:00Z"),
            ("*/15 * * * * *", last, "2026-11-27T19:20:15Z"),
            ("5 10-20/5 * * * *", last, "2026-11-27T20:10:05Z"),
            ("0 0 12 * jan-mar mon", last, "2027-01-04T12:00:00Z"),
            ("0 0 12 1 * FRI", last, "2026-12-01T12:00:00Z"),
            ("0 0 12 ? * fri", last, "2026-12-04T12:00:00Z"),
            ("0 0 0 29 2 *", last, "2028-02-29T00:00:00Z"),
            ("0 30/15 * * * *", last, "2026-11-27T19:30:00Z"),
            ("59 59 23 31 12 *", "2026-12-31T23:59:59Z", "2027-12-31T23:59:59Z"),
            ("1,3,,5 0 0 * * *", "2026-12-31T23:59:59Z", "2027-01-01T00:00:01Z"),
        ] {
            let next = parse(pattern).and_then(|schedule| schedule.next(time(last), time(last)));
            assert_eq!(next, Some(time(expected)), "{pattern}");
        }
    }

    #[test]
    fn missed_times_are_skipped() {
        for (pattern, last, now, expected) in [
            ("@every 10s", "2026-01-01T00:00:00Z", "2026-01-01T00:00:05Z", "2026-01-01T00:00:10Z"),
            ("@every 10s", "2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z", "2026-01-01T01:00:10Z"),
            ("0 * * * * *", "2026-01-01T00:00:00Z", "2026-01-01T01:00:30Z", "2026-01-01T01:01:00Z"),
        ] {
            let next = parse(pattern).and_then(|schedule| schedule.next(time(last), time(now)));
            assert_eq!(next, Some(time(expected)), "{pattern} at {now}");
        }
    }

    #[test]
    fn other_texts_are_no_schedules() {
        for pattern in [
            "",
            "@at",
            "@at soon",
            "@at  2030-01-02T03:04:05Z",
            "@every 999ms",
            "@every 5",
            "@never",
            "* * * * *",
            "* * * * * * *",
            "60 * * * * *",
            "* * * 0 * *",
            "* * * * 13 *",
            "* * * * * 7",
            "* * * * foo *",
            "5-1 * * * * *",
            "1-2-3 * * * * *",
            "*/0 * * * * *",
            "1/2/3 * * * * *",
            "-1 * * * * *",
            "99999999999 * * * * *",
            ", * * * * *",
        ] {
            assert_eq!(parse(pattern), None, "{pattern:?}");
        }
        let never = parse("0 0 0 31 2 *").unwrap();
        assert_eq!(never.next(time("2026-01-01T00:00:00Z"), time("2026-01-01T00:00:00Z")), None);
        assert!(never.is_repeating());
    }
}
