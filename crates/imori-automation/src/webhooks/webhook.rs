//! A request to a webhook, from its headers and bytes to the payload of the trigger.

use std::fmt;

use super::body::{BodyError, decode, payload_of_form};
use super::challenge::{Answer, Challenge};
use super::headers::{Headers, lower_case};
use super::scheme::Refusal;
use super::settings::{DeliveryKey, WebhookSettings};
use super::signature::{Proof, Verified};
use crate::limits::{DELIVERY_KEY_BYTES_MAX, WEBHOOK_BODY_BYTES_MAX};
use crate::times::Timestamp;
use crate::value::{Map, Value};

/// A checked request.
#[derive(Debug, Clone, PartialEq)]
pub enum Accepted {
    /// The sender makes sure of its receiver: send this and start nothing.
    Challenge(Answer),
    /// The trigger fires.
    Event(WebhookEvent),
}

/// The event that a request makes.
#[derive(Debug, Clone, PartialEq)]
pub struct WebhookEvent {
    /// The payload of the trigger: `headers`, `headers_lower` and `body`, as in StackStorm.
    pub payload: Map,
    /// What tells this delivery apart from others of the webhook: a second one with the key is the same again.
    pub key: Option<String>,
    /// The tag by which the sender wants to trace what follows.
    pub trace_tag: Option<String>,
}

/// Why a request is refused. The text is for the sender.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WebhookError {
    /// The proof is absent or wrong. The reason is for the log only: the text is the same for all.
    Unauthorized(Refusal),
    /// The body is longer than `WEBHOOK_BODY_BYTES_MAX`.
    TooLarge,
    /// The body cannot be decoded.
    Body(BodyError),
    /// What tells the delivery apart is longer than `DELIVERY_KEY_BYTES_MAX`.
    DeliveryKey,
}

impl WebhookSettings {
    /// Begins the check of a request whose body is to come.
    ///
    /// # Errors
    /// The headers prove nothing, whatever the body is.
    pub fn begin(&self, headers: &Headers, now: Timestamp) -> Result<Proof, WebhookError> {
        Proof::begin(&self.scheme, &self.secrets, headers, now).map_err(WebhookError::Unauthorized)
    }

    /// Decodes the body of a verified request. `body` is unchanged, as the sender signed it.
    ///
    /// # Errors
    /// The body is too long or cannot be decoded.
    pub fn accept(
        &self,
        headers: &Headers,
        body: &[u8],
        verified: Verified,
    ) -> Result<Accepted, WebhookError> {
        if body.len() > WEBHOOK_BODY_BYTES_MAX {
            return Err(WebhookError::TooLarge);
        }
        let mut body = decode(headers.value("Content-Type"), body).map_err(WebhookError::Body)?;
        if self.scheme.has_payload_forms() {
            body = payload_of_form(&body).unwrap_or(body);
        }
        if let Some(answer) = self.challenge.as_ref().and_then(|challenge| challenge.answer_body(&body)) {
            return Ok(Accepted::Challenge(answer));
        }
        let key = self.key(headers, &body, verified);
        if key.as_ref().is_some_and(|key| key.len() > DELIVERY_KEY_BYTES_MAX) {
            return Err(WebhookError::DeliveryKey);
        }
        let trace_tag = headers.trace_tag().map(str::to_owned);
        let headers = headers.payload(self.scheme.secret_header());
        let lower = lower_case(&headers);
        let payload =
            [("headers", Value::from(headers)), ("headers_lower", Value::from(lower)), ("body", body)];
        Ok(Accepted::Event(WebhookEvent { payload: payload.into_iter().collect(), key, trace_tag }))
    }

    /// The answer to a request without a body, such as GET, that may be a challenge: `query` is what stands behind
    /// `?`. `None` means that it is none, or that its proof is wrong.
    pub fn answer(&self, query: &str) -> Option<Answer> {
        self.challenge.as_ref().and_then(|challenge: &Challenge| challenge.answer_query(query))
    }

    fn key(&self, headers: &Headers, body: &Value, verified: Verified) -> Option<String> {
        match &self.delivery_key {
            DeliveryKey::Default => {
                verified.key.or_else(|| headers.value("Idempotency-Key").map(str::to_owned))
            }
            DeliveryKey::Header(name) => headers.value(name).map(str::to_owned),
            DeliveryKey::Field(name) => match body.get(name)? {
                Value::String(text) => Some(text.clone()),
                Value::Int(number) => Some(number.to_string()),
                _ => None,
            },
        }
        .filter(|key| !key.is_empty())
    }
}

impl WebhookError {
    /// The status of HTTP for the answer.
    pub fn status(&self) -> u16 {
        match self {
            WebhookError::Unauthorized(_) => 401,
            WebhookError::TooLarge => 413,
            WebhookError::Body(_) | WebhookError::DeliveryKey => 400,
        }
    }
}

impl fmt::Display for WebhookError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WebhookError::Unauthorized(_) => f.write_str(
                "the request is not signed as the webhook demands; check secret, headers and clock",
            ),
            WebhookError::TooLarge => {
                write!(f, "the body is longer than {WEBHOOK_BODY_BYTES_MAX} bytes; send less")
            }
            WebhookError::Body(error) => error.fmt(f),
            WebhookError::DeliveryKey => {
                write!(f, "the id of the delivery is longer than {DELIVERY_KEY_BYTES_MAX} bytes; shorten it")
            }
        }
    }
}

impl std::error::Error for WebhookError {}
