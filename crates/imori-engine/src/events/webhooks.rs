//! Webhooks: a request is checked by the settings of each trigger at its address, and answered once its events are on
//! disk.

use std::sync::Arc;

use imori_automation::ids::Id;
use imori_automation::value::Value;
use imori_automation::webhooks::{Accepted, Answer, Headers, Proof, Scheme, Verified, WebhookError};
use tracing::warn;

use super::dispatch::TriggerEvent;
use crate::engine::Engine;
use crate::registry::{INJECTION, Webhook};
use crate::store::StoreError;

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

/// A request to a webhook whose body is to come.
#[derive(Debug)]
pub(crate) struct WebhookRequest {
    headers: Headers,
    checks: Vec<(Arc<Webhook>, Proof)>,
}

impl WebhookRequest {
    /// Takes the next bytes of the body.
    pub(crate) fn update(&mut self, bytes: &[u8]) {
        self.checks.iter_mut().for_each(|(_, proof)| proof.update(bytes));
    }

    /// The request, once its body has come.
    ///
    /// # Errors
    /// No trigger has the proof that it asks for.
    pub(crate) fn verified(self) -> Result<VerifiedRequest, WebhookRefusal> {
        let mut refusal = WebhookRefusal::Unknown;
        let mut webhooks = Vec::new();
        for (webhook, proof) in self.checks {
            match proof.finish() {
                Ok(verified) => webhooks.push((webhook, verified)),
                Err(error) => refusal = refused(&webhook.url, WebhookError::Unauthorized(error)),
            }
        }
        match webhooks.is_empty() {
            true => Err(refusal),
            false => Ok(VerifiedRequest { headers: self.headers, webhooks }),
        }
    }
}

/// A request to a webhook with the triggers whose proof it has.
#[derive(Debug)]
pub(crate) struct VerifiedRequest {
    headers: Headers,
    webhooks: Vec<(Arc<Webhook>, Verified)>,
}

/// Logs why a trigger refuses a request.
fn refused(url: &str, error: WebhookError) -> WebhookRefusal {
    warn!(webhook = url, %error, reason = ?error, "a request to a webhook is refused");
    WebhookRefusal::Wrong(error)
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

    /// Begins a request to this address whose body is to come. A trigger that asks for no proof takes only requests whose
    /// sender has logged in, whatever others at the address ask for.
    ///
    /// # Errors
    /// There is no trigger, or no trigger takes the request, whatever its body is.
    pub(crate) fn begin_webhook(
        &self,
        url: &str,
        headers: Headers,
        has_login: bool,
    ) -> Result<WebhookRequest, WebhookRefusal> {
        let now = self.now();
        let mut refusal = WebhookRefusal::Unknown;
        let mut checks = Vec::new();
        for webhook in self.webhooks(url) {
            if webhook.settings.scheme == Scheme::Unsigned && !has_login {
                if matches!(refusal, WebhookRefusal::Unknown) {
                    refusal = WebhookRefusal::NoLogin;
                }
                continue;
            }
            match webhook.settings.begin(&headers, now) {
                Ok(proof) => checks.push((webhook, proof)),
                Err(error) => refusal = refused(url, error),
            }
        }
        match checks.is_empty() {
            true => Err(refusal),
            false => Ok(WebhookRequest { headers, checks }),
        }
    }

    /// Makes an event for each trigger whose proof the request has.
    ///
    /// # Errors
    /// No trigger takes the request, or the store refuses.
    pub(crate) async fn accept_webhook(
        self: &Arc<Self>,
        VerifiedRequest { headers, webhooks }: VerifiedRequest,
        body: Vec<u8>,
    ) -> Result<WebhookAnswer, WebhookRefusal> {
        let now = self.now();
        let mut refusal = WebhookRefusal::Unknown;
        let mut events = Vec::new();
        for (webhook, verified) in webhooks {
            let trigger = Arc::clone(&webhook.trigger);
            match webhook.settings.accept(&headers, &body, verified) {
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
                Err(error) => refusal = refused(&webhook.url, error),
            }
        }
        drop(body);
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
