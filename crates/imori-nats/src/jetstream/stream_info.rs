//! The state of a stream, and its messages, as answers report them.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use imori_streams::error::ApiError;
use imori_streams::json::is_zero;
use imori_streams::stream_config::{ExternalStream, StreamConfig, SubjectTransform};
use imori_streams::time::Timestamp;
use serde::{Deserialize, Serialize, Serializer};

/// The configuration and the state of a stream.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct StreamInfo {
    /// The configuration.
    pub config: StreamConfig,
    /// Time of creation.
    pub created: Timestamp,
    /// The state.
    pub state: StreamState,
    /// The domain, if one is configured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub domain: Option<String>,
    /// The servers that have it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster: Option<ClusterInfo>,
    /// The stream of which it is a mirror.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mirror: Option<StreamSourceInfo>,
    /// The streams whose messages it takes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<StreamSourceInfo>,
    /// Time at which this was read.
    pub ts: Timestamp,
}

/// The state of a stream.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StreamState {
    /// Messages.
    pub messages: u64,
    /// Bytes of the messages.
    pub bytes: u64,
    /// The sequence of the first message.
    pub first_seq: u64,
    /// The time of the first message.
    pub first_ts: Timestamp,
    /// The sequence of the last message, also of one that is gone.
    pub last_seq: u64,
    /// The time of the last message.
    pub last_ts: Timestamp,
    /// Subjects of the messages.
    #[serde(skip_serializing_if = "is_zero")]
    pub num_subjects: u64,
    /// Messages of each subject, if the request has a filter.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub subjects: BTreeMap<String, u64>,
    /// Sequences between the first and the last without a message.
    #[serde(skip_serializing_if = "is_zero")]
    pub num_deleted: u64,
    /// Sequences without a message, if the request asks for them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deleted: Vec<u64>,
    /// Messages that the store lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost: Option<LostMessages>,
    /// Consumers.
    pub consumer_count: u64,
}

/// Messages that the store lost.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LostMessages {
    /// Sequences of the messages.
    pub msgs: Vec<u64>,
    /// Bytes of the messages.
    pub bytes: u64,
}

/// The servers that have a stream or a consumer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ClusterInfo {
    /// The name of the cluster.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The server that leads.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub leader: String,
}

/// Progress of a mirror or a source.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct StreamSourceInfo {
    /// The name of the other stream.
    pub name: String,
    /// Route to the stream in another account or domain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub external: Option<ExternalStream>,
    /// Messages that are not taken so far.
    pub lag: u64,
    /// Nanoseconds since it was last heard of; -1 for never.
    pub active: i64,
    /// The reason why no messages arrive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<ApiError>,
    /// The filter of the messages to take.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub filter_subject: String,
    /// Filters of the messages to take, and the subjects that they get.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub subject_transforms: Vec<SubjectTransform>,
}

/// A message of a stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StoredMessage<'a> {
    /// The subject.
    pub subject: &'a str,
    /// The sequence.
    pub seq: u64,
    /// The header block; empty for none.
    #[serde(skip_serializing_if = "<[u8]>::is_empty", serialize_with = "in_base64")]
    pub hdrs: &'a [u8],
    /// The payload.
    #[serde(skip_serializing_if = "<[u8]>::is_empty", serialize_with = "in_base64")]
    pub data: &'a [u8],
    /// Time at which the message was stored.
    pub time: Timestamp,
}

fn in_base64<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&STANDARD.encode(bytes))
}
