//! A policy as it is registered: its document, compiled. The policies of an action are found by its reference.

use std::collections::BTreeMap;
use std::sync::Arc;

use imori_automation::concurrency::{ConcurrencyPolicy, NamedPolicy};
use imori_automation::ids::Id;
use imori_automation::retries::RetryPolicy;
use imori_automation::value::{Map, Value};

use crate::packs::document::{Document, PackProblem};
use crate::packs::policy::PolicyDefinition;

/// A policy, compiled.
#[derive(Debug, Clone)]
pub struct RegisteredPolicy {
    /// The document that the API shows.
    pub(crate) document: Map,
    rule: PolicyRule,
}

/// What a policy does.
#[derive(Debug, Clone)]
enum PolicyRule {
    Retry(RetryPolicy),
    Concurrency(ConcurrencyPolicy),
}

/// The enabled policies of each action that has any, by its reference.
#[derive(Debug, Clone, Default)]
pub struct ActionPolicies {
    retries: BTreeMap<String, (String, RetryPolicy)>,
    limits: BTreeMap<String, Vec<NamedPolicy>>,
}

impl RegisteredPolicy {
    /// Compiles a policy.
    ///
    /// # Errors
    /// Its parameters are wrong, as a sentence.
    pub(crate) fn new(definition: &PolicyDefinition) -> Result<RegisteredPolicy, String> {
        let parameters = &definition.parameters;
        let rule = match definition.policy_type.as_str() {
            "action.retry" => {
                PolicyRule::Retry(RetryPolicy::read(parameters).map_err(|error| error.to_string())?)
            }
            "action.concurrency" | "action.concurrency.attr" => PolicyRule::Concurrency(
                ConcurrencyPolicy::read(parameters).map_err(|error| error.to_string())?,
            ),
            other => return Err(format!("policy type `{other}` is unknown")),
        };
        let Value::Map(mut document) = definition.to_document() else {
            return Err(String::from("the policy is no object"));
        };
        let reference = definition.reference();
        document.insert("id", Id::derived(0, &[b"policy", reference.as_bytes()]).to_string());
        Ok(RegisteredPolicy { document, rule })
    }

    /// Compiles a document that the API gets, or that is stored.
    ///
    /// # Errors
    /// The policy is wrong, as a sentence.
    pub fn read(mut document: Map) -> Result<RegisteredPolicy, String> {
        document.remove("metadata_file");
        let pack = document.get("pack").and_then(Value::as_str).filter(|pack| !pack.is_empty());
        let pack = pack.unwrap_or("default").to_owned();
        let sentences = |problems: Vec<PackProblem>| {
            problems.into_iter().map(|problem| problem.message).collect::<Vec<_>>().join("; ")
        };
        let read = PolicyDefinition::from_document(&Document::of(Value::Map(document)), &pack);
        let (definition, _) = read.map_err(sentences)?;
        if [&definition.name, &definition.pack].into_iter().any(|name| name.contains(['/', ' '])) {
            let reference = definition.reference();
            return Err(format!("`{reference}` has a slash or a space; use dots or underscores"));
        }
        RegisteredPolicy::new(&definition)
    }

    /// The text of a key; empty if it is missing.
    pub(crate) fn text(&self, key: &str) -> &str {
        self.document.get(key).and_then(Value::as_str).unwrap_or_default()
    }

    /// Whether it is applied.
    pub(crate) fn is_enabled(&self) -> bool {
        self.document.get("enabled") != Some(&Value::Bool(false))
    }

    /// Whether it belongs to the folder of a pack.
    pub(crate) fn is_of_pack(&self) -> bool {
        !self.text("metadata_file").is_empty()
    }

    /// The same policy, enabled or not.
    pub(crate) fn with_enabled(&self, enabled: bool) -> RegisteredPolicy {
        let mut changed = self.clone();
        changed.document.insert("enabled", enabled);
        changed
    }

    /// Whether both have the same type and action, of which there may be one.
    pub fn collides_with(&self, other: &RegisteredPolicy) -> bool {
        ["policy_type", "resource_ref"].into_iter().all(|key| self.text(key) == other.text(key))
    }
}

impl ActionPolicies {
    /// The enabled ones of these policies, by their actions.
    pub fn of<'a>(policies: impl Iterator<Item = &'a Arc<RegisteredPolicy>>) -> ActionPolicies {
        let mut found = ActionPolicies::default();
        for policy in policies.filter(|policy| policy.is_enabled()) {
            let (action, reference) = (policy.text("resource_ref"), policy.text("ref").to_owned());
            match &policy.rule {
                PolicyRule::Retry(retry) => {
                    found.retries.insert(action.to_owned(), (reference, *retry));
                }
                PolicyRule::Concurrency(limit) => {
                    found.limits.entry(action.to_owned()).or_default().push((reference, limit.clone()));
                }
            }
        }
        found
    }

    /// The retry policy of an action, with its reference.
    pub fn retry(&self, action: &str) -> Option<&(String, RetryPolicy)> {
        self.retries.get(action)
    }

    /// The concurrency policies of each action that has any, in the order of their references.
    pub fn limits(&self) -> &BTreeMap<String, Vec<NamedPolicy>> {
        &self.limits
    }
}
