//! Policies as JSON, checked as RabbitMQ checks them, and compiled for the core.

use std::sync::Arc;

use imori_core::arguments::Taken;
use imori_core::name::Name;
use imori_core::policy::{AppliesTo, Policy, PolicySettings, QueueKind};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::policy_keys::{ALTERNATE_EXCHANGE, find};
use super::refusal::AccessError;
use crate::json_value::value_of;
use crate::limits::POLICY_DEFINITION_BYTES_MAX;

/// The kind of a policy, by the user who sets it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PolicyKind {
    /// Set by a manager of the vhost.
    Policy,
    /// Set by an operator of the broker, to limit what policies may set.
    Operator,
}

impl PolicyKind {
    /// The word in the keys of rows.
    pub(super) fn row_kind(self) -> &'static str {
        match self {
            PolicyKind::Policy => "policy",
            PolicyKind::Operator => "operator-policy",
        }
    }

    /// The word in error messages.
    pub fn word(self) -> &'static str {
        match self {
            PolicyKind::Policy => "policy",
            PolicyKind::Operator => "operator policy",
        }
    }
}

/// A policy in its JSON form.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyRow {
    /// A regular expression for the names of queues or exchanges.
    pub pattern: String,
    /// The kind of objects, by RabbitMQ's name.
    #[serde(rename = "apply-to")]
    pub apply_to: String,
    /// Among the matching policies of a kind, the one with the highest priority is in effect.
    pub priority: i64,
    /// Settings by RabbitMQ's names.
    pub definition: Map<String, Value>,
}

/// A policy in its JSON form, and compiled.
#[derive(Debug)]
pub struct SetPolicy {
    /// The JSON form.
    pub row: PolicyRow,
    pub(crate) compiled: Arc<Policy>,
}

impl PolicyRow {
    /// Checks the fields of a request or document. `priority` defaults to 0, `apply-to` to `all`.
    ///
    /// # Errors
    /// A field is missing or has the wrong type.
    pub fn read(fields: &Map<String, Value>) -> Result<PolicyRow, AccessError> {
        let field = |name: &str| fields.get(name).filter(|value| !value.is_null());
        let missing = |name: &str| AccessError::bad(format_args!("`{name}` is missing"));
        let pattern = field("pattern").ok_or_else(|| missing("pattern"))?;
        let definition = field("definition").ok_or_else(|| missing("definition"))?;
        let Some(pattern) = pattern.as_str() else {
            return Err(AccessError::bad("`pattern` is no text; write a regular expression"));
        };
        let Value::Object(definition) = definition else {
            return Err(AccessError::bad("`definition` is no JSON object; write `{\"max-length\": 1000}`"));
        };
        let apply_to = field("apply-to").map_or(Some("all"), Value::as_str);
        let apply_to = apply_to.ok_or_else(|| AccessError::bad("`apply-to` is no text"))?;
        let priority = field("priority").map_or(Some(0), Value::as_i64);
        let priority = priority.ok_or_else(|| AccessError::bad("`priority` is no whole number"))?;
        let (pattern, apply_to) = (pattern.to_owned(), apply_to.to_owned());
        Ok(PolicyRow { pattern, apply_to, priority, definition: definition.clone() })
    }

    /// Compiles the policy for the core.
    ///
    /// # Errors
    /// A value is one that RabbitMQ would refuse too, or is too large.
    pub(crate) fn compile(&self, kind: PolicyKind, name: &str) -> Result<Arc<Policy>, AccessError> {
        let of =
            |text: String| AccessError::Bad(format!("{} `{}`: {text}", kind.word(), name.escape_debug()));
        let applies_to = applies_to(&self.apply_to).map_err(of)?;
        let settings = settings(kind, &self.definition).map_err(of)?;
        let name = Name::from(name);
        let policy = Policy::new(name, (&self.pattern, applies_to), self.priority, settings);
        policy.map(Arc::new).map_err(|error| of(error.to_string()))
    }

    /// The keys that RabbitMQ knows but that have no effect here.
    pub fn without_effect(&self) -> Vec<&str> {
        let is_noted = |name: &&str| find(name).is_some_and(|key| !key.has_effect(name));
        self.definition.keys().map(String::as_str).filter(is_noted).collect()
    }
}

impl SetPolicy {
    /// Merges the policy and the operator policy of an object into one definition, as RabbitMQ does.
    pub fn merged(policy: Option<&SetPolicy>, operator: Option<&SetPolicy>) -> Map<String, Value> {
        let definition =
            |set: Option<&SetPolicy>| set.map(|set| set.row.definition.clone()).unwrap_or_default();
        let mut merged = definition(policy);
        for (key, operators) in definition(operator) {
            let value = match merged.get(&key) {
                Some(own) => lower(&key, own, &operators),
                None => operators,
            };
            merged.insert(key, value);
        }
        merged
    }
}

/// The lower of two limits; for other values the operator's.
fn lower(key: &str, own: &Value, operators: &Value) -> Value {
    let (Some(one), Some(other)) = (own.as_i64(), operators.as_i64()) else { return operators.clone() };
    let is_unlimited = |value: i64| key == "delivery-limit" && value < 0;
    match () {
        () if key == "queue-version" => operators.clone(),
        () if is_unlimited(one) || is_unlimited(other) => json!(one.max(other)),
        () => json!(one.min(other)),
    }
}

fn applies_to(word: &str) -> Result<AppliesTo, String> {
    Ok(match word {
        "all" => AppliesTo::All,
        "queues" => AppliesTo::Queues,
        "classic_queues" => AppliesTo::QueuesOf(QueueKind::Classic),
        "quorum_queues" => AppliesTo::QueuesOf(QueueKind::Quorum),
        "exchanges" => AppliesTo::Exchanges,
        "streams" => AppliesTo::QueuesOf(QueueKind::Stream),
        other => {
            return Err(format!(
                "`apply-to` is `{}`; write `all`, `queues`, `classic_queues`, `quorum_queues`, `streams` or `exchanges`",
                other.escape_debug()
            ));
        }
    })
}

/// Reads a definition, after checking each value by its key.
fn settings(kind: PolicyKind, definition: &Map<String, Value>) -> Result<PolicySettings, String> {
    if definition.is_empty() {
        return Err(String::from("`definition` is empty; write `{\"max-length\": 1000}`"));
    }
    let bytes = definition.iter().map(|(key, value)| key.len() + value.to_string().len()).sum::<usize>();
    if bytes > POLICY_DEFINITION_BYTES_MAX {
        return Err(format!("`definition` has {bytes} bytes; use at most {POLICY_DEFINITION_BYTES_MAX}"));
    }
    let mut settings = PolicySettings::default();
    for (name, value) in definition {
        let shown = name.escape_debug();
        let Some(key) = find(name) else {
            return Err(format!("`{shown}` is no key of a policy; RabbitMQ's are known here"));
        };
        if kind == PolicyKind::Operator && !key.is_limit {
            return Err(format!("`{shown}` is no key of an operator policy; set it by a policy"));
        }
        let read = value_of(value);
        let taken = key.takes.check(&read);
        let taken = taken.map_err(|_| format!("`{shown}` is `{value}`; write {}", key.takes))?;
        match (key.argument.and_then(|key| key.effect.as_ref()), taken) {
            (Some(effect), taken) => (effect.set)(&mut settings, taken),
            (None, Taken::Text(exchange)) if name == ALTERNATE_EXCHANGE => {
                settings.alternate_exchange = Some(Name::new(exchange));
            }
            // The other keys have no effect.
            (None, _) => {}
        }
    }
    Ok(settings)
}

#[cfg(test)]
mod tests;
