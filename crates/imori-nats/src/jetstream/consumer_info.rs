//! The state of a consumer, as answers report it.

use imori_streams::consumer_config::ConsumerConfig;
use imori_streams::duration::Nanos;
use imori_streams::json::is_false;
use imori_streams::time::Timestamp;
use serde::Serialize;

/// The configuration and the state of a consumer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ConsumerInfo {
    /// The stream.
    pub stream_name: String,
    /// The consumer.
    pub name: String,
    /// Time of creation.
    pub created: Timestamp,
    /// The configuration.
    pub config: ConsumerConfig,
    /// The last delivery.
    pub delivered: SequenceInfo,
    /// The last delivery before which all are acknowledged.
    pub ack_floor: SequenceInfo,
    /// Deliveries without an ack.
    pub num_ack_pending: u64,
    /// Messages without an ack that were delivered more than once.
    pub num_redelivered: u64,
    /// Pull requests that wait.
    pub num_waiting: u64,
    /// Messages that are to be delivered.
    pub num_pending: u64,
    /// A client subscribes to the deliver subject.
    #[serde(skip_serializing_if = "is_false")]
    pub push_bound: bool,
    /// The consumer delivers nothing for now.
    #[serde(skip_serializing_if = "is_false")]
    pub paused: bool,
    /// Remaining time of the pause.
    #[serde(skip_serializing_if = "Nanos::is_zero")]
    pub pause_remaining: Nanos,
    /// Time at which this was read.
    pub ts: Timestamp,
    /// The priority groups.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub priority_groups: Vec<PriorityGroupState>,
}

/// A position of a consumer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct SequenceInfo {
    /// The sequence of the delivery.
    pub consumer_seq: u64,
    /// The sequence of the message.
    pub stream_seq: u64,
    /// Time of the last change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_active: Option<Timestamp>,
}

/// The state of a priority group.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct PriorityGroupState {
    /// The group.
    pub group: String,
    /// The pin of the client that gets its messages.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub pinned_client_id: String,
    /// Time at which the client got the pin.
    pub pinned_ts: Timestamp,
}
