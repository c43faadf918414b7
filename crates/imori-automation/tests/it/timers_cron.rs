//! Cron timers.

use imori_automation::timers::{Timer, TimerError};
use imori_automation::times::Timestamp;
use imori_automation::value::Value;

use crate::{json, map};

fn read(parameters: &str) -> Result<Timer, TimerError> {
    Timer::read("core.st2.CronTimer", &map(parameters))
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
const APSCHEDULER: &str = include_str!("../cron.txt");

#[test]
fn cron_fires_when_that_of_apscheduler_does() {
    for line in APSCHEDULER.lines() {
        let row = json(line);
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
