//! Signatures of each scheme.

use imori_automation::times::Timestamp;
use imori_automation::webhooks::{
    Algorithm, Encoding, Headers, HmacScheme, Proof, Refusal, Scheme, Secret, Signed, Verified,
};

/// Checks a request whose body comes in two pieces.
pub(crate) fn verify(
    scheme: &Scheme,
    secrets: &[Secret],
    headers: &Headers,
    body: &[u8],
    now: Timestamp,
) -> Result<Verified, Refusal> {
    let mut proof = Proof::begin(scheme, secrets, headers, now)?;
    let (first, second) = body.split_at(body.len() / 2);
    proof.update(first);
    proof.update(second);
    proof.finish()
}

/// A request that verifies, and the second at which it does.
#[derive(Clone)]
struct Sample {
    scheme: Scheme,
    secret: Vec<u8>,
    headers: Vec<(&'static str, String)>,
    body: &'static str,
    now: i64,
    key: Option<&'static str>,
}

fn result(sample: &Sample) -> Result<Verified, Refusal> {
    let secrets = [Secret::new("another"), Secret::new(sample.secret.clone())];
    let headers = sample.headers.iter().map(|(name, value)| (name, value)).collect();
    let now = Timestamp::from_seconds(sample.now);
    verify(&sample.scheme, &secrets, &headers, sample.body.as_bytes(), now)
}

/// GitHub's, Slack's and Standard Webhooks' are the examples of their documentation; those of Stripe and Shopify,
/// which have none, are from Python's `hmac`.
fn samples() -> Vec<Sample> {
    let github = |is_sha1_allowed, header, signature: &str| Sample {
        scheme: Scheme::GitHub { is_sha1_allowed },
        secret: b"It's a Secret to Everybody".to_vec(),
        headers: vec![(header, signature.to_owned()), ("X-GitHub-Delivery", "72d3162e".to_owned())],
        body: "Hello, World!",
        now: 0,
        key: Some("72d3162e"),
    };
    let slack_body = "token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&\
        channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&\
        command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F\
        397700885554%2F96rGlfmibIGlgcZRskXaIFfN&\
        trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c";
    let slack_signature = "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503";
    let stripe_signature = "799c4ba7bb339f3c8601adfd112f0e477c930a268be1243d341abb8286501c2f";
    let standard_secret = data_encoding::BASE64.decode(b"plJ3nmyCDGBKInavdOK15jsl").unwrap();
    let shopify = HmacScheme {
        header: "X-Shopify-Hmac-Sha256".to_owned(),
        algorithm: Algorithm::Sha256,
        encoding: Encoding::Base64,
        prefix: String::new(),
        timestamp: None,
        signed: vec![Signed::Body],
    };
    let dated = HmacScheme {
        header: "X-Signature".to_owned(),
        algorithm: Algorithm::Sha256,
        encoding: Encoding::Hex,
        prefix: "v0=".to_owned(),
        timestamp: Some(("X-Slack-Request-Timestamp".to_owned(), 60)),
        signed: vec![
            Signed::Text("v0:".to_owned()),
            Signed::Timestamp,
            Signed::Text(":".to_owned()),
            Signed::Body,
        ],
    };
    vec![
        github(
            false,
            "X-Hub-Signature-256",
            "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17",
        ),
        github(true, "X-Hub-Signature", "sha1=01dc10d0c83e72ed246219cdd91669667fe2ca59"),
        Sample {
            scheme: Scheme::Slack { window: 300 },
            secret: b"8f742231b10e8888abcd99yyyzzz85a5".to_vec(),
            headers: vec![
                ("x-slack-request-timestamp", "1531420618".to_owned()),
                ("x-slack-signature", slack_signature.to_owned()),
            ],
            body: slack_body,
            now: 1_531_420_918,
            key: Some("1531420618:a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503"),
        },
        Sample {
            scheme: Scheme::Stripe { window: 300 },
            secret: b"whsec_test_secret".to_vec(),
            headers: vec![(
                "Stripe-Signature",
                format!("t=1492774577,v0=00,v1={},v1={stripe_signature}", "0".repeat(64)),
            )],
            body: r#"{"id":"evt_1"}"#,
            now: 1_492_774_577,
            key: None,
        },
        Sample {
            scheme: Scheme::Standard { window: 300 },
            secret: standard_secret,
            headers: vec![
                ("webhook-id", "msg_loFOjxBNrRLzqYUf".to_owned()),
                ("webhook-timestamp", "1731705121".to_owned()),
                ("webhook-signature", "v1a,x v1,rAvfW3dJ/X/qxhsaXPOyyCGmRKsaKWcsNccKXlIktD0=".to_owned()),
            ],
            body: r#"{"event_type":"ping","data":{"success":true}}"#,
            now: 1_731_705_000,
            key: Some("msg_loFOjxBNrRLzqYUf"),
        },
        Sample {
            scheme: Scheme::Hmac(shopify),
            secret: b"shop-secret".to_vec(),
            headers: vec![(
                "x-shopify-hmac-sha256",
                "plW8VGqq0nDMIEhDqaNNW99asdUCy7EIqLZVcQwtAZ0=".to_owned(),
            )],
            body: r#"{"id":1}"#,
            now: 0,
            key: None,
        },
        Sample {
            scheme: Scheme::Hmac(dated),
            secret: b"8f742231b10e8888abcd99yyyzzz85a5".to_vec(),
            headers: vec![
                ("X-Slack-Request-Timestamp", "1531420618".to_owned()),
                ("X-Signature", slack_signature.to_owned()),
            ],
            body: slack_body,
            now: 1_531_420_558,
            key: None,
        },
        Sample {
            scheme: Scheme::Token { header: "Authorization".to_owned(), prefix: "Bearer ".to_owned() },
            secret: b"token".to_vec(),
            headers: vec![("authorization", "Bearer token".to_owned())],
            body: "{}",
            now: 0,
            key: None,
        },
    ]
}

#[test]
fn documented_examples_verify() {
    for sample in samples() {
        let expected = Ok(Verified { key: sample.key.map(str::to_owned) });
        assert_eq!(result(&sample), expected, "{:?}", sample.scheme);
    }
}

#[test]
fn another_secret_is_refused() {
    for mut sample in samples() {
        sample.secret.push(b'x');
        assert_eq!(result(&sample), Err(Refusal::Mismatch), "{:?}", sample.scheme);
    }
}

#[test]
fn another_body_is_refused() {
    for mut sample in samples().into_iter().filter(|sample| !matches!(sample.scheme, Scheme::Token { .. })) {
        sample.body = "Hello, World?";
        assert_eq!(result(&sample), Err(Refusal::Mismatch), "{:?}", sample.scheme);
    }
}

#[test]
fn changed_headers_are_refused() {
    for sample in samples() {
        for (index, (name, value)) in sample.headers.iter().enumerate() {
            if *name == "X-GitHub-Delivery" {
                continue;
            }
            for change in ["", "v0=", "sha256=0", "9", "-5", "\u{e4}", &value[..value.len() - 2]] {
                let mut changed = sample.clone();
                changed.headers[index].1 = change.to_owned();
                assert!(result(&changed).is_err(), "{name}: {change}");
            }
            let mut absent = sample.clone();
            absent.headers.remove(index);
            assert_eq!(result(&absent), Err(Refusal::Absent), "{name}");
            let mut repeated = sample.clone();
            repeated.headers.push((name, value.clone()));
            assert_eq!(result(&repeated), Err(Refusal::Repeated), "{name}");
        }
    }
}

#[test]
fn request_is_refused_outside_of_its_window() {
    for mut sample in samples().into_iter().filter(|sample| sample.now > 0) {
        let now = sample.now;
        for seconds in [-700, 700, i64::MIN / 2, i64::MAX / 2] {
            sample.now = now.saturating_add(seconds);
            assert_eq!(result(&sample), Err(Refusal::Stale), "{:?}", sample.scheme);
        }
    }
}

#[test]
fn sha1_is_refused_unless_it_is_allowed() {
    let mut sample = samples().swap_remove(1);
    sample.scheme = Scheme::GitHub { is_sha1_allowed: false };
    assert_eq!(result(&sample), Err(Refusal::Absent));
}

#[test]
fn too_many_signatures_are_refused() {
    let mut samples = samples();
    let sample = &mut samples[3];
    let more = format!(",v1={}", "0".repeat(64)).repeat(15);
    sample.headers[0].1.push_str(&more);
    assert_eq!(result(sample), Err(Refusal::Malformed));
}

#[test]
fn without_secrets_only_unsigned_requests_are_accepted() {
    let headers: Headers = [("x-hub-signature-256", "sha256=00")].into_iter().collect();
    let now = Timestamp::from_seconds(0);
    let github = Scheme::GitHub { is_sha1_allowed: true };
    assert_eq!(verify(&github, &[], &headers, b"", now), Err(Refusal::Mismatch));
    assert_eq!(verify(&Scheme::Unsigned, &[], &headers, b"", now), Ok(Verified { key: None }));
}
