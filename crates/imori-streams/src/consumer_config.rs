//! The configuration of a consumer, in the JSON of nats-server.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::duration::Nanos;
use crate::error::ApiError;
use crate::json::{UnknownNames, decode, is_false, is_zero};
use crate::limits::GROUP_BYTES_MAX;
use crate::time::Timestamp;

/// A consumer's configuration. Numbers and durations are as a client sent them until
/// [`check`](Self::check) sets defaults.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ConsumerConfig {
    /// The name of a consumer that outlives its clients.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub durable_name: String,
    /// The name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// A description for people.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// The first message to deliver.
    pub deliver_policy: DeliverPolicy,
    /// Sequence of the first message, for `by_start_sequence`.
    #[serde(skip_serializing_if = "is_zero")]
    pub opt_start_seq: u64,
    /// Time of the first message, for `by_start_time`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub opt_start_time: Option<Timestamp>,
    /// The deliveries that need an ack.
    pub ack_policy: AckPolicy,
    /// Time for an ack, after which the message is delivered again.
    #[serde(skip_serializing_if = "Nanos::is_zero")]
    pub ack_wait: Nanos,
    /// Limit on the deliveries of a message; -1 for none.
    #[serde(skip_serializing_if = "is_zero")]
    pub max_deliver: i64,
    /// Times for an ack, from the first delivery on; the last one repeats.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub backoff: Vec<Nanos>,
    /// The filter of the messages to deliver; empty for all.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub filter_subject: String,
    /// Several filters, instead of the one above.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub filter_subjects: Vec<String>,
    /// The pace at which stored messages are delivered.
    pub replay_policy: ReplayPolicy,
    /// Limit on the bits a second of a push consumer.
    #[serde(skip_serializing_if = "is_zero")]
    pub rate_limit_bps: u64,
    /// Share of acks that are reported, in percent.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub sample_freq: String,
    /// Limit on the pull requests that wait.
    #[serde(skip_serializing_if = "is_zero")]
    pub max_waiting: i64,
    /// Limit on the deliveries without an ack; -1 for none.
    #[serde(skip_serializing_if = "is_zero")]
    pub max_ack_pending: i64,
    /// A push consumer pauses until its client answers a flow control request.
    #[serde(skip_serializing_if = "is_false")]
    pub flow_control: bool,
    /// Messages are delivered without their payload.
    #[serde(skip_serializing_if = "is_false")]
    pub headers_only: bool,
    /// Limit on the messages of a pull request; 0 for none.
    #[serde(skip_serializing_if = "is_zero")]
    pub max_batch: i64,
    /// Limit on the time of a pull request; 0 for none.
    #[serde(skip_serializing_if = "Nanos::is_zero")]
    pub max_expires: Nanos,
    /// Limit on the bytes of a pull request; 0 for none.
    #[serde(skip_serializing_if = "is_zero")]
    pub max_bytes: i64,
    /// The subject to which a push consumer delivers; empty for a pull consumer.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub deliver_subject: String,
    /// The queue group of its subscribers.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub deliver_group: String,
    /// Silence after which a push consumer sends a heartbeat; 0 for none.
    #[serde(skip_serializing_if = "Nanos::is_zero")]
    pub idle_heartbeat: Nanos,
    /// Time without a client after which the consumer is deleted; 0 for never.
    #[serde(skip_serializing_if = "Nanos::is_zero")]
    pub inactive_threshold: Nanos,
    /// Copies of the consumer's state; 0 for as many as the stream has.
    pub num_replicas: i64,
    /// The state is in memory only.
    #[serde(skip_serializing_if = "is_false")]
    pub mem_storage: bool,
    /// The consumer belongs to another stream.
    #[serde(skip_serializing_if = "is_false")]
    pub direct: bool,
    /// The other stream uses the consumer for a mirror or a source.
    #[serde(skip_serializing_if = "is_false")]
    pub sourcing: bool,
    /// Names and values of the application, and of the server under `_nats.`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, String>,
    /// The consumer delivers nothing before this time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pause_until: Option<Timestamp>,
    /// The groups that pull requests can name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub priority_groups: Vec<String>,
    /// The rule by which pull requests of a group get messages.
    #[serde(skip_serializing_if = "PriorityPolicy::is_none")]
    pub priority_policy: PriorityPolicy,
    /// Time without a pull request after which a client loses its pin.
    #[serde(skip_serializing_if = "Nanos::is_zero")]
    pub priority_timeout: Nanos,
}

impl ConsumerConfig {
    /// The filters of the messages to deliver; none for all messages.
    pub fn filters(&self) -> impl Iterator<Item = &str> {
        let single = (!self.filter_subject.is_empty()).then_some(&self.filter_subject);
        self.filter_subjects.iter().chain(single).map(String::as_str)
    }

    /// Whether clients pull the messages.
    pub fn is_pull(&self) -> bool {
        self.deliver_subject.is_empty()
    }

    /// Whether the consumer outlives its clients.
    pub fn is_durable(&self) -> bool {
        !self.durable_name.is_empty()
    }
}

