//! A trigger: a trigger type with parameters, as a rule names it.

use imori_automation::ids::Id;
use imori_automation::value::{Map, Value};

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

    /// The document that the API shows.
    pub(crate) fn document(&self) -> Map {
        let mut document = self.full_document();
        document.insert("parameters", shown(&self.parameters));
        document
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

/// The parameters without a webhook's secret.
fn shown(parameters: &Map) -> Map {
    let mut shown = parameters.clone();
    for key in ["secret", "secrets", "token", "verify_token"] {
        if shown.contains_key(key) {
            shown.insert(key, "********");
        }
    }
    shown
}
