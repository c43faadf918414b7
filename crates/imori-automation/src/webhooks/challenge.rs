//! Challenges, by which a sender checks that the receiver wants its requests.

use super::form::fields;
use super::secret::Secret;
use crate::limits::CHALLENGE_BYTES_MAX;
use crate::value::Value;

/// A sender's verification of its receiver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Challenge {
    /// Slack: a signed request whose body has the type `url_verification`.
    Slack,
    /// Meta and WebSub: a query with `hub.challenge`. The verify token, the topic, or both have to fit.
    Hub {
        /// What `hub.verify_token` has to be.
        verify_token: Option<Secret>,
        /// What `hub.topic` has to be.
        topic: Option<String>,
    },
    /// A query with this parameter, which is sent back: `challenge` at Dropbox, `validationToken` at Microsoft Graph.
    Parameter(String),
}

/// What to answer, with status 200.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The `Content-Type`. It is never one that a browser would run, whatever the challenge is.
    pub content_type: &'static str,
    /// The body.
    pub body: String,
}

impl Challenge {
    /// The answer to a challenge in a verified body, if it is one.
    pub(super) fn answer_body(&self, body: &Value) -> Option<Answer> {
        let is_challenge =
            *self == Challenge::Slack && body.get("type")?.as_str() == Some("url_verification");
        if is_challenge { answer(body.get("challenge")?.as_str()?) } else { None }
    }

    /// The answer to a challenge in a query, which is what stands behind `?`.
    pub fn answer_query(&self, query: &str) -> Option<Answer> {
        let fields = fields(query)?;
        let value =
            |name: &str| fields.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
        match self {
            Challenge::Slack => None,
            Challenge::Hub { verify_token, topic } => {
                let is_mode = matches!(value("hub.mode"), Some("subscribe" | "unsubscribe"));
                let is_token = match (verify_token, value("hub.verify_token")) {
                    (Some(token), Some(given)) => token.is(given.as_bytes()),
                    (Some(_), None) => false,
                    (None, _) => true,
                };
                let is_topic = topic.as_deref().is_none_or(|topic| value("hub.topic") == Some(topic));
                if is_mode && is_token && is_topic { answer(value("hub.challenge")?) } else { None }
            }
            Challenge::Parameter(name) => answer(value(name)?),
        }
    }
}

fn answer(challenge: &str) -> Option<Answer> {
    let is_short = challenge.len() <= CHALLENGE_BYTES_MAX;
    is_short.then(|| Answer { content_type: "text/plain; charset=utf-8", body: challenge.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_body(body: &str, expected: Option<&str>) {
        let answer = Challenge::Slack.answer_body(&Value::from_json(body.as_bytes()).unwrap());
        assert_eq!(answer.map(|answer| answer.body).as_deref(), expected, "{body}");
    }

    fn check_query(challenge: &Challenge, query: &str, expected: Option<&str>) {
        let answer = challenge.answer_query(query);
        assert_eq!(answer.map(|answer| answer.body).as_deref(), expected, "{query}");
    }

    #[test]
    fn slack_gets_its_challenge_back() {
        check_body(r#"{"token":"J","challenge":"3eZb","type":"url_verification"}"#, Some("3eZb"));
        for body in
            [r#"{"type":"event_callback","challenge":"a"}"#, r#"{"type":"url_verification"}"#, "[]", "1"]
        {
            check_body(body, None);
        }
        check_body(&format!(r#"{{"challenge":"{}","type":"url_verification"}}"#, "a".repeat(1_025)), None);
        let parameter = Challenge::Parameter("challenge".to_owned());
        let body = Value::from_json(br#"{"challenge":"3eZb","type":"url_verification"}"#).unwrap();
        assert_eq!(parameter.answer_body(&body), None);
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
}
