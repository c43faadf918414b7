//! Rules that count, throttle or break.

use imori_automation::criteria::TriggerInstance;
use imori_automation::limits::RULE_KEYS_MAX;
use imori_automation::rules::{Decision, Extension, RuleState};
use imori_automation::times::Timestamp;
use imori_automation::value::{Map, Value};

use crate::json;

fn extension(text: &str) -> Extension {
    let value = imori_automation::yaml::load(text).unwrap();
    Extension::read(value.as_map().unwrap()).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// Decides about matches at these seconds, each with its host.
fn decisions(text: &str, matches: &[(i64, &str)]) -> Vec<Decision> {
    let extension = extension(text);
    let mut state = RuleState::default();
    let decide = |(second, host): &(i64, &str)| {
        let payload = json(&format!(r#"{{"host":"{host}"}}"#));
        state.decide(&extension, &TriggerInstance::new(&payload, Timestamp::from_seconds(*second)))
    };
    matches.iter().map(decide).collect()
}

fn until(second: i64) -> Timestamp {
    Timestamp::from_seconds(second)
}

#[test]
fn a_rule_without_such_keys_always_runs() {
    assert_eq!(decisions("limit: 1", &[(0, "a"), (0, "a")]), [Decision::Run, Decision::Run]);
}

#[test]
fn a_count_runs_at_the_last_match_and_begins_anew() {
    let given =
        decisions("count: {n: 3, within: 10}", &[(0, ""), (1, ""), (10, ""), (11, ""), (12, ""), (13, "")]);
    let counted = Decision::Counted;
    // The first match is out of the window at 10, and that at 1 at 11.
    assert_eq!(given, [counted(1), counted(2), counted(2), counted(2), Decision::Run, counted(1)]);
}

#[test]
fn once_within_holds_matches_back_from_the_run_on() {
    let given = decisions("once_within: 10", &[(0, ""), (9, ""), (10, ""), (19, ""), (20, "")]);
    let held = |second| Decision::RanAlready(until(second));
    assert_eq!(given, [Decision::Run, held(10), Decision::Run, held(20), Decision::Run]);
}

#[test]
fn a_throttle_allows_runs_within_any_window() {
    let given = decisions("throttle: {n: 2, within: 10}", &[(0, ""), (8, ""), (9, ""), (10, ""), (11, "")]);
    let held = |second| Decision::Throttled(until(second));
    assert_eq!(given, [Decision::Run, Decision::Run, held(10), Decision::Run, held(18)]);
}

#[test]
fn each_value_of_the_key_is_decided_alone() {
    let text = "{once_within: 10, dedup_key: '{{ trigger.host }}'}";
    let given = decisions(text, &[(0, "a"), (1, "b"), (2, "a")]);
    assert_eq!(given, [Decision::Run, Decision::Run, Decision::RanAlready(until(10))]);
    let failed = decisions("{once_within: 10, dedup_key: '{{ trigger.missing }}'}", &[(0, "a")]);
    assert!(matches!(failed.as_slice(), [Decision::Failed(reason)] if reason.contains("dedup_key")));
}

#[test]
fn a_stored_state_decides_as_the_one_it_was_made_of() {
    let text = "{count: {n: 2, within: 10}, once_within: 5, throttle: {n: 2, within: 60}}";
    let extension = extension(text);
    let seconds = [0, 1, 2, 3, 7, 8, 20, 21, 22, 30, 31, 70, 71];
    let mut whole = RuleState::default();
    let mut stored = None;
    for second in seconds {
        let now = Timestamp::from_seconds(second);
        let mut again = RuleState::default();
        again.restore("k", stored.as_ref()).unwrap();
        let expected = whole.decide_key(&extension, "k", now).0;
        assert_eq!(again.decide_key(&extension, "k", now).0, expected, "at {second}");
        stored = again.stored("k");
    }
    let mut state = RuleState::default();
    assert!(state.restore("k", Some(&Value::from("no state"))).is_err());
    state.restore("k", stored.as_ref()).unwrap();
    state.restore("k", None).unwrap();
    assert!(state.is_empty());
}

#[test]
fn the_key_that_matched_longest_ago_is_forgotten() {
    let extension = extension("{once_within: 1h, dedup_key: '{{ trigger.n }}'}");
    let mut state = RuleState::default();
    let mut decide = |n: i64, second: i64| {
        let payload = Value::Map(Map::from_iter([("n", n)]));
        state.decide(&extension, &TriggerInstance::new(&payload, Timestamp::from_seconds(second)))
    };
    for n in 0..RULE_KEYS_MAX as i64 {
        assert_eq!(decide(n, n / 10), Decision::Run);
    }
    assert!(matches!(decide(0, 500), Decision::RanAlready(_)));
    assert_eq!(decide(-1, 501), Decision::Run);
    assert!(matches!(decide(0, 502), Decision::RanAlready(_)));
    assert_eq!(decide(1, 503), Decision::Run);
    assert_eq!(state.len(), RULE_KEYS_MAX);
}
