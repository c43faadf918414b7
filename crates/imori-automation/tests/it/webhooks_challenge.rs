//! Answers to challenges.

use imori_automation::webhooks::{Accepted, Challenge, Secret, WebhookSettings};

use crate::webhooks_webhook::{accept, settings};

/// Checks the answer to a request with this body, of a sender with challenges of this kind.
fn check_body(challenge: Challenge, body: &str, expected: Option<&str>) {
    let settings = WebhookSettings { challenge: Some(challenge), ..settings(r#"{"url":"a"}"#) };
    let answer = match accept(&settings, &[], body).unwrap() {
        Accepted::Challenge(answer) => Some(answer.body),
        Accepted::Event(_) => None,
    };
    assert_eq!(answer.as_deref(), expected, "{body}");
}

fn check_query(challenge: &Challenge, query: &str, expected: Option<&str>) {
    let answer = challenge.answer_query(query);
    assert_eq!(answer.map(|answer| answer.body).as_deref(), expected, "{query}");
}

#[test]
fn slack_gets_its_challenge_back() {
    check_body(
        Challenge::Slack,
        r#"{"token":"J","challenge":"3eZb","type":"url_verification"}"#,
        Some("3eZb"),
    );
    for body in [r#"{"type":"event_callback","challenge":"a"}"#, r#"{"type":"url_verification"}"#, "[]", "1"]
    {
        check_body(Challenge::Slack, body, None);
    }
    check_body(
        Challenge::Slack,
        &format!(r#"{{"challenge":"{}","type":"url_verification"}}"#, "a".repeat(1_025)),
        None,
    );
    let parameter = Challenge::Parameter("challenge".to_owned());
    check_body(parameter, r#"{"challenge":"3eZb","type":"url_verification"}"#, None);
}

#[test]
fn hub_gets_its_challenge_back_for_the_right_token() {
    let hub = Challenge::Hub { verify_token: Some(Secret::new("me at")), topic: None };
    let token = "hub.mode=subscribe&hub.challenge=1158201444&hub.verify_token=";
    check_query(&hub, &format!("{token}me+at"), Some("1158201444"));
    check_query(&hub, &format!("{token}meat"), None);
    check_query(&hub, "hub.mode=subscribe&hub.challenge=1158201444", None);
    check_query(&hub, "hub.mode=denied&hub.challenge=1&hub.verify_token=me%20at", None);
}

#[test]
fn hub_gets_its_challenge_back_for_the_right_topic() {
    let hub = Challenge::Hub { verify_token: None, topic: Some("https://a/feed".to_owned()) };
    let topic = "hub.mode=unsubscribe&hub.challenge=c&hub.topic=https%3A%2F%2Fa%2F";
    check_query(&hub, &format!("{topic}feed"), Some("c"));
    check_query(&hub, &format!("{topic}other"), None);
}

#[test]
fn parameter_is_sent_back_as_plain_text() {
    let parameter = Challenge::Parameter("validationToken".to_owned());
    check_query(&parameter, "validationToken=%3Cscript%3E", Some("<script>"));
    check_query(&parameter, "validationtoken=a", None);
    check_query(&parameter, &format!("validationToken={}", "a".repeat(1_025)), None);
    let answer = parameter.answer_query("validationToken=a").unwrap();
    assert_eq!(answer.content_type, "text/plain; charset=utf-8");
}
