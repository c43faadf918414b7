//! Pull requests: what a client asks of a consumer, and what a consumer refuses.

use imori_core::name::Name;
use imori_core::stream::{self, ConsumerSettings, RequestLimits, RequestPolicy, RequestTerms};
use imori_core::time::Time;
use imori_streams::duration::Nanos;
use imori_streams::json::{UnknownNames, decode};
use imori_streams::units::{duration, number, span};
use serde::Deserialize;

use crate::jetstream::status::Status;

/// A request for messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PullRequest {
    /// The number of messages, at least 1.
    pub batch: u64,
    /// Limit on their bytes; 0 for none.
    pub max_bytes: u64,
    /// The request does not wait for messages, unless it expires.
    pub no_wait: bool,
    /// Time to wait for messages; 0 to wait while the subscriber exists.
    pub expires: Nanos,
    /// Silence after which the client wants a heartbeat; 0 for none.
    pub idle_heartbeat: Nanos,
    /// Conditions for getting messages; `None` if the body is not JSON.
    pub priority: Option<Priority>,
}

/// Conditions under which a pull request gets messages.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Priority {
    /// The priority group.
    pub group: String,
    /// The fewest messages that are not delivered.
    pub min_pending: i64,
    /// The fewest deliveries without an ack.
    pub min_ack_pending: i64,
    /// The pin of the client.
    pub id: String,
    /// 0 for first to 9 for last.
    pub priority: i64,
}

/// The body of a pull request in JSON.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Body {
    expires: Nanos,
    batch: i64,
    max_bytes: i64,
    no_wait: bool,
    idle_heartbeat: Nanos,
    group: String,
    min_pending: i64,
    min_ack_pending: i64,
    id: String,
    priority: i64,
}

impl Default for PullRequest {
    fn default() -> Self {
        Self {
            batch: 1,
            max_bytes: 0,
            no_wait: false,
            expires: Nanos::ZERO,
            idle_heartbeat: Nanos::ZERO,
            priority: None,
        }
    }
}

impl PullRequest {
    /// Reads the body of a request: nothing for one message, a number of messages, or JSON. Any
    /// other text is for one message, as in nats-server.
    ///
    /// # Errors
    ///
    /// Returns status 400 for JSON that is not a pull request, and for a heartbeat that is longer
    /// than half of the time to wait.
    pub fn decode(body: &[u8]) -> Result<Self, Status<'static>> {
        let body = body.trim_ascii();
        if body.first() != Some(&b'{') {
            let number = str::from_utf8(body).ok().and_then(|text| text.parse::<i64>().ok());
            return Ok(Self { batch: at_least_one(number.unwrap_or(1)), ..Self::default() });
        }
        // Most clients write the names as they are; others need the slower way.
        let read: Body = match serde_json::from_slice(body) {
            Ok(read) => read,
            Err(_) => decode(body, UnknownNames::Ignored)
                .map_err(|error| Status::BadRequest(error.to_string().into()))?,
        };
        if read.idle_heartbeat > Nanos::ZERO && read.idle_heartbeat.0.saturating_mul(2) > read.expires.0 {
            return Err(Status::BadRequest("heartbeat value too large".into()));
        }
        Ok(Self {
            batch: at_least_one(read.batch),
            max_bytes: u64::try_from(read.max_bytes).unwrap_or_default(),
            no_wait: read.no_wait,
            expires: read.expires,
            idle_heartbeat: read.idle_heartbeat.max(Nanos::ZERO),
            priority: Some(Priority {
                group: read.group,
                min_pending: read.min_pending,
                min_ack_pending: read.min_ack_pending,
                id: read.id,
                priority: read.priority,
            }),
        })
    }

    /// Compares the request with the limits and the groups of a consumer.
    ///
    /// # Errors
    ///
    /// Returns the status of nats-server for the first limit or rule that the request does not
    /// keep.
    pub fn check(&self, consumer: &ConsumerSettings) -> Result<(), Status<'static>> {
        if consumer.push.is_some() {
            return Err(Status::PushBased);
        }
        let RequestLimits { messages_max, bytes_max, wait_max } = consumer.request_limits;
        if let Some(max) = messages_max.filter(|max| self.batch > *max) {
            return Err(Status::ExceededMaxRequestBatch(number(Some(max))));
        }
        if let Some(max) = wait_max.filter(|max| self.expires.duration() > *max) {
            return Err(Status::ExceededMaxRequestExpires(duration(Some(max))));
        }
        if let Some(max) = bytes_max.filter(|max| self.max_bytes > *max) {
            return Err(Status::ExceededMaxRequestMaxBytes(number(Some(max))));
        }
        match &self.priority {
            None => Ok(()),
            Some(priority) => priority.check(consumer),
        }
    }
}

