//! Bodies of requests.

use data_encoding::HEXLOWER;
use imori_automation::limits::FORM_FIELDS_MAX;
use imori_automation::times::Timestamp;
use imori_automation::value::Value;
use imori_automation::webhooks::{Accepted, BodyError, Headers, WebhookError, WebhookSettings};
use ring::hmac;

use crate::webhooks_webhook::{checked, settings};

/// The `body` of the payload of a request.
fn payload(settings: &WebhookSettings, headers: &Headers, body: &[u8]) -> Result<Value, BodyError> {
    match checked(settings, headers, body, Timestamp::from_seconds(0)) {
        Ok(Accepted::Event(event)) => Ok(event.payload.get("body").cloned().unwrap()),
        Err(WebhookError::Body(error)) => Err(error),
        other => panic!("{other:?}"),
    }
}

fn decode(content_type: Option<&str>, body: &[u8]) -> Result<Value, BodyError> {
    let headers = content_type.map(|content_type| ("content-type", content_type)).into_iter().collect();
    payload(&settings(r#"{"url":"a"}"#), &headers, body)
}

#[test]
fn body_is_decoded_by_its_type() {
    let json = Some("application/json; charset=utf-8");
    let form = Some("application/x-www-form-urlencoded; charset=UTF-8");
    let rows: [(Option<&str>, &str, &str); 11] = [
        (json, r#"{"b":1,"a":[2.0]}"#, r#"{"b":1,"a":[2.0]}"#),
        (json, "[1]", "[1]"),
        (json, "", "{}"),
        (None, "{}", "{}"),
        (Some("Application/CloudEvents+JSON"), "{}", "{}"),
        (form, "form=test", r#"{"form":["test"]}"#),
        (form, "a=1&b=%7B&a=2", r#"{"a":["1","2"],"b":["{"]}"#),
        (form, "", "{}"),
        (Some("text/plain"), "{}", r#""{}""#),
        (Some("text/plain"), "", r#""""#),
        (Some("application/xml"), "<a/>", r#""<a/>""#),
    ];
    for (content_type, body, expected) in rows {
        assert_eq!(
            decode(content_type, body.as_bytes()).unwrap().to_json(),
            expected,
            "{content_type:?} {body}"
        );
    }
}

#[test]
fn wrong_body_is_refused() {
    assert!(matches!(decode(None, b"{"), Err(BodyError::Json(_))));
    assert!(matches!(decode(None, &b"[".repeat(100_000)), Err(BodyError::Json(_))));
    assert_eq!(decode(Some("text/plain"), b"\xff"), Err(BodyError::Encoding));
    let form = "a=1&".repeat(FORM_FIELDS_MAX + 1);
    assert_eq!(
        decode(Some("application/x-www-form-urlencoded"), form.as_bytes()),
        Err(BodyError::FormFields)
    );
}

#[test]
fn payload_is_the_only_field_of_a_form() {
    let key = hmac::Key::new(hmac::HMAC_SHA256, b"s");
    let github = settings(r#"{"url":"git","scheme":"github","secret":"s"}"#);
    let body = |content_type: &str, body: &str| {
        let signature = format!("sha256={}", HEXLOWER.encode(hmac::sign(&key, body.as_bytes()).as_ref()));
        let lines = [("content-type", content_type), ("x-hub-signature-256", &signature)];
        payload(&github, &lines.into_iter().collect(), body.as_bytes()).unwrap().to_json()
    };
    let form = "application/x-www-form-urlencoded";
    assert_eq!(body(form, "payload=%7B%22a%22%3A1%7D"), r#"{"a":1}"#);
    for (text, unchanged) in [
        ("payload=%7B%7D&payload=%7B%7D", r#"{"payload":["{}","{}"]}"#),
        ("payload=%7B", r#"{"payload":["{"]}"#),
        ("payload=%7B%7D&b=1", r#"{"payload":["{}"],"b":["1"]}"#),
    ] {
        assert_eq!(body(form, text), unchanged, "{text}");
    }
    assert_eq!(body("application/json", "[]"), "[]");
}
