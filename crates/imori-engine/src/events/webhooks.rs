//! Webhooks: a request is checked by the settings of each trigger at its address, and answered once its events are on
//! disk.

use std::sync::Arc;

use imori_automation::ids::Id;
use imori_automation::value::Value;
use imori_automation::webhooks::{Accepted, Answer, Headers, Scheme, WebhookError};
use tracing::warn;

use super::dispatch::TriggerEvent;
use crate::engine::Engine;
use crate::registry::Webhook;
use crate::store::StoreError;

/// The address whose requests name their trigger, as in StackStorm. No rule has it.
pub(crate) const INJECTION: &str = "st2";

/// What a request to a webhook gets.
#[derive(Debug)]
pub(crate) enum WebhookAnswer {
    /// The events are on disk; this is the body that was sent.
    Accepted(Value),
    /// The sender checks its receiver.
    Challenge(Answer),
}

/// Why a request to a webhook is refused.
#[derive(Debug)]
pub(crate) enum WebhookRefusal {
    /// No rule has a webhook at this address.
    Unknown,
    /// The request is wrong or not signed.
    Wrong(WebhookError),
    /// The rules at this address check no signature, so the sender has to log in.
    NoLogin,
    /// The store refuses; the sender tries again.
    Store(StoreError),
}

impl Engine {
    /// The answer to a sender that checks its receiver by a query, if it does.
    pub(crate) fn webhook_challenge(&self, url: &str, query: &str) -> Option<Answer> {
        self.webhooks(url).iter().find_map(|webhook| webhook.settings.answer(query))
    }

    /// Whether a webhook at this address has a proof of its own, so that its senders need no login.
    pub(crate) fn is_webhook_signed(&self, url: &str) -> bool {
        url != INJECTION
            && self.webhooks(url).iter().any(|webhook| webhook.settings.scheme != Scheme::Unsigned)
    }

    /// Makes an event for each trigger at this address whose proof the request has; a trigger that asks for none takes
    /// only requests whose sender has logged in, whatever others at the address ask for.
    ///
    /// # Errors
    /// There is no trigger, no trigger takes the request, or the store refuses.
    pub(crate) async fn accept_webhook(
        self: &Arc<Self>,
        url: &str,
        headers: &Headers,
        body: &[u8],
        has_login: bool,
    ) -> Result<WebhookAnswer, WebhookRefusal> {
        let now = self.now();
        let mut refusal = WebhookRefusal::Unknown;
        let mut events = Vec::new();
        for webhook in self.webhooks(url) {
            if webhook.settings.scheme == Scheme::Unsigned && !has_login {
                if matches!(refusal, WebhookRefusal::Unknown) {
                    refusal = WebhookRefusal::NoLogin;
                }
                continue;
            }
            let trigger = Arc::clone(&webhook.trigger);
            match webhook.settings.accept(headers, body, now) {
                Ok(Accepted::Challenge(answer)) => return Ok(WebhookAnswer::Challenge(answer)),
                Ok(Accepted::Event(event)) => {
                    let id = match &event.key {
                        None => self.new_id(),
                        Some(key) => Id::derived(0, &[b"webhook", trigger.id.as_bytes(), key.as_bytes()]),
                    };
                    events.push(TriggerEvent {
                        id,
                        trigger,
                        payload: Value::Map(event.payload),
                        occurred: now,
                    });
                }
                Err(error) => {
                    warn!(webhook = url, %error, reason = ?error, "a request to a webhook is refused");
                    refusal = WebhookRefusal::Wrong(error);
                }
            }
        }
        let Some(shown) = events.first().and_then(|event| event.payload.get("body").cloned()) else {
            return Err(refusal);
        };
        for event in events {
            self.accept(event).await.map_err(WebhookRefusal::Store)?;
        }
        Ok(WebhookAnswer::Accepted(shown))
    }

    fn webhooks(&self, url: &str) -> Vec<Arc<Webhook>> {
        self.registry().webhooks.get(url).cloned().unwrap_or_default()
    }
}
