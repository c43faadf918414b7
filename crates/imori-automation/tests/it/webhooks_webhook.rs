//! Requests to webhooks.

use imori_automation::limits::WEBHOOK_BODY_BYTES_MAX;
use imori_automation::times::Timestamp;
use imori_automation::value::Value;
use imori_automation::webhooks::{Accepted, Headers, Refusal, WebhookError, WebhookEvent, WebhookSettings};

use crate::map;

const SECRET: &str = "It's a Secret to Everybody";

/// The settings of a webhook with these parameters.
pub(crate) fn settings(parameters: &str) -> WebhookSettings {
    WebhookSettings::read(&map(parameters)).unwrap()
}

/// Shows a request to a webhook.
pub(crate) fn accept(
    settings: &WebhookSettings,
    lines: &[(&str, &str)],
    body: &str,
) -> Result<Accepted, WebhookError> {
    let headers = lines.iter().map(|(name, value)| (name, value)).collect();
    checked(settings, &headers, body.as_bytes(), Timestamp::from_seconds(1_531_420_618))
}

/// Shows a request with these headers to a webhook.
pub(crate) fn checked(
    settings: &WebhookSettings,
    headers: &Headers,
    body: &[u8],
    now: Timestamp,
) -> Result<Accepted, WebhookError> {
    let mut proof = settings.begin(headers, now)?;
    proof.update(body);
    settings.accept(headers, body, proof.finish().map_err(WebhookError::Unauthorized)?)
}

/// The event of a request that is accepted.
pub(crate) fn event(settings: &WebhookSettings, lines: &[(&str, &str)], body: &str) -> WebhookEvent {
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
    let slack = settings(r#"{"url":"slack","scheme":"slack","secret":"8f742231b10e8888abcd99yyyzzz85a5"}"#);
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
