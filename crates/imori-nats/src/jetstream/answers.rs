//! The answers of the JetStream API, and the acknowledgement of a publish.

use std::collections::BTreeMap;
use std::ops::Range;

use imori_streams::duration::Nanos;
use imori_streams::error::ApiError;
use imori_streams::json::{is_false, to_json};
use imori_streams::stream_config::StreamConfig;
use imori_streams::time::Timestamp;
use serde::Serialize;

use crate::codec::number::push_u64;
use crate::jetstream::consumer_info::ConsumerInfo;
use crate::jetstream::stream_info::{StoredMessage, StreamInfo, StreamState};

/// Encodes an answer: the `type` first, then the fields of the value.
pub fn encode(kind: &str, value: &impl Serialize) -> Vec<u8> {
    to_json(&Envelope { kind, value })
}

/// Encodes an answer that refuses a request.
pub fn encode_error(kind: &str, error: &ApiError) -> Vec<u8> {
    encode(kind, &Refusal { error })
}

#[derive(Serialize)]
struct Envelope<'a, V> {
    #[serde(rename = "type")]
    kind: &'a str,
    #[serde(flatten)]
    value: &'a V,
}

#[derive(Serialize)]
struct Refusal<'a> {
    error: &'a ApiError,
}

/// A part of a list.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Page {
    /// The length of the list.
    pub total: usize,
    /// The index of the first item of the page.
    pub offset: usize,
    /// The most items of a page.
    pub limit: usize,
}

impl Page {
    /// Returns the page of a list of `total` items that starts at `offset`, or at its end.
    pub fn new(total: usize, offset: i64, limit: usize) -> Self {
        let offset = usize::try_from(offset).unwrap_or_default().min(total);
        Self { total, offset, limit }
    }

    /// The indices of the items on the page.
    pub fn range(&self) -> Range<usize> {
        self.offset..self.total.min(self.offset.saturating_add(self.limit))
    }
}

/// The answer to STREAM.NAMES.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct StreamNames {
    /// The position of this page in the list.
    #[serde(flatten)]
    pub page: Page,
    /// The names.
    pub streams: Vec<String>,
}

/// The answer to STREAM.LIST.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct StreamList {
    /// The position of this page in the list.
    #[serde(flatten)]
    pub page: Page,
    /// The streams.
    pub streams: Vec<StreamInfo>,
    /// Streams whose servers did not answer.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
    /// Streams that do not work, and why.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub offline: BTreeMap<String, String>,
}

/// The answer to CONSUMER.NAMES.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ConsumerNames {
    /// The position of this page in the list.
    #[serde(flatten)]
    pub page: Page,
    /// The names.
    pub consumers: Vec<String>,
}

/// The answer to CONSUMER.LIST.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ConsumerList {
    /// The position of this page in the list.
    #[serde(flatten)]
    pub page: Page,
    /// The consumers.
    pub consumers: Vec<ConsumerInfo>,
    /// Consumers whose servers did not answer.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
    /// Consumers that do not work, and why.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub offline: BTreeMap<String, String>,
}

/// The answer to STREAM.CREATE.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct StreamCreated {
    /// The stream.
    #[serde(flatten)]
    pub info: StreamInfo,
    /// The request created the stream; otherwise it existed with the same configuration.
    #[serde(skip_serializing_if = "is_false")]
    pub did_create: bool,
}

/// The answer to STREAM.INFO.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct StreamDetails {
    /// The position of this page in the list of subjects.
    #[serde(flatten)]
    pub page: Page,
    /// The stream.
    #[serde(flatten)]
    pub info: StreamInfo,
}

/// The answer to requests that have nothing to report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Success {
    /// The request was performed.
    #[serde(skip_serializing_if = "is_false")]
    pub success: bool,
}

/// The answer to STREAM.PURGE.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Purged {
    /// The request was performed.
    #[serde(skip_serializing_if = "is_false")]
    pub success: bool,
    /// Messages that were deleted.
    pub purged: u64,
}

/// The answer to STREAM.MSG.GET.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MessageFound<'a> {
    /// The message.
    pub message: StoredMessage<'a>,
}

/// The answer to STREAM.SNAPSHOT.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SnapshotStarted {
    /// The configuration of the stream.
    pub config: StreamConfig,
    /// The state of the stream.
    pub state: StreamState,
}

/// The answer to STREAM.RESTORE.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RestoreStarted {
    /// The subject to which the client sends the copy.
    pub deliver_subject: String,
}

