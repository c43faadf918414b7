//! Firings that were missed.

use imori_automation::ids::Id;
use imori_automation::timers::{Missed, Schedule, Timer};
use imori_automation::times::Timestamp;
use imori_automation::value::Map;

use crate::json;

fn timer(kind: &str, parameters: &str) -> Timer {
    let parameters = json(parameters);
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
    let (mut schedule, id) = (Schedule::new(), Id::from_bytes([1; 12]));
    let (last_fired, now) = (Some(last_fired.parse().unwrap()), now.parse().unwrap());
    let next = schedule.insert(id, interval, last_fired, Missed::Skip, now);
    assert_eq!(next.unwrap().to_string(), "2024-05-01T10:21:00.500000Z");
}

#[test]
fn timer_that_never_fired_missed_nothing() {
    let seconds = timer("core.st2.CronTimer", r#"{"second":"*"}"#);
    assert_eq!(seconds.firings(None, Timestamp::MAX, Missed::All), []);
}