impl Priority {
    fn check(&self, consumer: &ConsumerSettings) -> Result<(), Status<'static>> {
        let policy = consumer.request_policy;
        let has_threshold = self.min_pending != 0 || self.min_ack_pending != 0;
        let has_policy = policy != RequestPolicy::InTurn;
        let is_own = |group: &Name| group.as_bytes() == self.group.as_bytes();
        for (is_wrong, reason) in [
            (has_threshold && policy != RequestPolicy::Overflow, "Not a Overflow Priority consumer"),
            (
                !self.id.is_empty() && !matches!(policy, RequestPolicy::Pinned(_)),
                "Not a Pinned Client Priority consumer",
            ),
            (!(0..=9).contains(&self.priority), "Priority must be between 0 and 9"),
            (has_policy && self.group.is_empty(), "Priority Group missing"),
            (has_policy && !consumer.request_groups.iter().any(is_own), "Invalid Priority Group"),
        ] {
            if is_wrong {
                return Err(Status::BadRequest(reason.into()));
            }
        }
        Ok(())
    }
}

fn at_least_one(number: i64) -> u64 {
    u64::try_from(number).unwrap_or_default().max(1)
}

/// A request for messages, as the core has it.
pub(crate) fn pull_request(reply: &[u8], request: &PullRequest, now: Time) -> stream::PullRequest {
    stream::PullRequest {
        reply: Name::new(reply),
        left: request.batch,
        got: 0,
        bytes_left: Some(request.max_bytes).filter(|max| *max > 0),
        is_impatient: request.no_wait,
        expires: span(request.expires).map(|expires| now.after(expires)),
        heartbeat: span(request.idle_heartbeat).map(|every| (every, now.after(every))),
        terms: request.priority.as_ref().map(request_terms).unwrap_or_default(),
    }
}

