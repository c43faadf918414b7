//! Settings of webhooks.

use imori_automation::webhooks::{
    Algorithm, Challenge, DeliveryKey, Encoding, HmacScheme, Scheme, Secret, SettingsError, Signed,
    WebhookSettings,
};

use crate::map;

fn read(parameters: &str) -> Result<WebhookSettings, SettingsError> {
    WebhookSettings::read(&map(parameters))
}

fn check_refused(parameters: &str, message: &str) {
    assert_eq!(read(parameters).unwrap_err().to_string(), message, "{parameters}");
}

#[test]
fn url_alone_is_a_webhook_of_stackstorm() {
    let settings = read(r#"{"url":"/with/mixed/slash/"}"#).unwrap();
    let expected = WebhookSettings {
        url: "with/mixed/slash".to_owned(),
        scheme: Scheme::Unsigned,
        secrets: Vec::new(),
        delivery_key: DeliveryKey::Default,
        challenge: None,
    };
    assert_eq!(settings, expected);
}

#[test]
fn settings_may_stand_in_an_object_of_their_own() {
    let beside = read(r#"{"url":"git","scheme":"github","secret":"s","sha1":true}"#).unwrap();
    let inside = read(r#"{"url":"git","x-imori":{"scheme":"github","secret":"s","sha1":true}}"#).unwrap();
    assert_eq!(beside, inside);
    assert_eq!(beside.scheme, Scheme::GitHub { is_sha1_allowed: true });
    assert_eq!(beside.secrets, [Secret::new("s")]);
    let message = "`secret` stands in `x-imori` and beside it; remove one";
    check_refused(r#"{"url":"git","secret":"s","x-imori":{"secret":"s"}}"#, message);
    check_refused(r#"{"url":"git","x-imori":1}"#, "`x-imori` is no object; write its settings below it");
}

#[test]
fn schemes_have_their_settings() {
    let scheme = |parameters: &str| read(parameters).unwrap().scheme;
    assert_eq!(scheme(r#"{"url":"a","scheme":"slack","secret":"s"}"#), Scheme::Slack { window: 300 });
    assert_eq!(
        scheme(r#"{"url":"a","scheme":"stripe","secret":"s","window":9}"#),
        Scheme::Stripe { window: 9 }
    );
    let token = r#"{"url":"a","scheme":"token","secret":"s","header":"Authorization","prefix":"Bearer "}"#;
    let expected = Scheme::Token { header: "Authorization".to_owned(), prefix: "Bearer ".to_owned() };
    assert_eq!(scheme(token), expected);
    let hmac = r#"{"url":"a","scheme":"hmac","secret":"s","header":"X-Sign","algorithm":"sha512","encoding":"base64",
        "prefix":"v0=","timestamp_header":"X-Time","window":60,"signed":"v0:{timestamp}:{body}!"}"#;
    let text = |text: &str| Signed::Text(text.to_owned());
    let expected = HmacScheme {
        header: "X-Sign".to_owned(),
        algorithm: Algorithm::Sha512,
        encoding: Encoding::Base64,
        prefix: "v0=".to_owned(),
        timestamp: Some(("X-Time".to_owned(), 60)),
        signed: vec![text("v0:"), Signed::Timestamp, text(":"), Signed::Body, text("!")],
    };
    assert_eq!(scheme(hmac), Scheme::Hmac(expected));
}

#[test]
fn secrets_of_standard_webhooks_are_decoded() {
    let settings = read(r#"{"url":"a","scheme":"standard","secrets":["whsec_YWJj","ZGVm"]}"#).unwrap();
    assert_eq!(settings.secrets, [Secret::new("abc"), Secret::new("def")]);
    let message = "a secret is no Base64; copy it from the sender with `whsec_`";
    check_refused(r#"{"url":"a","scheme":"standard","secret":"whsec_abc"}"#, message);
    check_refused(r#"{"url":"a","scheme":"standard","secret":"whsec_"}"#, message);
}

#[test]
fn challenges_have_their_settings() {
    let challenge = |parameters: &str| read(parameters).unwrap().challenge;
    assert_eq!(challenge(r#"{"url":"a","scheme":"slack","secret":"s"}"#), Some(Challenge::Slack));
    let hub = Challenge::Hub { verify_token: Some(Secret::new("t")), topic: None };
    assert_eq!(challenge(r#"{"url":"a","challenge":"hub","verify_token":"t"}"#), Some(hub));
    let parameter = Challenge::Parameter("validationToken".to_owned());
    let parameters = r#"{"url":"a","challenge":"parameter","challenge_parameter":"validationToken"}"#;
    assert_eq!(challenge(parameters), Some(parameter));
    let message = "`verify_token` is missing; challenge `hub` needs it, or `topic`";
    check_refused(r#"{"url":"a","challenge":"hub"}"#, message);
    let message = "`challenge_parameter` is missing; challenge `parameter` needs it";
    check_refused(r#"{"url":"a","challenge":"parameter"}"#, message);
    let message = "`challenge` is `ping`; use one of `slack`, `hub`, `parameter`";
    check_refused(r#"{"url":"a","challenge":"ping"}"#, message);
}

#[test]
fn delivery_key_is_a_header_or_a_field() {
    let key = |parameters: &str| read(parameters).unwrap().delivery_key;
    assert_eq!(key(r#"{"url":"a","delivery_header":"X-Id"}"#), DeliveryKey::Header("X-Id".to_owned()));
    assert_eq!(key(r#"{"url":"a","delivery_field":"event_id"}"#), DeliveryKey::Field("event_id".to_owned()));
    assert_eq!(key(r#"{"url":"a","scheme":"stripe","secret":"s"}"#), DeliveryKey::Field("id".to_owned()));
    let message = "`delivery_header` and `delivery_field` are both given; remove one";
    check_refused(r#"{"url":"a","delivery_field":"a","delivery_header":"b"}"#, message);
}

#[test]
fn wrong_settings_are_refused_with_what_to_do() {
    check_refused("{}", "`url` is missing; the webhook needs it");
    check_refused(r#"{"url":"//"}"#, "`url` is empty; name a path below `webhooks/`");
    check_refused(r#"{"url":5}"#, "`url` is of type integer; write a text");
    let long = format!(r#"{{"url":"{}"}}"#, "a".repeat(2_000));
    check_refused(&long, "`url` is longer than 1024 bytes; shorten it");
    check_refused(
        r#"{"url":"a","scheme":"rot13"}"#,
        "`scheme` is `rot13`; use one of `github`, `slack`, `stripe`, `standard`, `hmac`, `token`",
    );
    check_refused(r#"{"url":"a","scheme":"github"}"#, "`secret` is missing; the scheme needs it");
    check_refused(
        r#"{"url":"a","scheme":"github","secret":"a","secrets":["b"]}"#,
        "`secret` and `secrets` are both given; put all into `secrets`",
    );
    check_refused(
        r#"{"url":"a","scheme":"github","secrets":[]}"#,
        "`secrets` is no list of texts; write one, or use `secret`",
    );
    check_refused(r#"{"url":"a","scheme":"github","secret":12}"#, "a secret is no text; quote it");
    check_refused(
        r#"{"url":"a","scheme":"github","secret":""}"#,
        "a secret is empty or too long; use 1 to 1024 bytes",
    );
    check_refused(
        r#"{"url":"a","scheme":"github","secrets":["1","2","3","4","5","6","7","8","9"]}"#,
        "`secrets` has 9; use 8 at most",
    );
    check_refused(r#"{"url":"a","scheme":"github","secret":"s","sha1":1}"#, "`sha1` is 1; use true or false");
    check_refused(
        r#"{"url":"a","scheme":"slack","secret":"s","window":0}"#,
        "`window` is 0; use seconds from 1 to 86400",
    );
    check_refused(
        r#"{"url":"a","scheme":"hmac","secret":"s"}"#,
        "`header` is missing; scheme `hmac` needs it",
    );
    check_refused(
        r#"{"url":"a","scheme":"hmac","secret":"s","header":"h","algorithm":"md5"}"#,
        "`algorithm` is `md5`; use one of `sha1`, `sha256`, `sha384`, `sha512`",
    );
}

#[test]
fn timestamp_that_is_not_signed_is_refused() {
    for rest in [
        r#""timestamp_header":"t","signed":"{body}""#,
        r#""timestamp_header":"t","signed":"{timestamp}""#,
        r#""signed":"{timestamp}{body}""#,
        r#""signed":"{body}{body}""#,
    ] {
        let error =
            read(&format!(r#"{{"url":"a","scheme":"hmac","secret":"s","header":"h",{rest}}}"#)).unwrap_err();
        assert!(error.to_string().starts_with("`signed` is "), "{error}");
    }
}

#[test]
fn unknown_settings_are_refused() {
    check_refused(
        r#"{"url":"a","secret":"s"}"#,
        "setting `secret` is unknown to a webhook without `scheme`; remove it",
    );
    check_refused(
        r#"{"url":"a","scheme":"github","secret":"s","header":"h"}"#,
        "setting `header` is unknown to scheme `github`; remove it",
    );
    check_refused(
        r#"{"url":"a","ulr":"b"}"#,
        "setting `ulr` is unknown to a webhook without `scheme`; remove it",
    );
}
