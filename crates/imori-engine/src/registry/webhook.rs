//! A webhook: a trigger with an address and settings, read once.

use std::sync::Arc;

use imori_automation::value::Value;
use imori_automation::webhooks::WebhookSettings;

use super::trigger::{Trigger, WEBHOOK_TYPE};

/// The address whose requests name their trigger, as in StackStorm; no rule has it.
pub(crate) const INJECTION: &str = "st2";

/// A webhook.
#[derive(Debug)]
pub(crate) struct Webhook {
    /// The address, without slashes around it.
    pub(crate) url: String,
    /// The trigger.
    pub(crate) trigger: Arc<Trigger>,
    /// How requests are checked.
    pub(crate) settings: WebhookSettings,
}

impl Webhook {
    /// The webhook of a trigger, if it is one. Wrong settings were refused when its rule was registered.
    pub(crate) fn of(trigger: &Arc<Trigger>) -> Option<Webhook> {
        if trigger.kind != WEBHOOK_TYPE {
            return None;
        }
        let url = trigger.parameters.get("url").and_then(Value::as_str)?.trim_matches('/').to_owned();
        let settings = WebhookSettings::read(&trigger.parameters).ok()?;
        Some(Webhook { url, trigger: Arc::clone(trigger), settings })
    }
}
