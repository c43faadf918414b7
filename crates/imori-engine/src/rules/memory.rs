//! The memory of all rules: counts and windows, open executions, and breakers. What has to survive a restart is stored
//! in the transaction of the event that changes it.

use std::collections::{BTreeMap, BTreeSet};

use imori_automation::criteria::TriggerInstance;
use imori_automation::ids::Id;
use imori_automation::rules::{Decision, Rule, RuleState, Window};
use imori_automation::times::Timestamp;
use imori_automation::value::{Map, Value};
use tracing::warn;

use super::breaker::{Breaker, Passage};
use crate::limits::{RULE_FLOOD, RULE_FLOOD_TIME, RULE_LOOP, RULE_LOOP_TIME};
use crate::store::{RULE_STATES, Transaction};

/// What rules remember, by the rule's id.
#[derive(Debug, Default)]
pub struct RuleMemory {
    rules: BTreeMap<String, Remembered>,
}

#[derive(Debug, Default)]
struct Remembered {
    state: RuleState,
    /// The rule's executions that have not ended.
    open: BTreeSet<String>,
    breaker: Breaker,
}

/// What becomes of a match.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The rule runs.
    Run,
    /// It is counted or held back.
    Held,
    /// It does not run, for this reason.
    Failed(String),
}

/// A change of a rule's state, to be undone if the event is not stored.
#[derive(Debug)]
pub struct Undo {
    rule: String,
    key: String,
    before: Option<Value>,
    after: Option<Value>,
}

impl RuleMemory {
    /// Decides about a match, and adds what the rule remembers of it to the event's transaction.
    pub fn decide(
        &mut self,
        (rule, id): (&Rule, &str),
        trigger_type: &str,
        instance: &TriggerInstance<'_>,
        transaction: &mut Transaction,
        undo: &mut Vec<Undo>,
    ) -> Verdict {
        let remembered = self.rules.entry(id.to_owned()).or_default();
        let (extension, now) = (&rule.extension, instance.now());
        match remembered.breaker.pass(extension.breaker.unwrap_or(allowed(trigger_type)), now) {
            Passage::Open => {}
            Passage::Suspended => return Verdict::Held,
            Passage::Suspends(reason) => {
                warn!(rule = rule.reference, reason, "a rule is suspended");
                let shown = remembered.breaker.shown(now).unwrap_or_default();
                transaction.put(&RULE_STATES, suspension(id, shown));
                return Verdict::Failed(reason);
            }
        }
        if let Some(limit) = extension.limit {
            let actions = rule.actions().count();
            let open = remembered.open.len();
            if open > 0 && open + actions > limit as usize {
                return Verdict::Failed(format!(
                    "{open} executions of the rule have not ended, and its `limit` is {limit}"
                ));
            }
        }
        if !extension.has_state() {
            return Verdict::Run;
        }
        let key = match RuleState::key(extension, instance) {
            Ok(key) => key,
            Err(reason) => return Verdict::Failed(reason),
        };
        let before = remembered.state.stored(&key);
        let (decision, forgotten) = remembered.state.decide_key(extension, &key, now);
        let after = remembered.state.stored(&key);
        if let Some(forgotten) = forgotten {
            transaction.delete(&RULE_STATES, &state_id(id, &forgotten));
        }
        transaction.put(&RULE_STATES, state(id, &key, after.clone().unwrap_or_default()));
        undo.push(Undo { rule: id.to_owned(), key, before, after });
        match decision {
            Decision::Run => Verdict::Run,
            Decision::Counted(_) | Decision::RanAlready(_) | Decision::Throttled(_) => Verdict::Held,
            Decision::Failed(reason) => Verdict::Failed(reason),
        }
    }

    /// Takes back what an event changed that was not stored, unless a later event has changed it since.
    pub fn undo(&mut self, changes: Vec<Undo>) {
        for Undo { rule, key, before, after } in changes.into_iter().rev() {
            let Some(remembered) = self.rules.get_mut(&rule) else { continue };
            if remembered.state.stored(&key) == after {
                // The value was made by the state itself.
                let _ = remembered.state.restore(&key, before.as_ref());
            }
        }
    }

    /// Notes an execution that a rule has requested.
    pub fn started(&mut self, rule: &str, execution: &str) {
        self.rules.entry(rule.to_owned()).or_default().open.insert(execution.to_owned());
    }

    /// Notes that an execution has ended, or was not stored.
    pub fn ended(&mut self, rule: &str, execution: &str) {
        if let Some(remembered) = self.rules.get_mut(rule) {
            remembered.open.remove(execution);
        }
    }

    /// Takes over a stored document.
    ///
    /// # Errors
    /// It cannot be read, as a sentence.
    pub(crate) fn restore(&mut self, document: &Map) -> Result<(), String> {
        let text = |key: &str| document.get(key).and_then(Value::as_str);
        let rule = text("rule").ok_or("the document names no `rule`")?;
        let remembered = self.rules.entry(rule.to_owned()).or_default();
        if let Some(suspended) = document.get("suspended") {
            remembered.breaker.restore(suspended);
            return Ok(());
        }
        remembered.state.restore(text("key").unwrap_or_default(), document.get("state"))
    }

    /// How and until when a rule is suspended; `None` if it is not.
    pub fn suspension(&self, rule: &str, now: Timestamp) -> Option<Map> {
        self.rules.get(rule)?.breaker.shown(now)
    }

    /// Ends the suspension of a rule that an operator has changed.
    pub fn resume(&mut self, rule: &str, transaction: &mut Transaction) {
        transaction.delete(&RULE_STATES, &suspension_id(rule));
        if let Some(remembered) = self.rules.get_mut(rule) {
            remembered.breaker = Breaker::default();
        }
    }

    /// Forgets a rule that is deleted.
    pub(crate) fn forget(&mut self, rule: &str) {
        self.rules.remove(rule);
    }
}

/// The matches of a rule that suspend it, where it does not say. A rule that waits for what actions do can trigger
/// itself, and does so as fast as the engine can.
fn allowed(trigger_type: &str) -> Window {
    let is_own = trigger_type == "core.st2.generic.actiontrigger"
        || trigger_type.starts_with("core.st2.key_value_pair.");
    let (count, time) = if is_own { (RULE_LOOP, RULE_LOOP_TIME) } else { (RULE_FLOOD, RULE_FLOOD_TIME) };
    Window { count, micros: i64::try_from(time.as_micros()).unwrap_or(i64::MAX) }
}

fn state_id(rule: &str, key: &str) -> String {
    Id::derived(0, &[b"rule state", rule.as_bytes(), key.as_bytes()]).to_string()
}

fn suspension_id(rule: &str) -> String {
    Id::derived(0, &[b"rule suspension", rule.as_bytes()]).to_string()
}

fn state(rule: &str, key: &str, state: Value) -> Map {
    let id = state_id(rule, key);
    [("id", Value::from(id)), ("rule", rule.into()), ("key", key.into()), ("state", state)]
        .into_iter()
        .collect()
}

fn suspension(rule: &str, shown: Map) -> Map {
    let id = suspension_id(rule);
    [("id", Value::from(id)), ("rule", rule.into()), ("suspended", shown.into())].into_iter().collect()
}
