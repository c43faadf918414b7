//! A trigger: a trigger type with parameters, as a rule names it.

use std::collections::BTreeMap;
use std::sync::Arc;

use imori_automation::ids::Id;
use imori_automation::parameters::{MASK, mask, mask_parameters};
use imori_automation::value::{Map, Value};
use imori_automation::webhooks::SECRET_SETTINGS;

/// Trigger types by reference.
pub(crate) type TriggerTypes = BTreeMap<String, Arc<Map>>;

/// The trigger type of ends of actions.
pub(crate) const ACTION_TYPE: &str = "core.st2.generic.actiontrigger";

/// The trigger types of timers.
pub(crate) const TIMER_TYPES: [&str; 3] =
    ["core.st2.IntervalTimer", "core.st2.DateTimer", "core.st2.CronTimer"];

/// The trigger type of webhooks.
pub(crate) const WEBHOOK_TYPE: &str = "core.st2.webhook";

/// A trigger.
#[derive(Debug, Clone, PartialEq)]
pub struct Trigger {
    /// Its id.
    pub(crate) id: String,
    /// Its reference; without parameters, the type's reference.
    pub reference: String,
    /// The reference of its type.
    pub(crate) kind: String,
    /// Its parameters.
    pub(crate) parameters: Map,
}

impl Trigger {
    /// The trigger of this type and these parameters.
    pub fn new(kind: &str, parameters: Map) -> Trigger {
        let text = Value::Map(parameters.clone()).to_json();
        let id = Id::derived(0, &[b"trigger", kind.as_bytes(), text.as_bytes()]).to_string();
        let reference = match (parameters.is_empty(), kind.split_once('.')) {
            (false, Some((pack, _))) => format!("{pack}.{id}"),
            _ => kind.to_owned(),
        };
        Trigger { id, reference, kind: kind.to_owned(), parameters }
    }

    /// The document that the API shows, without secrets.
    pub(crate) fn document(&self, types: &TriggerTypes) -> Map {
        let mut document = self.full_document();
        document.insert("parameters", self.masked_parameters(types));
        document
    }

    /// A payload with masks for what the schema of the type calls secret.
    pub(crate) fn masked_payload(&self, types: &TriggerTypes, payload: &Value) -> Value {
        let schema = types.get(&self.kind).and_then(|kind| kind.get("payload_schema"));
        schema.map_or_else(|| payload.clone(), |schema| mask(payload, schema))
    }

    /// The parameters with masks for a webhook's secrets, and for what the schema of the type calls secret.
    pub(crate) fn masked_parameters(&self, types: &TriggerTypes) -> Map {
        let schema = types.get(&self.kind).and_then(|kind| kind.get("parameters_schema"));
        let properties = schema.and_then(|schema| schema.get("properties")?.as_map());
        let masked = properties.map_or_else(
            || self.parameters.clone(),
            |properties| mask_parameters(&self.parameters, properties),
        );
        if self.kind == WEBHOOK_TYPE { mask_webhook(masked) } else { masked }
    }

    /// The document with secret parameters, for the sensor of its type.
    pub(crate) fn full_document(&self) -> Map {
        let (pack, name) = self.reference.split_once('.').unwrap_or(("", &self.reference));
        let mut document = Map::new();
        document.insert("id", self.id.as_str());
        document.insert("ref", self.reference.as_str());
        document.insert("uid", format!("trigger:{pack}:{name}"));
        document.insert("name", name);
        document.insert("pack", pack);
        document.insert("type", self.kind.as_str());
        document.insert("parameters", self.parameters.clone());
        document
    }
}

/// Masks the secrets of a webhook, which stand beside its address or below `x-imori`.
fn mask_webhook(mut parameters: Map) -> Map {
    for key in SECRET_SETTINGS {
        if parameters.contains_key(key) {
            parameters.insert(key, MASK);
        }
    }
    if let Some(Value::Map(inner)) = parameters.get("x-imori") {
        parameters.insert("x-imori", mask_webhook(inner.clone()));
    }
    parameters
}