fn request_terms(priority: &Priority) -> RequestTerms {
    RequestTerms {
        unread_min: u64::try_from(priority.min_pending).unwrap_or_default(),
        pending_min: u64::try_from(priority.min_ack_pending).unwrap_or_default(),
        pin: (!priority.id.is_empty()).then(|| Name::from(priority.id.as_str())),
        rank: u8::try_from(priority.priority).unwrap_or(u8::MAX),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use imori_streams::consumer_config::ConsumerConfig;
    use imori_streams::settings::consumer_settings;

    #[test]
    fn a_body_is_nothing_or_a_number_or_json() {
        let of = |batch| PullRequest { batch, ..PullRequest::default() };
        let in_json = |request| PullRequest { priority: Some(Priority::default()), ..request };
        for (body, expected) in [
            ("", of(1)),
            (" \r\n", of(1)),
            ("10", of(10)),
            (" 7 ", of(7)),
            ("0", of(1)),
            ("-3", of(1)),
            ("abc", of(1)),
            ("{}", in_json(of(1))),
            (r#"{"batch":5,"other":1}"#, in_json(of(5))),
            (r#"{"Batch":5,"group":null}"#, in_json(of(5))),
            (
                r#"{"batch":5,"max_bytes":6,"no_wait":true,"expires":7,"idle_heartbeat":3}"#,
                in_json(PullRequest {
                    batch: 5,
                    max_bytes: 6,
                    no_wait: true,
                    expires: Nanos(7),
                    idle_heartbeat: Nanos(3),
                    priority: None,
                }),
            ),
            (
                r#"{"batch":5,"group":"g","min_pending":1,"min_ack_pending":2,"id":"i","priority":3}"#,
                PullRequest {
                    priority: Some(Priority {
                        group: "g".to_string(),
                        min_pending: 1,
                        min_ack_pending: 2,
                        id: "i".to_string(),
                        priority: 3,
                    }),
                    ..of(5)
                },
            ),
        ] {
            assert_eq!(PullRequest::decode(body.as_bytes()), Ok(expected), "{body}");
        }
    }

    #[test]
    fn bodies_that_nats_server_refuses_are_refused() {
        for (body, expected) in [
            (r#"{"batch":"x"}"#, "Bad Request - invalid type"),
            ("{x", "Bad Request - "),
            (r#"{"batch":1,"idle_heartbeat":100,"expires":100}"#, "Bad Request - heartbeat value too large"),
            (r#"{"batch":1,"idle_heartbeat":100}"#, "Bad Request - heartbeat value too large"),
        ] {
            let status = PullRequest::decode(body.as_bytes()).unwrap_err();
            assert_eq!(status.code(), 400);
            assert!(status.description().starts_with(expected), "{body}: {status:?}");
        }
    }

    #[test]
    fn a_consumer_refuses_what_is_over_its_limits() {
        let limited = r#"{"max_batch":5,"max_expires":1000000,"max_bytes":100}"#;
        let overflow = r#"{"priority_policy":"overflow","priority_groups":["g"]}"#;
        let pinned = r#"{"priority_policy":"pinned_client","priority_groups":["g"]}"#;
        for (consumer, body, expected) in [
            ("{}", r#"{"batch":1000000,"max_bytes":1000000}"#, None),
            (r#"{"deliver_subject":"d"}"#, "", Some("Consumer is push based")),
            (limited, r#"{"batch":5,"expires":1000000,"max_bytes":100}"#, None),
            (limited, "6", Some("Exceeded MaxRequestBatch of 5")),
            (limited, r#"{"expires":1000001}"#, Some("Exceeded MaxRequestExpires of 1ms")),
            (limited, r#"{"max_bytes":101}"#, Some("Exceeded MaxRequestMaxBytes of 100")),
            ("{}", r#"{"min_pending":1}"#, Some("Bad Request - Not a Overflow Priority consumer")),
            (pinned, r#"{"min_ack_pending":1}"#, Some("Bad Request - Not a Overflow Priority consumer")),
            (overflow, r#"{"id":"x"}"#, Some("Bad Request - Not a Pinned Client Priority consumer")),
            ("{}", r#"{"priority":10}"#, Some("Bad Request - Priority must be between 0 and 9")),
            ("{}", r#"{"priority":-1}"#, Some("Bad Request - Priority must be between 0 and 9")),
            (overflow, "{}", Some("Bad Request - Priority Group missing")),
            (overflow, r#"{"group":"h"}"#, Some("Bad Request - Invalid Priority Group")),
            (overflow, r#"{"group":"g","min_pending":3}"#, None),
            (pinned, r#"{"group":"g","id":"x"}"#, None),
            (overflow, "1", None),
        ] {
            let config: ConsumerConfig = serde_json::from_str(consumer).unwrap();
            let settings = consumer_settings(&config).unwrap();
            let result = PullRequest::decode(body.as_bytes()).unwrap().check(&settings);
            let text = result.err().map(|status| status.description().into_owned());
            assert_eq!(text.as_deref(), expected, "{consumer} {body}");
        }
    }
}