/// The body of the requests that create or update a consumer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CreateConsumerRequest {
    /// The stream, as in the subject.
    pub stream_name: String,
    /// The configuration.
    pub config: ConsumerConfig,
    /// Whether the consumer may or must exist.
    pub action: ConsumerAction,
    /// Defaults that would change what the client asked for are errors.
    #[serde(rename = "pedantic", skip_serializing_if = "is_false")]
    pub is_pedantic: bool,
}

impl CreateConsumerRequest {
    /// Reads the body of a request; an empty one is the default.
    ///
    /// # Errors
    ///
    /// Returns 10025 if the body is not JSON of such a request or has a name that is unknown.
    pub fn decode(body: &[u8]) -> Result<Self, ApiError> {
        Ok(decode(body, UnknownNames::Refused)?)
    }
}

/// Whether a consumer may, or has to, be there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ConsumerAction {
    /// Creates the consumer, or updates it if it exists.
    #[default]
    #[serde(rename = "")]
    CreateOrUpdate,
    /// Fails unless the consumer exists.
    #[serde(rename = "update")]
    Update,
    /// Fails if the consumer exists with another configuration.
    #[serde(rename = "create")]
    Create,
}

/// The first message to deliver.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeliverPolicy {
    /// The first there is.
    #[default]
    #[serde(alias = "undefined")]
    All,
    /// The last there is.
    Last,
    /// The next to be stored.
    New,
    /// The message with a sequence, or the next one after it.
    ByStartSequence,
    /// The first that is not older than a time.
    ByStartTime,
    /// The last of each subject.
    LastPerSubject,
}

/// The deliveries that need an ack.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AckPolicy {
    /// No delivery needs an ack.
    #[default]
    None,
    /// Every delivery needs an ack, and an ack covers the deliveries before it.
    All,
    /// Every delivery needs an ack of its own.
    Explicit,
    /// Every delivery needs an ack: an answer to flow control covers the deliveries before it.
    FlowControl,
}

/// The pace at which stored messages are delivered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReplayPolicy {
    /// As fast as the client reads.
    #[default]
    Instant,
    /// At the pace at which they were stored.
    Original,
}

/// The rule by which pull requests get messages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PriorityPolicy {
    /// Every request gets messages.
    #[default]
    None,
    /// Requests whose threshold of pending messages is reached get messages.
    Overflow,
    /// Requests of one client get messages, until that client is gone.
    PinnedClient,
    /// Requests with the lowest priority number get messages first.
    Prioritized,
}

impl PriorityPolicy {
    fn is_none(&self) -> bool {
        *self == Self::None
    }
}

/// Whether a priority group can have the name.
pub fn is_group_name(name: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"/_=-".contains(&byte);
    (1..=GROUP_BYTES_MAX).contains(&name.len()) && name.bytes().all(is_part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_survives_its_json() {
        let json = concat!(
            r#"{"stream_name":"S","config":{"durable_name":"C","name":"C","description":"d","#,
            r#""deliver_policy":"by_start_sequence","opt_start_seq":1,"opt_start_time":"2026-01-02T03:04:05Z","#,
            r#""ack_policy":"explicit","ack_wait":2,"max_deliver":3,"backoff":[4,5],"filter_subject":"f","#,
            r#""filter_subjects":["g"],"replay_policy":"original","rate_limit_bps":6,"sample_freq":"50%","#,
            r#""max_waiting":7,"max_ack_pending":8,"flow_control":true,"headers_only":true,"max_batch":9,"#,
            r#""max_expires":10,"max_bytes":11,"deliver_subject":"d","deliver_group":"g","idle_heartbeat":12,"#,
            r#""inactive_threshold":13,"num_replicas":3,"mem_storage":true,"direct":true,"sourcing":true,"#,
            r#""metadata":{"k":"v"},"pause_until":"2026-01-02T03:04:05.6Z","priority_groups":["p"],"#,
            r#""priority_policy":"pinned_client","priority_timeout":14},"action":"create","pedantic":true}"#,
        );
        let request = CreateConsumerRequest::decode(json.as_bytes()).unwrap();
        assert_eq!(serde_json::to_string(&request).unwrap(), json);
        assert_eq!(request.config.filters().collect::<Vec<_>>(), ["g", "f"]);
    }

    #[test]
    fn policies_have_the_names_of_nats_server() {
        for (json, expected) in [
            (r#"{"config":{"deliver_policy":"undefined"},"action":""}"#, true),
            (r#"{"config":{"deliver_policy":"last_per_subject","ack_policy":"flow_control"}}"#, true),
            (r#"{"config":{"deliver_policy":"by_start_time"},"action":"update"}"#, true),
            (r#"{"config":{"priority_policy":"prioritized","replay_policy":"instant"}}"#, true),
            (r#"{"config":{"priority_policy":"none","ack_policy":"none"}}"#, true),
            (r#"{"config":{"deliver_policy":"ALL"}}"#, false),
            (r#"{"config":{"ack_policy":""}}"#, false),
            (r#"{"config":{"bogus":1}}"#, false),
            (r#"{"config":{"pedantic":true}}"#, false),
            (r#"{"action":"replace"}"#, false),
        ] {
            assert_eq!(CreateConsumerRequest::decode(json.as_bytes()).is_ok(), expected, "{json}");
        }
    }
}
