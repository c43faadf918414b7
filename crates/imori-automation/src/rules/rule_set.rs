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
