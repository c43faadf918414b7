//! Measures rules: how many are evaluated in a second of processor time, the payload's JSON of 1 KB read once an event.
//!
//! Prints one line per measurement: the median of nine rounds, in processor time of the thread.

#![allow(clippy::print_stdout, reason = "a benchmark prints its results")]

use std::fs;
use std::hint::black_box;
use std::sync::Arc;

use imori_automation::criteria::TriggerInstance;
use imori_automation::rules::{Rule, RuleSet};
use imori_automation::times::Timestamp;
use imori_automation::value::Value;
use imori_automation::yaml;

/// A push as a forge sends it, of about 1 KB.
const PUSH: &str = include_str!("push.txt");

/// A rule for pushes, with placeholders for its number and the operator of its first criterion.
const RULE: &str = include_str!("rule.yaml");

const ROUNDS: usize = 9;

/// Evaluations asked for in a second of processor time, where an event has a hundred rules or more.
const EVALUATIONS_GOAL: f64 = 500_000.0;

/// How much an event may cost with 10,000 rules that ask for different values, compared to one rule.
const INDEX_GOAL: f64 = 3.0;

fn main() {
    let payload = PUSH.trim_end();
    println!(
        "reading {} bytes of JSON: {:.0} ns",
        payload.len(),
        median(2_000, || read(payload).is_truthy())
    );
    let compiled = median(2_000, || Rule::read(black_box(&written(0, "equals"))).is_ok());
    println!("reading a rule with three criteria: {compiled:.0} ns");
    let mut is_slow = false;
    let mut one = 0.0;
    for (name, operator) in [("each with its own `equals`", "equals"), ("without `equals`", "iequals")] {
        for count in [1, 100, 10_000] {
            let rules: RuleSet = (0..count).map(|at| rule(at, operator)).collect();
            let events = if operator == "equals" { 2_000 } else { 200_000 / (count as u32).max(100) };
            let event = median(events, || matches(&rules, payload));
            let rate = count as f64 / event * 1e9;
            println!("{count} rules {name}: {event:.0} ns an event, {rate:.0} evaluations a second");
            is_slow |= count >= 100 && rate < EVALUATIONS_GOAL;
            match (operator, count) {
                ("equals", 1) => one = event,
                ("equals", 10_000) => is_slow |= event > one * INDEX_GOAL,
                _ => {}
            }
        }
    }
    assert!(!is_slow, "a goal is missed");
}

/// An event: reads the payload and finds the rules that match, which is one.
fn matches(rules: &RuleSet, payload: &str) -> bool {
    let payload = read(black_box(payload));
    let instance = TriggerInstance::new(&payload, Timestamp::from_seconds(1_790_000_000));
    let matches = rules.matches("core.st2.webhook", &instance);
    assert_eq!((matches.matched.len(), matches.failed.len()), (1, 0));
    true
}

fn read(payload: &str) -> Value {
    Value::from_json(payload.as_bytes()).expect("it is JSON")
}

fn rule(at: usize, operator: &str) -> Arc<Rule> {
    Arc::new(Rule::read(&written(at, operator)).expect("it is a rule"))
}

fn written(at: usize, operator: &str) -> Value {
    let text = RULE.replace("NUMBER", &at.to_string()).replace("OPERATOR", operator);
    yaml::load(&text).expect("it is YAML")
}

/// Nanoseconds of one call.
fn median(calls: u32, mut call: impl FnMut() -> bool) -> f64 {
    let mut rounds: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let begin = processor_time();
            for _ in 0..calls {
                black_box(call());
            }
            (processor_time() - begin) as f64 / f64::from(calls)
        })
        .collect();
    rounds.sort_by(f64::total_cmp);
    rounds[ROUNDS / 2]
}

/// Processor time of this thread in nanoseconds.
fn processor_time() -> u64 {
    let text = fs::read_to_string("/proc/thread-self/schedstat").expect("Linux tells it");
    text.split_whitespace().next().and_then(|number| number.parse().ok()).expect("it is a number")
}
