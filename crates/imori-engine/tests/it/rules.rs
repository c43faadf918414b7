//! What rules remember of their matches, and what suspends them.

use imori_automation::criteria::TriggerInstance;
use imori_automation::rules::{Rule, Window};
use imori_automation::times::Timestamp;
use imori_automation::value::{Map, Value};
use imori_engine::for_tests::{Breaker, Passage, RuleMemory, Transaction, Undo, Verdict};
use imori_engine::limits::RULE_SUSPENSION;

fn rule(extension: &str) -> Rule {
    let text = format!(
        "{{name: r, trigger: {{type: x.y}}, action: {{ref: core.noop}}, enabled: true, x-imori: {extension}}}"
    );
    Rule::read(&imori_automation::yaml::load(&text).unwrap()).unwrap()
}

fn decide(memory: &mut RuleMemory, rule: &Rule, second: i64) -> (Verdict, Vec<Undo>) {
    let payload = Value::Map(Map::from_iter([("a", 1)]));
    let instance = TriggerInstance::new(&payload, Timestamp::from_seconds(second));
    let mut undo = Vec::new();
    let verdict = memory.decide((rule, "id"), "x.y", &instance, &mut Transaction::new(), &mut undo);
    (verdict, undo)
}

#[test]
fn a_limit_refuses_a_match_while_executions_are_open() {
    let (mut memory, rule) = (RuleMemory::default(), rule("{limit: 2}"));
    memory.started("id", "e1");
    assert_eq!(decide(&mut memory, &rule, 1).0, Verdict::Run);
    memory.started("id", "e2");
    let (verdict, _) = decide(&mut memory, &rule, 1);
    let expected = "2 executions of the rule have not ended, and its `limit` is 2";
    assert_eq!(verdict, Verdict::Failed(String::from(expected)));
    memory.ended("id", "e1");
    assert_eq!(decide(&mut memory, &rule, 1).0, Verdict::Run);
}

#[test]
fn an_event_that_is_not_stored_was_not_counted() {
    let (mut memory, rule) = (RuleMemory::default(), rule("{count: {n: 2, within: 60}}"));
    let (verdict, undo) = decide(&mut memory, &rule, 1);
    assert_eq!(verdict, Verdict::Held);
    memory.undo(undo);
    assert_eq!(decide(&mut memory, &rule, 2).0, Verdict::Held);
    assert_eq!(decide(&mut memory, &rule, 3).0, Verdict::Run);
}

#[test]
fn a_changed_rule_is_no_longer_suspended() {
    let (mut memory, rule) = (RuleMemory::default(), rule("{breaker: {n: 1, within: 60}}"));
    assert_eq!(decide(&mut memory, &rule, 1).0, Verdict::Run);
    assert!(matches!(decide(&mut memory, &rule, 2).0, Verdict::Failed(_)));
    assert_eq!(decide(&mut memory, &rule, 3).0, Verdict::Held);
    assert!(memory.suspension("id", Timestamp::from_seconds(3)).is_some());
    memory.resume("id", &mut Transaction::new());
    assert_eq!(decide(&mut memory, &rule, 4).0, Verdict::Run);
}

#[test]
fn a_storm_suspends_the_rule_for_a_time() {
    let allowed = Window { count: 3, micros: 10_000_000 };
    let mut breaker = Breaker::default();
    let at = Timestamp::from_seconds;
    for second in [0, 1, 2, 10, 11, 12] {
        assert_eq!(breaker.pass(allowed, at(second)), Passage::Open, "at {second}");
    }
    let Passage::Suspends(reason) = breaker.pass(allowed, at(13)) else { panic!("it passes") };
    assert!(reason.contains("more than 3 times in 10 s"), "{reason}");
    assert_eq!(breaker.pass(allowed, at(14)), Passage::Suspended);
    let shown = breaker.shown(at(14)).unwrap();
    assert_eq!(shown.get("skipped"), Some(&Value::Int(1)));
    let mut again = Breaker::default();
    again.restore(&Value::Map(shown));
    assert_eq!(again.pass(allowed, at(15)), Passage::Suspended);
    let later = 13 + i64::try_from(RULE_SUSPENSION.as_secs()).unwrap();
    assert_eq!(again.pass(allowed, at(later)), Passage::Open);
    assert_eq!(breaker.shown(at(later)), None);
}