/// The answer to CONSUMER.PAUSE.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Paused {
    /// The consumer delivers nothing for now.
    #[serde(rename = "paused")]
    pub is_paused: bool,
    /// End of the pause; the zero time for none.
    pub pause_until: Timestamp,
    /// Remaining time of the pause.
    #[serde(skip_serializing_if = "Nanos::is_zero")]
    pub pause_remaining: Nanos,
}

/// The answer to CONSUMER.RESET.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ConsumerReset {
    /// The consumer.
    #[serde(flatten)]
    pub info: ConsumerInfo,
    /// The sequence of the next message to deliver.
    pub reset_seq: u64,
}

/// The answer to a publish.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct PubAck<'a> {
    /// The stream.
    pub stream: &'a str,
    /// The sequence of the message, or of the last message of a batch.
    pub seq: u64,
    /// The domain, if one is configured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub domain: Option<&'a str>,
    /// A message with the id was stored before, and this is its sequence.
    #[serde(skip_serializing_if = "is_false")]
    pub duplicate: bool,
    /// The value of the counter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub val: Option<&'a str>,
    /// The id of the batch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batch: Option<&'a str>,
    /// The messages of the batch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// Level of safety that the message has reached. An extension of Imori.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub level: Option<&'a str>,
}

impl PubAck<'_> {
    /// Appends the answer.
    pub fn push(&self, out: &mut Vec<u8>) {
        let is_plain = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\');
        let is_short = Self { stream: "", seq: 0, ..*self } == Self::default();
        if is_short && self.stream.bytes().all(is_plain) {
            out.extend_from_slice(b"{\"stream\":\"");
            out.extend_from_slice(self.stream.as_bytes());
            out.extend_from_slice(b"\",\"seq\":");
            push_u64(out, self.seq);
            out.push(b'}');
        } else {
            out.extend_from_slice(&to_json(self));
        }
    }

    /// Encodes the refusal of a publish to a stream.
    pub fn encode_error(stream: &str, error: &ApiError) -> Vec<u8> {
        #[derive(Serialize)]
        struct Refused<'a> {
            error: &'a ApiError,
            stream: &'a str,
            seq: u64,
        }
        to_json(&Refused { error, stream, seq: 0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jetstream::consumer_info::{PriorityGroupState, SequenceInfo};
    use crate::jetstream::request::SYSTEM_KIND;
    use crate::jetstream::stream_info::{LostMessages, StreamSourceInfo};

    fn time(text: &str) -> Timestamp {
        Timestamp::parse(text).unwrap()
    }

    #[test]
    fn answers_are_written_as_nats_server_writes_them() {
        let page = Page::new(3, 0, 1024);
        let message = StoredMessage {
            subject: "S",
            seq: 2,
            hdrs: b"NATS/1.0\r\nNats-Msg-Id: a\r\n\r\n",
            data: b"hi",
            time: time("2026-11-27T19:20:10.855371547Z"),
        };
        let bare = StoredMessage { hdrs: b"", data: b"", ..message.clone() };
        let pause_until = time("2029-12-31T22:00:00Z");
        for (answer, expected) in [
            (
                encode("t", &StreamNames { page, streams: vec!["S".to_string(), "T".to_string()] }),
                r#"{"type":"t","total":3,"offset":0,"limit":1024,"streams":["S","T"]}"#,
            ),
            (
                encode("t", &ConsumerNames { page, consumers: Vec::new() }),
                r#"{"type":"t","total":3,"offset":0,"limit":1024,"consumers":[]}"#,
            ),
            (
                encode(
                    "t",
                    &ConsumerList { page, missing: vec!["C".to_string()], ..ConsumerList::default() },
                ),
                r#"{"type":"t","total":3,"offset":0,"limit":1024,"consumers":[],"missing":["C"]}"#,
            ),
            (
                encode(
                    "t",
                    &StreamList {
                        offline: [("S".to_string(), "why".to_string())].into(),
                        ..StreamList::default()
                    },
                ),
                r#"{"type":"t","total":0,"offset":0,"limit":0,"streams":[],"offline":{"S":"why"}}"#,
            ),
            (encode("t", &Success { success: true }), r#"{"type":"t","success":true}"#),
            (encode("t", &Purged { success: true, purged: 1 }), r#"{"type":"t","success":true,"purged":1}"#),
            (
                encode("t", &MessageFound { message }),
                concat!(
                    r#"{"type":"t","message":{"subject":"S","seq":2,"#,
                    r#""hdrs":"TkFUUy8xLjANCk5hdHMtTXNnLUlkOiBhDQoNCg==","data":"aGk=","#,
                    r#""time":"2026-11-27T19:20:10.855371547Z"}}"#,
                ),
            ),
            (
                encode("t", &MessageFound { message: bare }),
                r#"{"type":"t","message":{"subject":"S","seq":2,"time":"2026-11-27T19:20:10.855371547Z"}}"#,
            ),
            (
                encode("t", &Paused { is_paused: true, pause_until, pause_remaining: Nanos(5) }),
                r#"{"type":"t","paused":true,"pause_until":"2029-12-31T22:00:00Z","pause_remaining":5}"#,
            ),
            (
                encode("t", &Paused::default()),
                r#"{"type":"t","paused":false,"pause_until":"0001-01-01T00:00:00Z"}"#,
            ),
            (
                encode("t", &RestoreStarted { deliver_subject: "d".to_string() }),
                r#"{"type":"t","deliver_subject":"d"}"#,
            ),
            (
                encode_error(SYSTEM_KIND, &ApiError::NOT_ENABLED_FOR_ACCOUNT),
                concat!(
                    r#"{"type":"io.nats.jetstream.api.v1.system_response","error":{"code":503,"#,
                    r#""err_code":10039,"description":"JetStream not enabled for account"}}"#,
                ),
            ),
        ] {
            assert_eq!(str::from_utf8(&answer).unwrap(), expected);
        }
    }

    #[test]
    fn a_stream_is_written_as_nats_server_writes_it() {
        let config = concat!(
            r#""config":{"name":"S","retention":"limits","max_consumers":0,"max_msgs":0,"max_bytes":0,"#,
            r#""max_age":0,"max_msgs_per_subject":0,"discard":"old","storage":"file","num_replicas":0,"#,
            r#""compression":"none","allow_direct":false,"mirror_direct":false,"sealed":false,"#,
            r#""deny_delete":false,"deny_purge":false,"allow_rollup_hdrs":false,"consumer_limits":{},"#,
            r#""allow_msg_ttl":false}"#,
        );
        let empty = StreamInfo {
            config: StreamConfig { name: "S".to_string(), ..StreamConfig::default() },
            created: time("2026-01-02T03:04:05Z"),
            ts: time("2026-01-02T03:04:06Z"),
            ..StreamInfo::default()
        };
        let state = StreamState {
            messages: 1,
            bytes: 65,
            first_seq: 2,
            first_ts: time("2026-01-02T03:04:05Z"),
            last_seq: 3,
            last_ts: time("2026-01-02T03:04:05Z"),
            num_subjects: 1,
            subjects: [("S".to_string(), 1)].into(),
            num_deleted: 1,
            deleted: vec![3],
            lost: Some(LostMessages { msgs: vec![4], bytes: 5 }),
            consumer_count: 3,
        };
        let full = StreamInfo {
            state,
            domain: Some("hub".to_string()),
            mirror: Some(StreamSourceInfo {
                name: "M".to_string(),
                lag: 1,
                active: -1,
                ..Default::default()
            }),
            ..empty.clone()
        };
        let page = Page::new(1, 0, 100_000);
        for (answer, expected) in [
            (
                encode("t", &StreamCreated { info: empty, did_create: true }),
                [
                    r#"{"type":"t","#,
                    config,
                    concat!(
                        r#","created":"2026-01-02T03:04:05Z","state":{"messages":0,"bytes":0,"first_seq":0,"#,
                        r#""first_ts":"0001-01-01T00:00:00Z","last_seq":0,"last_ts":"0001-01-01T00:00:00Z","#,
                        r#""consumer_count":0},"ts":"2026-01-02T03:04:06Z","did_create":true}"#,
                    ),
                ]
                .concat(),
            ),
            (
                encode("t", &StreamDetails { page, info: full }),
                [
                    r#"{"type":"t","total":1,"offset":0,"limit":100000,"#,
                    config,
                    concat!(
                        r#","created":"2026-01-02T03:04:05Z","state":{"messages":1,"bytes":65,"first_seq":2,"#,
                        r#""first_ts":"2026-01-02T03:04:05Z","last_seq":3,"last_ts":"2026-01-02T03:04:05Z","#,
                        r#""num_subjects":1,"subjects":{"S":1},"num_deleted":1,"deleted":[3],"#,
                        r#""lost":{"msgs":[4],"bytes":5},"consumer_count":3},"domain":"hub","#,
                        r#""mirror":{"name":"M","lag":1,"active":-1},"ts":"2026-01-02T03:04:06Z"}"#,
                    ),
                ]
                .concat(),
            ),
        ] {
            assert_eq!(str::from_utf8(&answer).unwrap(), expected);
        }
    }

    #[test]
    fn a_consumer_is_written_as_nats_server_writes_it() {
        let last_active = Some(time("2026-01-02T03:04:05Z"));
        let info = ConsumerInfo {
            stream_name: "S".to_string(),
            name: "C".to_string(),
            delivered: SequenceInfo { consumer_seq: 1, stream_seq: 2, last_active },
            ..ConsumerInfo::default()
        };
        let group = PriorityGroupState { group: "g".to_string(), ..PriorityGroupState::default() };
        let full = ConsumerInfo {
            push_bound: true,
            paused: true,
            pause_remaining: Nanos(5),
            priority_groups: vec![group],
            ..info.clone()
        };
        let begin = concat!(
            r#"{"type":"t","stream_name":"S","name":"C","created":"0001-01-01T00:00:00Z","#,
            r#""config":{"deliver_policy":"all","ack_policy":"none","replay_policy":"instant","num_replicas":0},"#,
            r#""delivered":{"consumer_seq":1,"stream_seq":2,"last_active":"2026-01-02T03:04:05Z"},"#,
            r#""ack_floor":{"consumer_seq":0,"stream_seq":0},"num_ack_pending":0,"num_redelivered":0,"#,
            r#""num_waiting":0,"num_pending":0,"#,
        );
        for (answer, end) in [
            (encode("t", &info), r#""ts":"0001-01-01T00:00:00Z"}"#),
            (
                encode("t", &ConsumerReset { info, reset_seq: 7 }),
                r#""ts":"0001-01-01T00:00:00Z","reset_seq":7}"#,
            ),
            (
                encode("t", &full),
                concat!(
                    r#""push_bound":true,"paused":true,"pause_remaining":5,"ts":"0001-01-01T00:00:00Z","#,
                    r#""priority_groups":[{"group":"g","pinned_ts":"0001-01-01T00:00:00Z"}]}"#,
                ),
            ),
        ] {
            assert_eq!(str::from_utf8(&answer).unwrap(), [begin, end].concat());
        }
    }

    #[test]
    fn publishes_are_answered_as_by_nats_server() {
        let ack = PubAck { stream: "S", seq: 7, ..PubAck::default() };
        for (ack, expected) in [
            (ack, r#"{"stream":"S","seq":7}"#),
            (PubAck { stream: "a\"b", ..ack }, r#"{"stream":"a\"b","seq":7}"#),
            (PubAck { duplicate: true, ..ack }, r#"{"stream":"S","seq":7,"duplicate":true}"#),
            (
                PubAck { domain: Some("hub"), level: Some("disk"), ..ack },
                r#"{"stream":"S","seq":7,"domain":"hub","level":"disk"}"#,
            ),
            (
                PubAck { val: Some("-5"), batch: Some("b"), count: Some(3), ..ack },
                r#"{"stream":"S","seq":7,"val":"-5","batch":"b","count":3}"#,
            ),
        ] {
            let mut out = Vec::new();
            ack.push(&mut out);
            assert_eq!(str::from_utf8(&out).unwrap(), expected);
        }
        let refused = PubAck::encode_error("S", &ApiError::stream_rollup_failed("rollup not permitted"));
        assert_eq!(
            str::from_utf8(&refused).unwrap(),
            r#"{"error":{"code":500,"err_code":10111,"description":"rollup not permitted"},"stream":"S","seq":0}"#
        );
    }

    #[test]
    fn a_page_ends_with_the_list() {
        for (total, offset, limit, expected) in [
            (3, 0, 1024, 0..3),
            (2000, 0, 1024, 0..1024),
            (2000, 1024, 1024, 1024..2000),
            (3, 3, 1024, 3..3),
            (3, 9, 1024, 3..3),
            (3, -1, 1024, 0..3),
            (3, i64::MAX, usize::MAX, 3..3),
        ] {
            assert_eq!(Page::new(total, offset, limit).range(), expected, "{total} from {offset}");
        }
    }
}
