//! The configuration of a stream, in the JSON of nats-server.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize, de};

use crate::duration::Nanos;
use crate::error::ApiError;
use crate::json::{UnknownNames, from_value, is_false, is_zero, parse};
use crate::time::Timestamp;

/// A stream's configuration. Numbers and durations are as a client sent them until
/// [`check`](Self::check) sets defaults; a limit of -1 is none.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StreamConfig {
    /// The name, without dots and wildcards.
    pub name: String,
    /// A description for people.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// The filters of the subjects that the stream stores; by default its name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub subjects: Vec<String>,
    /// Rule by which messages leave the stream.
    pub retention: Retention,
    /// Limit on the consumers.
    pub max_consumers: i64,
    /// Limit on the messages.
    pub max_msgs: i64,
    /// Limit on the bytes of all messages.
    pub max_bytes: i64,
    /// Limit on the age of a message; 0 for none.
    pub max_age: Nanos,
    /// Limit on the messages of one subject.
    pub max_msgs_per_subject: i64,
    /// Limit on the bytes of headers and payload of one message.
    #[serde(skip_serializing_if = "is_zero")]
    pub max_msg_size: i32,
    /// The message that gives way at a limit.
    pub discard: Discard,
    /// Where messages are stored.
    pub storage: Storage,
    /// Copies of the stream.
    pub num_replicas: i64,
    /// Publishes are not acknowledged.
    #[serde(skip_serializing_if = "is_false")]
    pub no_ack: bool,
    /// Time for which message ids are remembered; 0 to forget them at once.
    #[serde(skip_serializing_if = "Nanos::is_zero")]
    pub duplicate_window: Nanos,
    /// Servers on which the stream may be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub placement: Option<Placement>,
    /// The stream that this one copies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mirror: Option<StreamSource>,
    /// The streams whose messages this one also stores.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<StreamSource>,
    /// Compression of stored messages.
    pub compression: Compression,
    /// The sequence of the first message; 0 for 1.
    #[serde(skip_serializing_if = "is_zero")]
    pub first_seq: u64,
    /// Changes the subject of a message before it is stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject_transform: Option<SubjectTransform>,
    /// Publishes each stored message again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub republish: Option<Republish>,
    /// Single messages can be read without the API's queue.
    pub allow_direct: bool,
    /// The mirror answers such reads of its origin too.
    pub mirror_direct: bool,
    /// Applies `discard` `new` to the limit of messages per subject too.
    #[serde(skip_serializing_if = "is_false")]
    pub discard_new_per_subject: bool,
    /// No message enters or leaves the stream any more.
    pub sealed: bool,
    /// Clients cannot delete a message.
    pub deny_delete: bool,
    /// Clients cannot purge the stream.
    pub deny_purge: bool,
    /// A message may replace all earlier ones of its subject or of the stream.
    pub allow_rollup_hdrs: bool,
    /// Defaults and limits of consumers.
    pub consumer_limits: StreamConsumerLimits,
    /// A message may have a time to live of its own.
    pub allow_msg_ttl: bool,
    /// Time to live of the marker that replaces the last expired message of a subject; 0 for no
    /// marker.
    #[serde(skip_serializing_if = "Nanos::is_zero")]
    pub subject_delete_marker_ttl: Nanos,
    /// Messages are increments of counters.
    #[serde(skip_serializing_if = "is_false")]
    pub allow_msg_counter: bool,
    /// Several messages can be published at once, all or none.
    #[serde(skip_serializing_if = "is_false")]
    pub allow_atomic: bool,
    /// A message may have a schedule on which it is published again.
    #[serde(skip_serializing_if = "is_false")]
    pub allow_msg_schedules: bool,
    /// The point at which a publish is acknowledged.
    #[serde(skip_serializing_if = "PersistMode::is_default")]
    pub persist_mode: PersistMode,
    /// Many messages can be published with few acknowledgements.
    #[serde(skip_serializing_if = "is_false")]
    pub allow_batched: bool,
    /// Names and values of the application, and of the server under `_nats.`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, String>,
}

/// The body of STREAM.CREATE and STREAM.UPDATE.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StreamConfigRequest {
    /// The configuration.
    pub config: StreamConfig,
    /// Defaults that would change what the client asked for are errors.
    pub is_pedantic: bool,
}

