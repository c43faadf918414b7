//! All rules, by the trigger that they wait for.

use std::sync::Arc;

use foldhash::fast::FixedState;
use indexmap::IndexMap;

use super::index::Index;
use super::rule::{Rule, RuleKind};
use crate::criteria::TriggerInstance;

/// All rules. An index on an `equals` of their criteria finds the rules of a trigger, so that thousands of rules on one
/// trigger cost little more than one as long as they ask for different values.
#[derive(Debug, Clone, Default)]
pub struct RuleSet {
    /// For each rule its trigger, and its position among the rules of that.
    positions: IndexMap<String, (Arc<str>, u32), FixedState>,
    triggers: IndexMap<Arc<str>, TriggerRules, FixedState>,
}

/// The rules that an instance matches.
#[derive(Debug, Clone, Default)]
pub struct Matches {
    /// The rules that match, in the order in which they were inserted; backstops after all others.
    pub matched: Vec<Arc<Rule>>,
    /// The rules of which a criterion failed, and why. One of them can match all the same.
    pub failed: Vec<(Arc<Rule>, String)>,
}

/// The rules of one trigger. Only those that are enabled are in an index.
#[derive(Debug, Clone, Default)]
struct TriggerRules {
    /// `None` where a rule is removed.
    rules: Vec<Option<Arc<Rule>>>,
    removed: usize,
    standard: Index,
    backstops: Index,
}

/// Removed rules of a trigger that wait until as many others are left, so that removals cost little on average.
const REMOVED_MIN: usize = 16;

impl RuleSet {
    /// A set without rules.
    pub fn new() -> RuleSet {
        RuleSet::default()
    }

    /// Adds a rule, and gives the one with the same reference that was there.
    pub fn insert(&mut self, rule: Arc<Rule>) -> Option<Arc<Rule>> {
        let replaced = self.remove(&rule.reference);
        let trigger: Arc<str> = Arc::from(rule.trigger_reference());
        let reference = rule.reference.clone();
        let position = self.triggers.entry(Arc::clone(&trigger)).or_default().insert(rule);
        self.positions.insert(reference, (trigger, position));
        replaced
    }

    /// Removes the rule with this reference, if there is one.
    pub fn remove(&mut self, reference: &str) -> Option<Arc<Rule>> {
        let (trigger, position) = self.positions.swap_remove(reference)?;
        let rules = self.triggers.get_mut(&trigger)?;
        let removed = rules.remove(position);
        if rules.removed == rules.rules.len() {
            self.triggers.swap_remove(&trigger);
        } else if rules.removed >= REMOVED_MIN.max(rules.rules.len() / 2) {
            let left = std::mem::take(rules).rules.into_iter().flatten();
            for rule in left {
                let reference = rule.reference.clone();
                let position = rules.insert(rule);
                self.positions.insert(reference, (Arc::clone(&trigger), position));
            }
        }
        removed
    }

    /// The rule with this reference.
    pub fn get(&self, reference: &str) -> Option<&Arc<Rule>> {
        let (trigger, position) = self.positions.get(reference)?;
        self.triggers.get(trigger)?.get(*position)
    }

    /// The number of rules.
    pub fn len(&self) -> usize {
        self.positions.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.positions.is_empty()
    }

    /// Whether a rule, enabled or not, waits for this trigger.
    pub fn has_trigger(&self, trigger: &str) -> bool {
        self.triggers.contains_key(trigger)
    }

    /// The rules that an instance of this trigger matches. Backstops match only where no other rule does.
    pub fn matches(&self, trigger: &str, instance: &TriggerInstance<'_>) -> Matches {
        let mut matches = Matches::default();
        if let Some(rules) = self.triggers.get(trigger) {
            rules.find(&rules.standard, instance, &mut matches);
            if matches.matched.is_empty() {
                rules.find(&rules.backstops, instance, &mut matches);
            }
        }
        matches
    }
}

impl TriggerRules {
    fn insert(&mut self, rule: Arc<Rule>) -> u32 {
        let position = u32::try_from(self.rules.len()).expect("so many rules have no room in memory");
        let index = match rule.kind {
            RuleKind::Standard => &mut self.standard,
            RuleKind::Backstop => &mut self.backstops,
        };
        if rule.is_enabled {
            index.insert(position, &rule.criteria);
        }
        self.rules.push(Some(rule));
        position
    }

    fn remove(&mut self, position: u32) -> Option<Arc<Rule>> {
        let removed = self.rules.get_mut(position as usize).and_then(Option::take);
        self.removed += usize::from(removed.is_some());
        removed
    }

    fn get(&self, position: u32) -> Option<&Arc<Rule>> {
        self.rules.get(position as usize).and_then(Option::as_ref)
    }

    /// Evaluates the rules of an index that the payload can match.
    fn find(&self, index: &Index, instance: &TriggerInstance<'_>, matches: &mut Matches) {
        for rule in index.candidates(instance.payload()).filter_map(|position| self.get(position)) {
            let outcome = rule.evaluate(instance);
            if outcome.is_match {
                matches.matched.push(Arc::clone(rule));
            }
            if let Some(failure) = outcome.failure {
                matches.failed.push((Arc::clone(rule), failure.to_string()));
            }
        }
    }
}

impl FromIterator<Arc<Rule>> for RuleSet {
    fn from_iter<I: IntoIterator<Item = Arc<Rule>>>(rules: I) -> RuleSet {
        let mut set = RuleSet::new();
        for rule in rules {
            set.insert(rule);
        }
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Value;

    fn rule(text: &str) -> Arc<Rule> {
        let value = crate::yaml::load(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        Arc::new(Rule::read(&value).unwrap_or_else(|error| panic!("{text}: {error}")))
    }

    /// An enabled rule on `t.t`.
    fn enabled(name: &str, rest: &str) -> Arc<Rule> {
        rule(&format!(
            "{{name: {name}, trigger: {{type: t.t}}, action: {{ref: a.b}}, enabled: true, {rest}}}"
        ))
    }

    /// The names that match, and behind a point those that fail.
    fn matched(set: &RuleSet, payload: &str) -> String {
        let payload = Value::from_json(payload.as_bytes()).unwrap();
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
                set.insert(enabled(&format!("r{at}"), "criteria: {trigger.x: {type: eq, pattern: 1}}"))
                    .is_none()
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
            let json = |at: u8| if at == 3 { "\"a\"" } else { value(at) };
            let payload = format!(
                r#"{{"x":{},"y":{},"z":{}}}"#, json(payload.0), json(payload.1), json(payload.2)
            );
            let parsed = Value::from_json(payload.as_bytes()).unwrap();
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
}
