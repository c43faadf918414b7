//! Advisories: what happens to streams, consumers and messages, as nats-server tells it.

use imori_core::name::Name;
use imori_core::stream::{Advisory, AdvisoryKind, ConsumerSettings, Position};
use imori_core::time::Time;
use imori_streams::json::to_json;
use imori_streams::time::Timestamp;
use imori_streams::units::time;
use serde::Serialize;

/// The begin of every advisory.
#[derive(Debug, Serialize)]
struct Envelope<V> {
    #[serde(rename = "type")]
    kind: String,
    id: String,
    timestamp: Timestamp,
    #[serde(flatten)]
    fields: V,
}

fn encode(kind: &str, id: [u8; 16], now: Time, fields: impl Serialize) -> Vec<u8> {
    let id = id.iter().map(|byte| format!("{byte:02x}")).collect();
    let kind = format!("io.nats.jetstream.{kind}");
    to_json(&Envelope { kind, id, timestamp: time(now), fields })
}

/// The subject of an advisory about a consumer.
pub(super) fn subject(advisory: &Advisory<'_>) -> Vec<u8> {
    let place = match advisory.what {
        AdvisoryKind::Created => "ADVISORY.CONSUMER.CREATED",
        AdvisoryKind::Deleted => "ADVISORY.CONSUMER.DELETED",
        AdvisoryKind::DeliveriesExceeded { .. } => "ADVISORY.CONSUMER.MAX_DELIVERIES",
        AdvisoryKind::Returned { .. } => "ADVISORY.CONSUMER.MSG_NAKED",
        AdvisoryKind::Rejected { .. } => "ADVISORY.CONSUMER.MSG_TERMINATED",
        AdvisoryKind::Acknowledged { .. } => "METRIC.CONSUMER.ACK",
        AdvisoryKind::Pinned { .. } => "ADVISORY.CONSUMER.PINNED",
        AdvisoryKind::Unpinned { .. } => "ADVISORY.CONSUMER.UNPINNED",
    };
    format!("$JS.EVENT.{place}.{}.{}", advisory.stream, advisory.consumer).into_bytes()
}

/// The fields of an advisory about a consumer.
#[derive(Debug, Default, Serialize)]
struct ConsumerFields {
    stream: String,
    consumer: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    action: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    consumer_seq: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_seq: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ack_time: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    deliveries: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pinned_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

impl ConsumerFields {
    fn at(self, place: Position, deliveries: u64) -> Self {
        let (consumer_seq, stream_seq) = (Some(place.consumer), Some(place.stream));
        Self { consumer_seq, stream_seq, deliveries: Some(deliveries), ..self }
    }
}

/// The body of an advisory about a consumer.
pub(super) fn body(advisory: &Advisory<'_>, id: [u8; 16]) -> Vec<u8> {
    let (stream, consumer) = (advisory.stream.to_string(), advisory.consumer.to_string());
    let of = ConsumerFields { stream, consumer, ..ConsumerFields::default() };
    let group = |settings: &ConsumerSettings| settings.request_groups.first().map(Name::to_string);
    let (kind, fields) = match advisory.what {
        AdvisoryKind::Created => ("consumer_action", ConsumerFields { action: Some("create"), ..of }),
        AdvisoryKind::Deleted => ("consumer_action", ConsumerFields { action: Some("delete"), ..of }),
        AdvisoryKind::DeliveriesExceeded { sequence, deliveries } => {
            let (stream_seq, deliveries) = (Some(sequence), Some(deliveries));
            ("max_deliver", ConsumerFields { stream_seq, deliveries, ..of })
        }
        AdvisoryKind::Returned { place, deliveries } => ("nak", of.at(place, deliveries)),
        AdvisoryKind::Rejected { place, deliveries, reason } => {
            let reason = Some(String::from_utf8_lossy(reason).into_owned()).filter(|text| !text.is_empty());
            ("terminated", ConsumerFields { reason, ..of.at(place, deliveries) })
        }
        AdvisoryKind::Acknowledged { place, deliveries, delay } => {
            let ack_time = u64::try_from(delay.as_nanos()).ok();
            let fields = ConsumerFields { ack_time, ..of.at(place, deliveries) };
            return encode("metric.v1.consumer_ack", id, advisory.time, fields);
        }
        AdvisoryKind::Pinned { pin, settings } => {
            let (group, pinned_id) = (group(settings), Some(pin.to_string()));
            ("consumer_group_pinned", ConsumerFields { group, pinned_id, ..of })
        }
        AdvisoryKind::Unpinned { is_by_operator, settings } => {
            let reason = Some(if is_by_operator { "admin" } else { "timeout" }.to_owned());
            ("consumer_group_unpinned", ConsumerFields { group: group(settings), reason, ..of })
        }
    };
    encode(&format!("advisory.v1.{kind}"), id, advisory.time, fields)
}

/// A change of a stream.
#[derive(Debug, Clone, Copy)]
pub(super) enum StreamAction {
    Created,
    Updated,
    Deleted,
}

impl StreamAction {
    /// The subject of the advisory.
    pub(super) fn subject(self, stream: &str) -> Vec<u8> {
        let verb = match self {
            Self::Created => "CREATED",
            Self::Updated => "UPDATED",
            Self::Deleted => "DELETED",
        };
        format!("$JS.EVENT.ADVISORY.STREAM.{verb}.{stream}").into_bytes()
    }