impl StreamConfigRequest {
    /// Reads the body of a request; an empty one is the default.
    ///
    /// # Errors
    ///
    /// Returns 10025 if the body is not JSON of a configuration or has a name that is unknown.
    pub fn decode(body: &[u8]) -> Result<Self, ApiError> {
        let Some(mut value) = parse(body)? else {
            return Ok(Self::default());
        };
        let pedantic = value.as_object_mut().and_then(|object| object.remove("pedantic"));
        let is_pedantic: Option<bool> = match pedantic {
            Some(pedantic) => from_value(pedantic, UnknownNames::Refused)?,
            None => None,
        };
        let config = from_value(value, UnknownNames::Refused)?;
        Ok(Self { config, is_pedantic: is_pedantic.unwrap_or_default() })
    }
}

/// Rule by which messages leave a stream.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Retention {
    /// Messages leave at a limit.
    #[default]
    Limits,
    /// Messages also leave when all consumers have acknowledged them.
    Interest,
    /// Messages also leave when one consumer has acknowledged them.
    WorkQueue,
}

/// The message that gives way at a limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Discard {
    /// The oldest.
    #[default]
    Old,
    /// The message being published.
    New,
}

impl<'de> Deserialize<'de> for Discard {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        match text.to_ascii_lowercase().as_str() {
            "old" => Ok(Self::Old),
            "new" => Ok(Self::New),
            _ => Err(de::Error::unknown_variant(&text, &["old", "new"])),
        }
    }
}

/// Where messages are stored.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Storage {
    /// In files.
    #[default]
    File,
    /// In memory, until the server stops.
    Memory,
}

/// Compression of stored messages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Compression {
    /// No compression.
    #[default]
    None,
    /// The S2 format.
    S2,
}

/// The point at which a publish is acknowledged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PersistMode {
    /// After the message is written.
    #[default]
    #[serde(alias = "")]
    Default,
    /// Before the message is written.
    Async,
}

impl PersistMode {
    fn is_default(&self) -> bool {
        *self == Self::Default
    }
}

/// Servers on which a stream may be.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Placement {
    /// The name of the cluster.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub cluster: String,
    /// Tags that the servers must have.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// The server that should lead.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub preferred: String,
}

/// A stream from which another takes messages.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StreamSource {
    /// The name of the stream.
    pub name: String,
    /// The sequence of the first message to take; 0 for the first there is.
    #[serde(skip_serializing_if = "is_zero")]
    pub opt_start_seq: u64,
    /// The time of the first message to take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub opt_start_time: Option<Timestamp>,
    /// The filter of the messages to take; empty for all.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub filter_subject: String,
    /// Filters of the messages to take, and the subjects that they get.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub subject_transforms: Vec<SubjectTransform>,
    /// Route to the stream in another account or domain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub external: Option<ExternalStream>,
    /// A durable consumer of the stream to use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub consumer: Option<ConsumerSource>,
}

/// Route to a stream in another account or domain.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ExternalStream {
    /// Prefix of the subjects of its API.
    pub api: String,
    /// Prefix of the subjects to which it delivers.
    pub deliver: String,
}

/// The durable consumer from which a stream takes messages.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ConsumerSource {
    /// The name of the consumer.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The subject to which it delivers.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub deliver_subject: String,
}

/// A change of subjects.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SubjectTransform {
    /// The filter of the subjects to change; empty for all.
    pub src: String,
    /// The new subject; empty for no change.
    pub dest: String,
}

/// Publishes stored messages again.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Republish {
    /// The filter of the messages; empty for all.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub src: String,
    /// The subject that they get.
    pub dest: String,
    /// Omits the payload.
    #[serde(skip_serializing_if = "is_false")]
    pub headers_only: bool,
}

