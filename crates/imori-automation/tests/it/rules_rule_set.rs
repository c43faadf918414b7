//! The rules that match a trigger instance.

use std::sync::Arc;

use imori_automation::criteria::TriggerInstance;
use imori_automation::rules::{Rule, RuleSet};

use crate::json;

fn rule(text: &str) -> Arc<Rule> {
    let value = imori_automation::yaml::load(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    Arc::new(Rule::read(&value).unwrap_or_else(|error| panic!("{text}: {error}")))
}

/// An enabled rule on `t.t`.
fn enabled(name: &str, rest: &str) -> Arc<Rule> {
    rule(&format!("{{name: {name}, trigger: {{type: t.t}}, action: {{ref: a.b}}, enabled: true, {rest}}}"))
}

/// The names that match, and behind a point those that fail.
fn matched(set: &RuleSet, payload: &str) -> String {
    let payload = json(payload);
    let now = "2026-11-26T12:00:00Z".parse().unwrap();
    let matches = set.matches("t.t", &TriggerInstance::new(&payload, now));
    let names: Vec<&str> = matches.matched.iter().map(|rule| rule.name.as_str()).collect();
    let failed: Vec<&str> = matches.failed.iter().map(|(rule, _)| rule.name.as_str()).collect();
    [names.join(" "), failed.join(" ")].join(".")
}

#[test]
fn matches_come_in_the_order_of_insertion() {
    let rules = [
        enabled("all", ""),
        enabled("x1", "criteria: {trigger.x: {type: eq, pattern: 1}}"),
        enabled("y", "criteria: {trigger.x: {type: exists}, trigger.y: {type: eq, pattern: a}}"),
        enabled("x2", "criteria: {trigger.x: {type: eq, pattern: 2}}"),
        enabled("bad", "criteria: {trigger.x: {type: lt, pattern: a}}"),
        enabled("truth", "criteria: {trigger.x: {type: eq, pattern: true}}"),
        rule("{name: idle, trigger: {type: t.t}, action: {ref: a.b}}"),
        rule("{name: other, trigger: {type: t.u}, action: {ref: a.b}, enabled: true}"),
    ];
    let set: RuleSet = rules.into_iter().collect();
    assert_eq!(matched(&set, r#"{"x":1,"y":"a"}"#), "all x1 y truth.bad");
    assert_eq!(matched(&set, r#"{"x":1.0}"#), "all x1 truth.bad");
    assert_eq!(matched(&set, r#"{"x":"b"}"#), "all.");
    assert_eq!(matched(&set, r#"{"x":"A"}"#), "all bad.");
    assert_eq!(matched(&set, "{}"), "all.");
    assert!(set.has_trigger("t.u") && !set.has_trigger("t.v"));
    assert_eq!(set.len(), 8);
}

#[test]
fn a_backstop_matches_where_no_other_rule_does() {
    let set: RuleSet = [
        enabled("back", "type: {ref: backstop}, criteria: {trigger.x: {type: exists}}"),
        enabled("one", "criteria: {trigger.x: {type: eq, pattern: 1}}"),
    ]
    .into_iter()
    .collect();
    assert_eq!(matched(&set, r#"{"x":1}"#), "one.");
    assert_eq!(matched(&set, r#"{"x":2}"#), "back.");
    assert_eq!(matched(&set, r#"{"y":2}"#), ".");
}

#[test]
fn rules_are_replaced_and_removed() {
    let mut set = RuleSet::new();
    for at in 0..100 {
        assert!(
            set.insert(enabled(&format!("r{at}"), "criteria: {trigger.x: {type: eq, pattern: 1}}")).is_none()
        );
    }
    for at in 0..95 {
        assert!(set.remove(&format!("default.r{at}")).is_some());
    }
    assert!(set.remove("default.r0").is_none());
    assert_eq!(matched(&set, r#"{"x":1}"#), "r95 r96 r97 r98 r99.");
    assert!(set.insert(enabled("r95", "criteria: {trigger.x: {type: eq, pattern: 2}}")).is_some());
    assert_eq!(matched(&set, r#"{"x":1}"#), "r96 r97 r98 r99.");
    assert_eq!(matched(&set, r#"{"x":2}"#), "r95.");
    assert!(set.get("default.r95").is_some());
    (96..100).for_each(|at| drop(set.remove(&format!("default.r{at}"))));
    assert_eq!(set.len(), 1);
    assert!(set.remove("default.r95").is_some());
    assert!(set.is_empty() && !set.has_trigger("t.t"));
}

proptest::proptest! {
    #[test]
    fn the_index_finds_what_each_rule_alone_matches(
        rules in proptest::collection::vec((0..3_u8, 0..6_u8, 0..3_u8, 0..6_u8), 1..20),
        payload in (0..6_u8, 0..6_u8, 0..6_u8),
    ) {
        let value = |at: u8| ["1", "1.0", "true", "a", "0.5", "[1]"][usize::from(at)];
        let field = |at: u8| ["x", "y", "z"][usize::from(at)];
        let mut set = RuleSet::new();
        let mut expected = Vec::new();
        let written = |at: u8| if at == 3 { "\"a\"" } else { value(at) };
        let payload = format!(
            r#"{{"x":{},"y":{},"z":{}}}"#, written(payload.0), written(payload.1), written(payload.2)
        );
        let parsed = json(&payload);
        let now = "2026-11-26T12:00:00Z".parse().unwrap();
        for (at, (first, one, second, other)) in rules.into_iter().enumerate() {
            let rule = enabled(&format!("r{at}"), &format!(
                "criteria: {{trigger.{}: {{type: eq, pattern: {}}}, 'trigger.{}#2': {{type: eq, pattern: {}}}}}",
                field(first), value(one), field(second), value(other),
            ));
            if rule.evaluate(&TriggerInstance::new(&parsed, now)).is_match {
                expected.push(rule.name.clone());
            }
            set.insert(rule);
        }
        assert_eq!(matched(&set, &payload), format!("{}.", expected.join(" ")));
    }
}
