//! The form of the messages that a stream sends by itself.

use imori_core::entries::Entry;
use imori_core::message::{
    DEFAULT_EXCHANGE, HeaderReaders, MessageView, Origins, Properties, Property, Span,
};
use imori_core::name::Name;
use imori_core::stream::{
    Advisory, ConsumerDelivery, ConsumerSettings, GetForm, PullEnd, StreamForm, StreamForms, StreamMessage,
    StreamRefusal, StreamSettings,
};
use imori_core::time::Time;
use serde::Serialize;

use super::settings::{consumer_settings, stream_settings};
use crate::address::{self, is_expressible};
use crate::codec::headers::{BLOCK_END, VERSION_LINE, push_header};
use crate::codec::time::Timestamp;
use crate::delivery::{render, stored_block};
use crate::header_block::{HEADERS, PLAIN};
use crate::jetstream::ack::AckSubject;
use crate::jetstream::answers::{MessageFound, PubAck, encode, encode_error, to_json};
use crate::jetstream::consumer_config::ConsumerConfig;
use crate::jetstream::error::ApiError;
use crate::jetstream::request::{ApiRequest, StreamVerb};
use crate::jetstream::status::{Remainder, Status};
use crate::jetstream::stream_config::StreamConfig;
use crate::jetstream::stream_info::StoredMessage;

/// NATS as the protocol of streams.
#[derive(Debug)]
pub struct NatsStreams {
    origins: Origins,
}

impl NatsStreams {
    /// NATS with these origins of header blocks.
    #[must_use]
    pub const fn new(origins: Origins) -> Self {
        Self { origins }
    }

    /// A message with a reply subject, a header block and a body.
    fn message(&self, reply: &[u8], block: &[u8], body: Option<Vec<u8>>) -> StreamForm {
        let mut properties =
            Properties::new(self.origins.origin(if block.is_empty() { PLAIN } else { HEADERS }));
        if let Some(span) = Span::new(0, reply.len()) {
            properties.set(Property::ReplyTo, span);
        }
        StreamForm { properties, text: [reply, block].concat(), body }
    }

    fn status(&self, status: &Status<'_>) -> StreamForm {
        let mut block = Vec::new();
        status.push(&mut block);
        self.message(b"", &block, Some(Vec::new()))
    }

    fn delivery(
        &self,
        entry: &Entry,
        delivery: &ConsumerDelivery<'_>,
        has_headers_only: bool,
        readers: HeaderReaders,
    ) -> StreamForm {
        let view = entry.message().view();
        let mut reply = Vec::with_capacity(128);
        AckSubject {
            stream: delivery.stream.as_bytes(),
            consumer: delivery.consumer.as_bytes(),
            deliveries: delivery.deliveries,
            stream_sequence: delivery.place.stream,
            consumer_sequence: delivery.place.consumer,
            timestamp: nanos(delivery.time),
            pending: delivery.unread,
        }
        .push(&mut reply);
        let block = self.block(&view, readers);
        if !has_headers_only {
            return self.message(&reply, &block, self.body(&view, readers));
        }
        let size = view.body.len().to_string();
        self.message(&reply, &with_headers(&block, &[("Nats-Msg-Size", &size)]), Some(Vec::new()))
    }

    /// The header block of a stored message; empty if it has no headers.
    fn block(&self, view: &MessageView<'_>, readers: HeaderReaders) -> Vec<u8> {
        match self.origins.form(view.properties.origin) {
            Some(PLAIN) => Vec::new(),
            Some(HEADERS) => stored_block(view).to_vec(),
            _ => Some(render(view, readers))
                .filter(|block| block.len() > VERSION_LINE.len() + BLOCK_END.len())
                .unwrap_or_default(),
        }
    }

    /// The body, if another protocol has stored it encoded.
    fn body(&self, view: &MessageView<'_>, readers: HeaderReaders) -> Option<Vec<u8>> {
        if self.origins.form(view.properties.origin).is_some() {
            return None;
        }
        match readers(view.properties.origin).body(view) {
            std::borrow::Cow::Borrowed(_) => None,
            std::borrow::Cow::Owned(body) => Some(body),
        }
    }
}

