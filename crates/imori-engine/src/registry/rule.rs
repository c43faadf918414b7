//! A rule as it is registered: its document, compiled, with its trigger.

use std::sync::Arc;

use imori_automation::ids::Id;
use imori_automation::parameters::{Defaults, Schema};
use imori_automation::rules::Rule;
use imori_automation::timers::Timer;
use imori_automation::value::{Map, Value};
use imori_automation::webhooks::WebhookSettings;

use super::trigger::{TIMER_TYPES, Trigger, TriggerTypes, WEBHOOK_TYPE};
use super::webhook::INJECTION;

/// A rule, compiled.
#[derive(Debug)]
pub(crate) struct RegisteredRule {
    /// The document that the API shows.
    pub(crate) document: Map,
    /// The compiled rule.
    pub(crate) rule: Arc<Rule>,
    /// Its trigger.
    pub(crate) trigger: Arc<Trigger>,
}

impl RegisteredRule {
    /// Compiles a rule.
    ///
    /// # Errors
    /// The rule is wrong, as a sentence.
    pub(crate) fn read(document: Map, types: &TriggerTypes) -> Result<RegisteredRule, String> {
        let rule = RegisteredRule::read_stored(document)?;
        check_trigger(&rule.trigger, types)?;
        Ok(rule)
    }

    /// Compiles a rule whose trigger was checked when it was registered.
    ///
    /// # Errors
    /// The rule is wrong, as a sentence.
    pub(crate) fn read_stored(mut document: Map) -> Result<RegisteredRule, String> {
        document.remove("ref");
        document.remove("uid");
        // The API shows it, and clients send back what they were shown.
        document.remove("suspended");
        let id = document.remove("id");
        let rule = Rule::read(&Value::Map(document)).map_err(|error| error.to_string())?;
        let trigger = Trigger::new(&rule.trigger.type_reference, rule.trigger.parameters.clone());
        let rule = rule.with_trigger_reference(&trigger.reference);
        let Value::Map(mut document) = rule.to_value() else {
            return Err(String::from("the rule is no object"));
        };
        let reference = rule.reference.clone();
        let derived = || Id::derived(0, &[b"rule", reference.as_bytes()]).to_string();
        document.insert("id", id.and_then(|id| id.as_str().map(str::to_owned)).unwrap_or_else(derived));
        document.insert("ref", reference.as_str());
        document.insert("uid", format!("rule:{}:{}", rule.pack, rule.name));
        let mut shown = Map::new();
        shown.insert("type", trigger.kind.as_str());
        shown.insert("parameters", trigger.parameters.clone());
        shown.insert("ref", trigger.reference.as_str());
        document.insert("trigger", shown);
        Ok(RegisteredRule { document, rule: Arc::new(rule), trigger: Arc::new(trigger) })
    }

    /// The document for a user who may not write the rule: without the secrets of its trigger.
    pub(crate) fn masked_document(&self, types: &TriggerTypes) -> Map {
        let mut document = self.document.clone();
        if let Some(Value::Map(trigger)) = document.get("trigger") {
            let mut trigger = trigger.clone();
            trigger.insert("parameters", self.trigger.masked_parameters(types));
            document.insert("trigger", trigger);
        }
        document
    }

    /// Its reference.
    pub(crate) fn reference(&self) -> &str {
        self.document.get("ref").and_then(Value::as_str).unwrap_or_default()
    }

    /// Its id.
    pub(crate) fn id(&self) -> &str {
        self.document.get("id").and_then(Value::as_str).unwrap_or_default()
    }
}

/// Checks the parameters of a trigger by its type.
fn check_trigger(trigger: &Trigger, types: &TriggerTypes) -> Result<(), String> {
    let Some(kind) = types.get(&trigger.kind) else {
        let kind = &trigger.kind;
        return Err(format!("trigger type `{kind}` is not registered; register its pack first"));
    };
    if TIMER_TYPES.contains(&trigger.kind.as_str()) {
        return Timer::read(&trigger.kind, &trigger.parameters).map(drop).map_err(|error| error.to_string());
    }
    if trigger.kind == WEBHOOK_TYPE {
        let settings = WebhookSettings::read(&trigger.parameters).map_err(|error| error.to_string())?;
        return match settings.url == INJECTION {
            true => Err(format!(
                "`{INJECTION}` is no address of a webhook: requests to it name their trigger; use another `url`"
            )),
            false => Ok(()),
        };
    }
    match kind.get("parameters_schema").and_then(Value::as_map).filter(|schema| !schema.is_empty()) {
        None => Ok(()),
        Some(schema) => {
            let schema = Schema::compile(&Value::Map(schema.clone())).map_err(|error| error.to_string())?;
            let checked = schema.validate(&Value::Map(trigger.parameters.clone()), Defaults::AssignedOrNone);
            checked.map(drop).map_err(|error| error.to_string())
        }
    }
}
