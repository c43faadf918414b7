//! Intervals and dates.

use imori_automation::timers::{Timer, TimerError};
use imori_automation::times::Timestamp;

use crate::map;

fn read(kind: &str, parameters: &str) -> Result<Timer, TimerError> {
    Timer::read(&format!("core.st2.{kind}Timer"), &map(parameters))
}

fn check_next(kind: &str, parameters: &str, previous: Option<&str>, now: &str, expected: Option<&str>) {
    let timer = read(kind, parameters).unwrap();
    let previous = previous.map(|text| text.parse().unwrap());
    let next = timer.next_after(previous, now.parse().unwrap());
    let expected = expected.map(|text| text.parse::<Timestamp>().unwrap());
    assert_eq!(next, expected, "{parameters} after {previous:?}");
}

#[test]
fn interval_follows_the_previous_firing() {
    let now = "2024-05-01T10:00:00.25Z";
    check_next("Interval", r#"{"unit":"hours","delta":2}"#, None, now, Some("2024-05-01T12:00:00.25Z"));
    check_next("Interval", r#"{"unit":"weeks","delta":1}"#, None, now, Some("2024-05-08T10:00:00.25Z"));
    check_next("Interval", r#"{"unit":"days","delta":1}"#, Some("2024-01-01"), now, Some("2024-01-02"));
    check_next(
        "Interval",
        r#"{"unit":"seconds","delta":0,"timezone":null}"#,
        None,
        "2024-05-01",
        Some("2024-05-01T00:00:01Z"),
    );
    check_next("Interval", r#"{"unit":"weeks","delta":1000000}"#, None, now, None);
}

#[test]
fn date_fires_once_and_never_late_when_it_is_new() {
    let date = r#"{"date":"2014-12-31 23:59:59","timezone":"Europe/Berlin"}"#;
    check_next("Date", date, None, "2014-01-01", Some("2014-12-31T22:59:59Z"));
    check_next("Date", date, None, "2015-01-01", None);
    check_next("Date", date, Some("2014-01-01"), "2015-01-01", Some("2014-12-31T22:59:59Z"));
    check_next("Date", date, Some("2014-12-31T22:59:59Z"), "2014-01-01", None);
    let offset = r#"{"date":"2014-12-31T23:59:59.5-05:00","timezone":"Europe/Berlin"}"#;
    check_next("Date", offset, None, "2014-01-01", Some("2015-01-01T04:59:59.5Z"));
    // 02:30 does not exist on this day, and APScheduler moves it by the gap.
    let gap = r#"{"date":"2021-03-28 02:30:00","timezone":"Europe/Berlin"}"#;
    check_next("Date", gap, None, "2014-01-01", Some("2021-03-28T01:30:00Z"));
}

#[test]
fn cron_fires_after_the_previous_firing() {
    let daily = r#"{"hour":6,"minute":30,"timezone":"America/New_York"}"#;
    check_next("Cron", daily, None, "2024-05-01T10:30:00Z", Some("2024-05-01T10:30:00Z"));
    check_next("Cron", daily, Some("2024-05-01T10:30:00Z"), "2024-05-09", Some("2024-05-02T10:30:00Z"));
}

#[test]
fn wrong_parameters_are_refused_with_what_to_do() {
    let rows = [
        ("Interval", "{}", "`unit` is missing; the timer needs it"),
        ("Interval", r#"{"unit":"days"}"#, "`delta` is missing; the timer needs it"),
        (
            "Interval",
            r#"{"unit":"months","delta":1}"#,
            "`unit` is \"months\"; use one of `weeks`, `days`, `hours`, `minutes`, `seconds`",
        ),
        (
            "Interval",
            r#"{"unit":"days","delta":-1}"#,
            "`delta` is -1; use a whole number of \"days\" from 1 on that is not too large",
        ),
        (
            "Interval",
            r#"{"unit":"days","delta":9223372036854775807}"#,
            "`delta` is 9223372036854775807; use a whole number of \"days\" from 1 on that is not too large",
        ),
        (
            "Interval",
            r#"{"unit":"days","delta":1,"hours":2}"#,
            "parameter `hours` of `core.st2.IntervalTimer` is unknown; use one of `timezone`, `unit`, `delta`",
        ),
        ("Date", r#"{"date":"soon"}"#, "`date` is \"soon\"; write it as \"2014-12-31 23:59:59\""),
        ("Date", r#"{"date":20141231}"#, "`date` is 20141231; write it as \"2014-12-31 23:59:59\""),
        (
            "Date",
            r#"{"date":"2014-12-31","timezone":"Mars/Olympus"}"#,
            "`timezone` is \"Mars/Olympus\"; use a name of the tz database, as \"Europe/Berlin\"",
        ),
        (
            "Sun",
            "{}",
            "trigger type `core.st2.SunTimer` is no timer; use one of `core.st2.IntervalTimer`, \
             `core.st2.DateTimer`, `core.st2.CronTimer`",
        ),
    ];
    for (kind, parameters, message) in rows {
        assert_eq!(read(kind, parameters).unwrap_err().to_string(), message);
    }
}

#[test]
fn payload_is_that_of_stackstorm() {
    let timer = read("Interval", r#"{"unit":"hours","delta":2}"#).unwrap();
    let payload = timer.payload("2014-07-30T05:04:24.578325Z".parse().unwrap());
    assert_eq!(payload.to_json(), r#"{"executed_at":"2014-07-30 05:04:24.578325+00:00","schedule":null}"#);
}
