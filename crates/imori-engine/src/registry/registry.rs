//! The snapshot.

use std::collections::BTreeMap;
use std::sync::Arc;

use imori_automation::rules::RuleSet;
use imori_automation::value::Map;

use super::alias::RegisteredAlias;
use super::policy::{ActionPolicies, RegisteredPolicy};
use super::rule::RegisteredRule;
use super::sensor::RegisteredSensor;
use super::trigger::{Trigger, TriggerTypes};
use super::webhook::Webhook;
use crate::packs::pack::Pack;

/// What is registered.
#[derive(Debug, Clone, Default)]
pub(crate) struct Registry {
    /// Packs by reference.
    pub(crate) packs: BTreeMap<String, Arc<RegisteredPack>>,
    /// Runner types by name.
    pub(crate) runners: BTreeMap<String, Arc<Map>>,
    /// Actions by reference.
    pub(crate) actions: BTreeMap<String, Arc<Map>>,
    /// Trigger types by reference.
    pub(crate) trigger_types: TriggerTypes,
    /// Sensors by reference.
    pub(crate) sensors: BTreeMap<String, Arc<RegisteredSensor>>,
    /// Rules by reference.
    pub(crate) rules: BTreeMap<String, Arc<RegisteredRule>>,
    /// Aliases by reference.
    pub(crate) aliases: BTreeMap<String, Arc<RegisteredAlias>>,
    /// Policies by reference.
    pub(crate) policies: BTreeMap<String, Arc<RegisteredPolicy>>,
    /// The enabled policies by their actions.
    pub(crate) action_policies: Arc<ActionPolicies>,
    /// Triggers of the rules that are enabled, by reference.
    pub(crate) triggers: BTreeMap<String, Arc<Trigger>>,
    /// The webhooks among the triggers, by address.
    pub(crate) webhooks: BTreeMap<String, Vec<Arc<Webhook>>>,
    /// The enabled rules, ready to match.
    pub(crate) rule_set: Arc<RuleSet>,
}

/// A pack.
#[derive(Debug, Clone)]
pub(crate) struct RegisteredPack {
    /// The document that the API shows.
    pub(crate) document: Map,
    /// The pack as its folder has it.
    pub(crate) pack: Pack,
}

impl Registry {
    /// Derives the policies of each action.
    pub(crate) fn index_policies(&mut self) {
        self.action_policies = Arc::new(ActionPolicies::of(self.policies.values()));
    }

    /// A policy with the type and action of this one, and another reference.
    pub(crate) fn colliding_policy(&self, policy: &RegisteredPolicy) -> Option<&Arc<RegisteredPolicy>> {
        let is_other = |other: &&Arc<RegisteredPolicy>| other.text("ref") != policy.text("ref");
        self.policies.values().filter(is_other).find(|other| other.collides_with(policy))
    }

    /// Derives the triggers and the rule set from the rules.
    pub(crate) fn rebuild(&mut self) {
        let enabled = || self.rules.values().filter(|rule| rule.rule.is_enabled);
        let triggers: BTreeMap<_, _> =
            enabled().map(|rule| (rule.trigger.reference.clone(), Arc::clone(&rule.trigger))).collect();
        let mut webhooks: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for webhook in triggers.values().filter_map(Webhook::of) {
            webhooks.entry(webhook.url.clone()).or_default().push(Arc::new(webhook));
        }
        let mut rule_set = RuleSet::default();
        for rule in enabled() {
            rule_set.insert(Arc::clone(&rule.rule));
        }
        self.triggers = triggers;
        self.webhooks = webhooks;
        self.rule_set = Arc::new(rule_set);
    }
}
