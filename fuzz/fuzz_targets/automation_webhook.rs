//! Any request to a webhook of each scheme, and any settings.
//!
//! Input: lines of headers, an empty line, and the body, which is also read as settings and as a query.
//! Held: nothing panics; no request without a signature passes a scheme; one that needs none is refused for its body
//! only; headers that authenticate are in no payload.

use std::sync::LazyLock;

use imori_automation::times::Timestamp;
use imori_automation::value::{Map, Value};
use imori_automation::webhooks::{Accepted, Headers, Scheme, WebhookError, WebhookSettings};

use crate::planted::fail_if_planted;

static WEBHOOKS: LazyLock<Vec<WebhookSettings>> = LazyLock::new(|| {
    let settings = [
        r#"{"url":"a","challenge":"parameter","challenge_parameter":"c","delivery_field":"id"}"#,
        r#"{"url":"a","scheme":"github","secrets":["s","t"],"sha1":true}"#,
        r#"{"url":"a","scheme":"slack","secret":"s"}"#,
        r#"{"url":"a","scheme":"stripe","secret":"s"}"#,
        r#"{"url":"a","scheme":"standard","secret":"whsec_YWJj"}"#,
        r#"{"url":"a","scheme":"hmac","secret":"s","header":"x-sign","encoding":"base64","timestamp_header":"x-time"}"#,
        r#"{"url":"a","challenge":"hub","verify_token":"t","scheme":"token","secret":"secret","header":"x-token"}"#,
    ];
    settings.map(|text| settings_of(text.as_bytes()).expect("these settings are right")).into()
});

fn settings_of(text: &[u8]) -> Option<WebhookSettings> {
    WebhookSettings::read(Value::from_json(text).ok()?.as_map()?).ok()
}

/// Runs one input.
pub(crate) fn test_one_input(data: &[u8]) {
    let end = data.windows(2).position(|bytes| bytes == b"\n\n").unwrap_or(data.len());
    let (lines, body) = data.split_at(end);
    let body = body.get(2..).unwrap_or_default();
    let lines = lines.split(|byte| *byte == b'\n').filter_map(|line| {
        let colon = line.iter().position(|byte| *byte == b':')?;
        Some((str::from_utf8(&line[..colon]).ok()?, &line[colon + 1..]))
    });
    let headers: Headers = lines.collect();
    let now = Timestamp::from_seconds(1_500_000_000);
    for webhook in WEBHOOKS.iter() {
        let accepted = webhook.begin(&headers, now).and_then(|mut proof| {
            proof.update(body);
            let verified = proof.finish().map_err(WebhookError::Unauthorized)?;
            webhook.accept(&headers, body, verified)
        });
        match &accepted {
            Ok(Accepted::Event(event)) => {
                let headers = event.payload.get("headers_lower").expect("a payload has headers");
                assert!(headers.get("cookie").is_none() && headers.get("x-auth-token").is_none());
                planted(headers.as_map().expect("headers are an object"));
            }
            Ok(Accepted::Challenge(answer)) => assert!(!answer.content_type.contains("html")),
            Err(error) => {
                let is_refused = matches!(error, WebhookError::Unauthorized(_));
                assert!(!is_refused || webhook.scheme != Scheme::Unsigned);
            }
        }
        let is_signed = ["signature", "sign", "token"]
            .iter()
            .any(|word| data.to_ascii_lowercase().windows(word.len()).any(|bytes| bytes == word.as_bytes()));
        assert!(
            webhook.scheme == Scheme::Unsigned || is_signed || accepted.is_err(),
            "nothing proves the sender"
        );
        if let Ok(query) = str::from_utf8(body) {
            webhook.answer(query);
        }
    }
    if let Some(webhook) = settings_of(body) {
        assert!(
            !webhook.url.is_empty() && (webhook.scheme == Scheme::Unsigned) == webhook.secrets.is_empty()
        );
    }
}

/// Does nothing unless a fault is planted: then two headers in a payload are one too many.
fn planted(headers: &Map) {
    let is_found = headers.len() == 2;
    fail_if_planted(is_found);
}
