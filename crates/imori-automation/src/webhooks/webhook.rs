//! A request to a webhook, from its headers and bytes to the payload of the trigger.

use std::fmt;

use super::body::{BodyError, decode, payload_of_form};
use super::challenge::{Answer, Challenge};
use super::headers::{Headers, lower_case};
use super::scheme::Refusal;
use super::settings::{DeliveryKey, WebhookSettings};
use super::signature::{Verified, verify};
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
    /// Verifies a request, then decodes it. `body` is unchanged, as the sender signed it.
    ///
    /// # Errors
    /// The proof is absent or wrong, or a verified body is too long or cannot be decoded.
    pub fn accept(&self, headers: &Headers, body: &[u8], now: Timestamp) -> Result<Accepted, WebhookError> {
        if body.len() > WEBHOOK_BODY_BYTES_MAX {
            return Err(WebhookError::TooLarge);
        }
        let verified =
            verify(&self.scheme, &self.secrets, headers, body, now).map_err(WebhookError::Unauthorized)?;
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

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "It's a Secret to Everybody";

    fn settings(parameters: &str) -> WebhookSettings {
        WebhookSettings::read(Value::from_json(parameters.as_bytes()).unwrap().as_map().unwrap()).unwrap()
    }

    fn accept(
        settings: &WebhookSettings,
        lines: &[(&str, &str)],
        body: &str,
    ) -> Result<Accepted, WebhookError> {
        let headers = lines.iter().map(|(name, value)| (name, value)).collect();
        settings.accept(&headers, body.as_bytes(), Timestamp::from_seconds(1_531_420_618))
    }

    fn event(settings: &WebhookSettings, lines: &[(&str, &str)], body: &str) -> WebhookEvent {
        match accept(settings, lines, body) {
            Ok(Accepted::Event(event)) => event,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn payload_is_that_of_stackstorm() {
        let lines = [("content-type", "application/json"), ("st2-api-key", "k"), ("st2-trace-tag", "tag1")];
        let event = event(&settings(r#"{"url":"git"}"#), &lines, r#"{"a":[1]}"#);
        let payload = r#"{"headers":{"Content-Type":"application/json"},"headers_lower":{"content-type":"application/json"},"body":{"a":[1]}}"#;
        assert_eq!(Value::from(event.payload).to_json(), payload);
        assert_eq!((event.key, event.trace_tag.as_deref()), (None, Some("tag1")));
    }

    #[test]
    fn form_of_github_has_the_body_in_its_payload() {
        let github = settings(&format!(r#"{{"url":"git","scheme":"github","secret":"{SECRET}"}}"#));
        let form = "payload=%7B%22zen%22%3A%22Approachable%22%7D";
        let form_type = ("content-type", "application/x-www-form-urlencoded");
        let signature = "sha256=7f742952dfe7723a9ca36951645c1e03c340defda1fefacd3593ad7a55223c28";
        let lines = [form_type, ("x-hub-signature-256", signature), ("x-github-delivery", "72d3162e")];
        let signed = event(&github, &lines, form);
        assert_eq!(signed.payload.get("body").unwrap().to_json(), r#"{"zen":"Approachable"}"#);
        assert_eq!(signed.key.as_deref(), Some("72d3162e"));
        let unsigned = event(&settings(r#"{"url":"git"}"#), &[form_type], form);
        let body = unsigned.payload.get("body").unwrap().to_json();
        assert_eq!(body, r#"{"payload":["{\"zen\":\"Approachable\"}"]}"#);
    }

    #[test]
    fn header_of_the_token_is_no_payload() {
        let token = settings(r#"{"url":"lab","scheme":"token","secret":"t","header":"X-Gitlab-Token"}"#);
        let event = event(&token, &[("x-gitlab-token", "t"), ("x-gitlab-event", "Push")], "");
        let payload =
            r#"{"headers":{"X-Gitlab-Event":"Push"},"headers_lower":{"x-gitlab-event":"Push"},"body":{}}"#;
        assert_eq!(Value::from(event.payload).to_json(), payload);
    }

    #[test]
    fn challenge_of_slack_is_answered_only_if_it_is_signed() {
        let slack =
            settings(r#"{"url":"slack","scheme":"slack","secret":"8f742231b10e8888abcd99yyyzzz85a5"}"#);
        let body = r#"{"token":"J","challenge":"3eZb","type":"url_verification"}"#;
        let signature = "v0=9a272eb0a76c3a4f672790468eb51bddf2a39e994e075eb477c2283f381743ed";
        let lines = [("x-slack-request-timestamp", "1531420618"), ("x-slack-signature", signature)];
        let Ok(Accepted::Challenge(answer)) = accept(&slack, &lines, body) else { panic!("no challenge") };
        assert_eq!(answer.body, "3eZb");
        assert_eq!(accept(&slack, &lines[..1], body), Err(WebhookError::Unauthorized(Refusal::Absent)));
    }

    #[test]
    fn challenge_in_a_query_is_answered() {
        let dropbox = settings(r#"{"url":"a","challenge":"parameter","challenge_parameter":"challenge"}"#);
        assert_eq!(dropbox.answer("challenge=abc").unwrap().body, "abc");
        assert_eq!(dropbox.answer(""), None);
        assert_eq!(settings(r#"{"url":"a"}"#).answer("challenge=abc"), None);
    }

    #[test]
    fn deliveries_have_the_key_that_is_asked_for() {
        let rows = [
            (r#"{"url":"a"}"#, Some("i")),
            (r#"{"url":"a","delivery_header":"x-id"}"#, Some("h")),
            (r#"{"url":"a","delivery_header":"x-none"}"#, None),
            (r#"{"url":"a","delivery_field":"event_id"}"#, Some("Ev1")),
            (r#"{"url":"a","delivery_field":"number"}"#, Some("7")),
            (r#"{"url":"a","delivery_field":"list"}"#, None),
        ];
        for (parameters, key) in rows {
            let lines = [("idempotency-key", "i"), ("X-Id", "h")];
            let event = event(&settings(parameters), &lines, r#"{"event_id":"Ev1","number":7,"list":[]}"#);
            assert_eq!(event.key.as_deref(), key, "{parameters}");
        }
        let long = "a".repeat(257);
        let refused = accept(&settings(r#"{"url":"a"}"#), &[("idempotency-key", &long)], "");
        assert_eq!(refused, Err(WebhookError::DeliveryKey));
    }

    #[test]
    fn refusals_look_the_same_to_the_sender() {
        let github = settings(&format!(r#"{{"url":"git","scheme":"github","secret":"{SECRET}"}}"#));
        let signed =
            |signature| accept(&github, &[("x-hub-signature-256", signature)], "Hello, World!").unwrap_err();
        let errors = [accept(&github, &[], "").unwrap_err(), signed("sha256=00"), signed("nothing")];
        for error in errors {
            assert_eq!(error.status(), 401);
            let text = "the request is not signed as the webhook demands; check secret, headers and clock";
            assert_eq!(error.to_string(), text);
        }
    }

    #[test]
    fn body_is_limited_and_has_to_be_what_it_claims() {
        let plain = settings(r#"{"url":"a"}"#);
        let long = "a".repeat(WEBHOOK_BODY_BYTES_MAX + 1);
        assert_eq!(accept(&plain, &[], &long).unwrap_err().status(), 413);
        let error = accept(&plain, &[], "{").unwrap_err();
        assert_eq!(error.status(), 400);
        let text = "the body is no JSON: EOF while parsing an object at line 1 column 1; send JSON, or another `Content-Type`";
        assert_eq!(error.to_string(), text);
    }
}