/// Defaults and limits of the consumers of a stream.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StreamConsumerLimits {
    /// Time that a consumer may be without a client; 0 for no limit.
    #[serde(skip_serializing_if = "Nanos::is_zero")]
    pub inactive_threshold: Nanos,
    /// Deliveries without an ack; 0 for no limit.
    #[serde(skip_serializing_if = "is_zero")]
    pub max_ack_pending: i64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_survives_its_json() {
        let json = concat!(
            r#"{"name":"S","description":"d","subjects":["a.>"],"retention":"workqueue","max_consumers":1,"#,
            r#""max_msgs":2,"max_bytes":3,"max_age":4,"max_msgs_per_subject":5,"max_msg_size":6,"#,
            r#""discard":"new","storage":"memory","num_replicas":3,"no_ack":true,"duplicate_window":7,"#,
            r#""placement":{"cluster":"c","tags":["t"],"preferred":"p"},"#,
            r#""mirror":{"name":"M","opt_start_seq":8,"opt_start_time":"2026-01-02T03:04:05Z","#,
            r#""filter_subject":"f","subject_transforms":[{"src":"a","dest":"b"}],"#,
            r#""external":{"api":"$JS.x.API","deliver":"d"},"consumer":{"name":"C","deliver_subject":"e"}},"#,
            r#""sources":[{"name":"A"}],"compression":"s2","first_seq":9,"#,
            r#""subject_transform":{"src":"a","dest":"b"},"#,
            r#""republish":{"src":"a","dest":"b","headers_only":true},"allow_direct":true,"#,
            r#""mirror_direct":true,"discard_new_per_subject":true,"sealed":true,"deny_delete":true,"#,
            r#""deny_purge":true,"allow_rollup_hdrs":true,"#,
            r#""consumer_limits":{"inactive_threshold":10,"max_ack_pending":11},"allow_msg_ttl":true,"#,
            r#""subject_delete_marker_ttl":12,"allow_msg_counter":true,"allow_atomic":true,"#,
            r#""allow_msg_schedules":true,"persist_mode":"async","allow_batched":true,"#,
            r#""metadata":{"k":"v"}}"#,
        );
        let request = StreamConfigRequest::decode(json.as_bytes()).unwrap();
        assert_eq!(serde_json::to_string(&request.config).unwrap(), json);
    }

    #[test]
    fn a_configuration_without_settings_is_written_as_nats_server_writes_it() {
        let config = StreamConfig { name: "S".to_string(), ..StreamConfig::default() };
        let json = concat!(
            r#"{"name":"S","retention":"limits","max_consumers":0,"max_msgs":0,"max_bytes":0,"max_age":0,"#,
            r#""max_msgs_per_subject":0,"discard":"old","storage":"file","num_replicas":0,"#,
            r#""compression":"none","allow_direct":false,"mirror_direct":false,"sealed":false,"#,
            r#""deny_delete":false,"deny_purge":false,"allow_rollup_hdrs":false,"consumer_limits":{},"#,
            r#""allow_msg_ttl":false}"#,
        );
        assert_eq!(serde_json::to_string(&config).unwrap(), json);
    }

    #[test]
    fn requests_are_read_as_nats_server_reads_them() {
        let named = |name: &str| StreamConfig { name: name.to_string(), ..StreamConfig::default() };
        for (json, expected) in [
            ("", Some(StreamConfig::default())),
            (r#"{"name":"S","subjects":null}"#, Some(named("S"))),
            (r#"{"NAME":"S"}"#, Some(named("S"))),
            (
                r#"{"name":"S","discard":"NEW","persist_mode":""}"#,
                Some(StreamConfig { discard: Discard::New, ..named("S") }),
            ),
            (r#"{"name":"S","retention":"Limits"}"#, None),
            (r#"{"name":"S","storage":"disk"}"#, None),
            (r#"{"name":"S","bogus":1}"#, None),
            (r#"{"name":"S","placement":{"bogus":1}}"#, None),
            (r#"{"name":"S","max_age":"1s"}"#, None),
            (r#"{"name":"S","pedantic":1}"#, None),
            ("[]", None),
            ("{", None),
        ] {
            let read = StreamConfigRequest::decode(json.as_bytes());
            let expected = expected.ok_or(10_025);
            assert_eq!(read.map(|read| read.config).map_err(|error| error.err_code), expected, "{json}");
        }
        let pedantic = StreamConfigRequest::decode(br#"{"name":"S","pedantic":true}"#).unwrap();
        assert!(pedantic.is_pedantic);
    }
}