impl StreamForms for NatsStreams {
    fn form(&self, message: &StreamMessage<'_>, readers: HeaderReaders) -> StreamForm {
        match message {
            StreamMessage::Delivery { entry, delivery, has_headers_only } => {
                self.delivery(entry, delivery, *has_headers_only, readers)
            }
            StreamMessage::Direct { stream, entry, batch } => {
                let (view, envelope) = (entry.message().view(), entry.envelope());
                let sequence = envelope.sequence.to_string();
                let time = time(envelope.since).to_string();
                let (stream, subject) = (text(stream.as_bytes()), text(envelope.address.subject.as_bytes()));
                let mut headers = vec![
                    ("Nats-Stream", &*stream),
                    ("Nats-Subject", &*subject),
                    ("Nats-Sequence", &*sequence),
                    ("Nats-Time-Stamp", &*time),
                ];
                let of_batch = batch.map(|(left, before)| (left.to_string(), before.to_string()));
                if let Some((left, before)) = &of_batch {
                    headers.extend([("Nats-Num-Pending", &**left), ("Nats-Last-Sequence", &**before)]);
                }
                let block = with_headers(&self.block(&view, readers), &headers);
                self.message(b"", &block, self.body(&view, readers))
            }
            StreamMessage::Stored { entry } => {
                let (view, envelope) = (entry.message().view(), entry.envelope());
                let body = self.body(&view, readers);
                let message = StoredMessage {
                    subject: &text(envelope.address.subject.as_bytes()),
                    seq: envelope.sequence,
                    hdrs: &self.block(&view, readers),
                    data: body.as_deref().unwrap_or(view.body),
                    time: time(envelope.since),
                };
                self.message(b"", b"", Some(encode(message_get_kind(), &MessageFound { message })))
            }
            StreamMessage::NotFound(GetForm::Direct) => self.status(&Status::MessageNotFound),
            StreamMessage::NotFound(GetForm::Stored) => {
                let error = encode_error(message_get_kind(), &ApiError::NO_MESSAGE_FOUND);
                self.message(b"", b"", Some(error))
            }
            StreamMessage::BatchEnd { left, up_to, last } => self.status(&Status::EndOfBatch {
                pending: *left,
                last_sequence: *last,
                up_to_sequence: Some(*up_to),
            }),
            StreamMessage::PullEnded { end, left, bytes_left } => {
                let remainder = Remainder { messages: *left, bytes: *bytes_left };
                self.status(&match end {
                    PullEnd::NoMessages => Status::NoMessages,
                    PullEnd::Timeout => Status::RequestTimeout(remainder),
                    PullEnd::TooLarge => Status::MessageSizeExceedsMaxBytes(remainder),
                    PullEnd::ConsumerDeleted => Status::ConsumerDeleted,
                    PullEnd::TooManyWaiting => Status::ExceededMaxWaiting,
                })
            }
            StreamMessage::Heartbeat { delivered } => self.status(&Status::IdleHeartbeat {
                consumer_sequence: delivered.consumer,
                stream_sequence: delivered.stream,
                stalled: None,
            }),
            StreamMessage::Published { stream, sequence, is_duplicate, level } => {
                let mut body = Vec::new();
                let (stream, level) = (text(stream.as_bytes()), Some(level.as_str()));
                let ack = PubAck {
                    stream: &stream,
                    seq: *sequence,
                    duplicate: *is_duplicate,
                    level,
                    ..PubAck::default()
                };
                ack.push(&mut body);
                self.message(b"", b"", Some(body))
            }
            StreamMessage::Refused { stream, refusal } => {
                let body = PubAck::encode_error(&text(stream.as_bytes()), &error_of(refusal));
                self.message(b"", b"", Some(body))
            }
            StreamMessage::Acked => self.message(b"", b"", Some(Vec::new())),
            StreamMessage::Answer(body) => self.message(b"", b"", Some(body.to_vec())),
        }
    }

