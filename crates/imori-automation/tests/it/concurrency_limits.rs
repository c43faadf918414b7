//! Limits of executions at a time.

use std::collections::BTreeMap;

use imori_automation::concurrency::{Admission, ConcurrencyLimits, ConcurrencyPolicy, NamedPolicy};
use imori_automation::value::Map;

use crate::map;

fn policies(policies: &[&str]) -> Vec<NamedPolicy> {
    let named = |(number, text): (usize, &&str)| {
        (format!("p.{number}"), ConcurrencyPolicy::read(&map(text)).unwrap())
    };
    policies.iter().enumerate().map(named).collect()
}

/// Limits of the action `x.y` by these policies; an execution is its id, with `~` once it was delayed.
fn limits(texts: &[&str]) -> ConcurrencyLimits<String> {
    let mut limits = ConcurrencyLimits::default();
    limits.load("x.y");
    assert!(limits.set("x.y", policies(texts), []).is_empty());
    limits
}

fn request(limits: &mut ConcurrencyLimits<String>, id: &str, parameters: &str) -> String {
    let delay = |execution: &mut String| execution.push('~');
    match limits.request(("x.y", id), id.to_owned(), |_| map(parameters), delay) {
        None => String::from("wait"),
        Some(admission) => shown(&admission),
    }
}

fn shown(admission: &Admission<String>) -> String {
    match admission {
        Admission::Run(execution) => format!("run {execution}"),
        Admission::Cancel(execution, refusal) => {
            format!("cancel {execution} by {} of {}", refusal.policy, refusal.threshold)
        }
    }
}

fn end(limits: &mut ConcurrencyLimits<String>, id: &str) -> Vec<String> {
    limits.end("x.y", id).iter().map(shown).collect()
}

#[test]
fn execution_above_the_threshold_waits_for_another_to_end() {
    let mut limits = limits(&[r#"{"threshold": 2}"#]);
    assert_eq!(request(&mut limits, "a", "{}"), "run a");
    assert_eq!(request(&mut limits, "b", "{}"), "run b");
    assert_eq!(request(&mut limits, "c", "{}"), "wait");
    assert_eq!(request(&mut limits, "d", "{}"), "wait");
    assert_eq!(end(&mut limits, "c"), [""; 0], "an execution that waits frees no place");
    assert_eq!(end(&mut limits, "b"), ["run d~"]);
    assert_eq!(end(&mut limits, "b"), [""; 0], "an end counts once");
    assert!(limits.holds("x.y", "d") && !limits.holds("x.y", "b"));
    let other = limits.request(("x.z", "e"), String::from("e"), |_| unreachable!(), |_| {});
    assert_eq!(other, Some(Admission::Run(String::from("e"))), "the policy is of another action");
}

#[test]
fn executions_are_counted_by_their_attributes() {
    let mut limits = limits(&[r#"{"threshold": 1, "action": "cancel", "attributes": ["host"]}"#]);
    assert_eq!(request(&mut limits, "a", r#"{"host": "a", "x": 1}"#), "run a");
    assert_eq!(request(&mut limits, "b", r#"{"host": "b"}"#), "run b");
    assert_eq!(request(&mut limits, "c", "{}"), "run c");
    assert_eq!(request(&mut limits, "d", r#"{"host": "a", "x": 2}"#), "cancel d by p.0 of 1");
    assert_eq!(end(&mut limits, "a"), [""; 0]);
    assert_eq!(request(&mut limits, "e", r#"{"host": "a"}"#), "run e");
}

#[test]
fn execution_needs_a_place_under_each_policy() {
    let all = r#"{"threshold": 2}"#;
    let by_host = r#"{"threshold": 1, "attributes": ["host"]}"#;
    let mut limits = limits(&[all, by_host]);
    let (one, two) = (r#"{"host": 1}"#, r#"{"host": 2}"#);
    assert_eq!(request(&mut limits, "a", one), "run a");
    assert_eq!(request(&mut limits, "b", one), "wait");
    assert_eq!(request(&mut limits, "c", two), "run c");
    assert_eq!(request(&mut limits, "d", one), "wait");
    assert_eq!(request(&mut limits, "e", r#"{"host": 3}"#), "wait");
    // `d` waits for a place of all, then for one of its host; `e` takes the place that it leaves.
    assert_eq!(end(&mut limits, "c"), ["run e~"]);
    assert_eq!(end(&mut limits, "a"), ["run b~"]);
    assert_eq!(end(&mut limits, "e"), [""; 0]);
    assert_eq!(end(&mut limits, "b"), ["run d~"]);
    assert_eq!(end(&mut limits, "d"), [""; 0]);
}

#[test]
fn an_execution_that_waits_may_be_canceled_by_another_policy() {
    let mut limits =
        limits(&[r#"{"threshold": 1}"#, r#"{"threshold": 0, "action": "cancel", "attributes": ["host"]}"#]);
    limits.begin("x.y", "a", &Map::new());
    assert_eq!(request(&mut limits, "b", "{}"), "wait");
    assert_eq!(end(&mut limits, "a"), ["cancel b~ by p.1 of 0"]);
}

#[test]
fn threshold_of_zero_lets_none_run() {
    let mut limits = limits(&[r#"{"threshold": 0}"#]);
    assert_eq!(request(&mut limits, "a", "{}"), "wait");
    limits.load("x.y");
    assert_eq!(limits.set("x.y", Vec::new(), []), ["a~"]);
    assert_eq!(request(&mut limits, "a", "{}"), "run a");
}

#[test]
fn new_policies_count_what_runs_and_what_waits_asks_again() {
    let mut limits = ConcurrencyLimits::default();
    let wanted = BTreeMap::from([(String::from("x.y"), policies(&[r#"{"threshold": 2}"#]))]);
    assert_eq!(limits.changes(&wanted), wanted);
    limits.load("x.y");
    assert_eq!(request(&mut limits, "late", "{}"), "wait");
    assert_eq!(end(&mut limits, "ended"), [""; 0]);
    limits.begin("x.y", "begun", &Map::new());
    let running = ["ended", "running"].map(|id| (id.to_owned(), Map::new()));
    // It waited without being delayed.
    assert_eq!(limits.set("x.y", policies(&[r#"{"threshold": 2}"#]), running), ["late"]);
    assert!(limits.changes(&wanted).is_empty());
    assert_eq!(request(&mut limits, "late", "{}"), "wait");
    assert_eq!(end(&mut limits, "begun"), ["run late~"]);
    assert_eq!(request(&mut limits, "last", "{}"), "wait");
    assert_eq!(limits.changes(&BTreeMap::new()), BTreeMap::from([(String::from("x.y"), Vec::new())]));
    limits.load("x.y");
    let two = ["running", "late"].map(|id| (id.to_owned(), Map::new()));
    assert_eq!(limits.set("x.y", policies(&[r#"{"threshold": 1}"#]), two), ["last~"]);
    assert_eq!(request(&mut limits, "last", "{}"), "wait");
    assert_eq!(end(&mut limits, "late"), [""; 0], "one above the new threshold has ended");
    assert_eq!(end(&mut limits, "running"), ["run last~"]);
}
