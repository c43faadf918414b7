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