    fn subject(&self, stream: &Name, subject: &[u8]) -> Option<Vec<u8>> {
        match subject {
            b"" => Some(stream.as_bytes().to_vec()),
            subject if is_expressible(subject) => None,
            subject => address::subject(DEFAULT_EXCHANGE, subject),
        }
    }

    fn advisory(&self, advisory: &Advisory<'_>, id: [u8; 16]) -> (Vec<u8>, StreamForm) {
        #[derive(Serialize)]
        struct DeliveriesExceeded<'a> {
            #[serde(rename = "type")]
            kind: &'static str,
            id: String,
            timestamp: Timestamp,
            stream: &'a str,
            consumer: &'a str,
            stream_seq: u64,
            deliveries: u64,
        }
        let (stream, consumer) = (text(advisory.stream.as_bytes()), text(advisory.consumer.as_bytes()));
        let body = to_json(&DeliveriesExceeded {
            kind: "io.nats.jetstream.advisory.v1.max_deliver",
            id: id.iter().map(|byte| format!("{byte:02x}")).collect(),
            timestamp: time(advisory.time),
            stream: &stream,
            consumer: &consumer,
            stream_seq: advisory.sequence,
            deliveries: advisory.deliveries,
        });
        let subject = format!("$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES.{stream}.{consumer}");
        (subject.into_bytes(), self.message(b"", b"", Some(body)))
    }

    fn stream(&self, configuration: &[u8]) -> Option<StreamSettings> {
        let config: StreamConfig = serde_json::from_slice(configuration).ok()?;
        stream_settings(&config).stream.map(|stream| *stream)
    }

    fn consumer(&self, configuration: &[u8]) -> Option<ConsumerSettings> {
        let config: ConsumerConfig = serde_json::from_slice(configuration).ok()?;
        consumer_settings(&config).ok()
    }
}

/// The error that a publisher gets.
fn error_of(refusal: &StreamRefusal) -> ApiError {
    match refusal {
        StreamRefusal::MaximumMessages => ApiError::stream_store_failed("maximum messages exceeded"),
        StreamRefusal::MaximumBytes => ApiError::stream_store_failed("maximum bytes exceeded"),
        StreamRefusal::MaximumPerSubject => {
            ApiError::stream_store_failed("maximum messages per subject exceeded")
        }
        StreamRefusal::TooLarge => ApiError::STREAM_MESSAGE_EXCEEDS_MAXIMUM,
        StreamRefusal::Sealed => ApiError::STREAM_SEALED,
        StreamRefusal::WrongStream => ApiError::STREAM_NOT_MATCH,
        StreamRefusal::WrongLastSequence(last) | StreamRefusal::WrongLastOfSubject(last) => {
            ApiError::stream_wrong_last_sequence(last)
        }
        StreamRefusal::WrongLastId(id) => ApiError::stream_wrong_last_message_id(text(id)),
        StreamRefusal::RollupDenied => ApiError::stream_rollup_failed("rollup not permitted"),
        StreamRefusal::TtlDenied => ApiError::MESSAGE_TTL_DISABLED,
        StreamRefusal::DiskFull => ApiError::INSUFFICIENT_RESOURCES,
    }
}

/// A header block with these headers behind its own.
fn with_headers(block: &[u8], headers: &[(&str, &str)]) -> Vec<u8> {
    let mut out = match block.strip_suffix(BLOCK_END) {
        Some(begin) if !begin.is_empty() => begin.to_vec(),
        _ => VERSION_LINE.to_vec(),
    };
    for (name, value) in headers {
        push_header(&mut out, name.as_bytes(), value.as_bytes());
    }
    out.extend_from_slice(BLOCK_END);
    out
}

fn message_get_kind() -> &'static str {
    ApiRequest::Stream { verb: StreamVerb::MessageGet, stream: "" }.kind()
}

fn text(bytes: &[u8]) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

/// A time of the core, in nanoseconds.
pub(super) fn nanos(time: Time) -> u64 {
    time.0.saturating_mul(1000)
}

/// A time of the core, as JSON has it.
pub(super) fn time(time: Time) -> Timestamp {
    Timestamp::from_unix_nanos(i64::try_from(nanos(time)).unwrap_or(i64::MAX))
}