    /// The body of the advisory.
    pub(super) fn body(self, stream: &str, id: [u8; 16], now: Time) -> Vec<u8> {
        #[derive(Serialize)]
        struct Fields<'a> {
            stream: &'a str,
            action: &'static str,
        }
        let action = match self {
            Self::Created => "create",
            Self::Updated => "modify",
            Self::Deleted => "delete",
        };
        encode("advisory.v1.stream_action", id, now, Fields { stream, action })
    }
}

/// A step of a snapshot or a restore.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TransferAction {
    /// A snapshot was begun.
    SnapshotCreated,
    /// A snapshot was sent, or failed.
    SnapshotCompleted,
    /// A restore was begun.
    RestoreCreated,
    /// A restore has ended, or failed.
    RestoreCompleted,
}

/// The fields of an advisory about a snapshot or a restore.
#[derive(Debug, Clone, Default, Serialize)]
pub(super) struct TransferFields<'a> {
    /// The stream.
    pub(super) stream: &'a str,
    /// The user of the client.
    pub(super) client: AuditClient<'a>,
    /// When it began, of one that has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) start: Option<Timestamp>,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) end: Option<Timestamp>,
    /// Bytes that a restore has taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) bytes: Option<u64>,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<String>,
}

impl TransferAction {
    /// The subject of the advisory.
    pub(super) fn subject(self, stream: &str) -> Vec<u8> {
        let verb = match self {
            Self::SnapshotCreated => "SNAPSHOT_CREATE",
            Self::SnapshotCompleted => "SNAPSHOT_COMPLETE",
            Self::RestoreCreated => "RESTORE_CREATE",
            Self::RestoreCompleted => "RESTORE_COMPLETE",
        };
        format!("$JS.EVENT.ADVISORY.STREAM.{verb}.{stream}").into_bytes()
    }

    /// The body of the advisory.
    pub(super) fn body(self, fields: &TransferFields<'_>, id: [u8; 16], now: Time) -> Vec<u8> {
        let kind = match self {
            Self::SnapshotCreated => "snapshot_create",
            Self::SnapshotCompleted => "snapshot_complete",
            Self::RestoreCreated => "restore_create",
            Self::RestoreCompleted => "restore_complete",
        };
        encode(&format!("advisory.v1.{kind}"), id, now, fields)
    }
}

/// The subject to which requests of the API are reported.
pub(super) const AUDIT_SUBJECT: &[u8] = b"$JS.EVENT.ADVISORY.API";

/// A request of the API and its answer.
#[derive(Debug, Serialize)]
pub(super) struct Audit<'a> {
    pub(super) server: &'a str,
    pub(super) client: AuditClient<'a>,
    pub(super) subject: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(super) request: &'a str,
    pub(super) response: &'a str,
}

/// The client of a request.
#[derive(Debug, Clone, Default, Serialize)]
pub(super) struct AuditClient<'a> {
    /// The user.
    pub(super) user: &'a str,
    /// The name that the client gave.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(super) name: &'a str,
    /// The language of its library.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(super) lang: &'a str,
    /// The version of its library.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(super) ver: &'a str,
}

impl Audit<'_> {
    /// The body of the advisory.
    pub(super) fn body(&self, id: [u8; 16], now: Time) -> Vec<u8> {
        encode("advisory.v1.api_audit", id, now, self)
    }
}
