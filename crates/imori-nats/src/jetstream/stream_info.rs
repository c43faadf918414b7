//! The state of a stream, and its messages, as answers and header blocks report them.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize, Serializer};

use crate::codec::headers::{BLOCK_END, Headers, VERSION_LINE, push_header, push_number_header};
use crate::codec::time::Timestamp;
use crate::jetstream::error::ApiError;
use crate::jetstream::stream_config::{ExternalStream, StreamConfig, SubjectTransform, is_zero};

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

/// The position of a message in a direct get of several messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchPosition {
    /// Messages that follow.
    pub pending: u64,
    /// The sequence of the message before; 0 for the first.
    pub last_sequence: u64,
}

impl StoredMessage<'_> {
    /// Appends the header block of the answer to a direct get.
    pub fn push_direct(&self, out: &mut Vec<u8>, stream: &str, batch: Option<BatchPosition>) {
        self.push_origin(out, stream);
        if let Some(BatchPosition { pending, last_sequence }) = batch {
            push_number_header(out, "Nats-Num-Pending", pending);
            push_number_header(out, "Nats-Last-Sequence", last_sequence);
        }
        out.extend_from_slice(BLOCK_END);
    }

    /// Appends the header block of the message when it is republished. `last_sequence` is the
    /// sequence of the message before on the same subject, 0 for none; `is_headers_only` tells
    /// that the payload is left out.
    pub fn push_republished(
        &self,
        out: &mut Vec<u8>,
        stream: &str,
        last_sequence: u64,
        is_headers_only: bool,
    ) {
        self.push_origin(out, stream);
        push_number_header(out, "Nats-Last-Sequence", last_sequence);
        if is_headers_only {
            push_number_header(out, "Nats-Msg-Size", self.data.len() as u64);
        }
        out.extend_from_slice(BLOCK_END);
    }

    /// Appends the header block of a delivery without the payload.
    pub fn push_headers_only(&self, out: &mut Vec<u8>) {
        self.push_open(out);
        push_number_header(out, "Nats-Msg-Size", self.data.len() as u64);
        out.extend_from_slice(BLOCK_END);
    }

    /// Appends the message's own headers and its origin, without the end of the block.
    fn push_origin(&self, out: &mut Vec<u8>, stream: &str) {
        self.push_open(out);
        push_header(out, b"Nats-Stream", stream.as_bytes());
        push_header(out, b"Nats-Subject", self.subject.as_bytes());
        push_number_header(out, "Nats-Sequence", self.seq);
        push_header(out, b"Nats-Time-Stamp", self.time.to_string().as_bytes());
    }

    /// Appends the message's own headers, without the end of the block.
    fn push_open(&self, out: &mut Vec<u8>) {
        match self.hdrs.strip_suffix(BLOCK_END).filter(|open| open.ends_with(BLOCK_END)) {
            Some(open) => out.extend_from_slice(open),
            // No block, or one that only lenient readers understand.
            None => {
                out.extend_from_slice(VERSION_LINE);
                for (name, value) in Headers::new(self.hdrs) {
                    push_header(out, name, value);
                }
            }
        }
    }
}

fn in_base64<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&STANDARD.encode(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The header blocks of nats-server 2.15, but for the block without carriage returns.
    #[test]
    fn header_blocks_are_those_of_nats_server() {
        let message = StoredMessage {
            subject: "a.b",
            seq: 2,
            hdrs: b"",
            data: b"hello",
            time: Timestamp::parse("2026-01-02T03:04:05.6Z").unwrap(),
        };
        let own = StoredMessage { hdrs: b"NATS/1.0\r\nA: b\r\n\r\n", ..message.clone() };
        let odd = StoredMessage { hdrs: b"NATS/1.0\nA:b\n\n", ..message.clone() };
        let batch = Some(BatchPosition { pending: 3, last_sequence: 1 });
        let origin = "Nats-Stream: S\r\nNats-Subject: a.b\r\nNats-Sequence: 2\r\nNats-Time-Stamp: 2026-01-02T03:04:05.6Z\r\n";
        let block = |push: &dyn Fn(&mut Vec<u8>)| {
            let mut out = Vec::new();
            push(&mut out);
            String::from_utf8(out).unwrap()
        };
        for (read, own_headers, end) in [
            (block(&|out| message.push_direct(out, "S", None)), "", [origin, ""].concat()),
            (block(&|out| own.push_direct(out, "S", None)), "A: b\r\n", [origin, ""].concat()),
            (block(&|out| odd.push_direct(out, "S", None)), "A: b\r\n", [origin, ""].concat()),
            (
                block(&|out| own.push_direct(out, "S", batch)),
                "A: b\r\n",
                [origin, "Nats-Num-Pending: 3\r\nNats-Last-Sequence: 1\r\n"].concat(),
            ),
            (
                block(&|out| message.push_republished(out, "S", 1, false)),
                "",
                [origin, "Nats-Last-Sequence: 1\r\n"].concat(),
            ),
            (
                block(&|out| own.push_republished(out, "S", 1, true)),
                "A: b\r\n",
                [origin, "Nats-Last-Sequence: 1\r\nNats-Msg-Size: 5\r\n"].concat(),
            ),
            (block(&|out| own.push_headers_only(out)), "A: b\r\n", "Nats-Msg-Size: 5\r\n".to_string()),
        ] {
            assert_eq!(read, format!("NATS/1.0\r\n{own_headers}{end}\r\n"));
        }
    }
}
