//! The form of the messages that a stream sends by itself.

use imori_core::entries::Entry;
use imori_core::message::{
    DEFAULT_EXCHANGE, HeaderReaders, MessageView, Origins, Properties, Property, Receipt, Rollup, Schedule,
    Span,
};
use imori_core::name::Name;
use imori_core::stream::{
    Advisory, ConsumerDelivery, FlowRequest, GetForm, PullEnd, StreamForm, StreamForms, StreamMessage,
    StreamRefusal,
};
use imori_core::time::Time;
use imori_streams::error::ApiError;
use imori_streams::units::{duration, nanos, time};

use super::advisories;
use crate::address::{self, is_expressible};
use crate::codec::headers::{BLOCK_END, Headers, VERSION_LINE, push_header};
use crate::delivery::{render, stored_block};
use crate::header_block::{HEADERS, PLAIN};
use crate::jetstream::ack::{AckSubject, FlowSubject};
use crate::jetstream::answers::{MessageFound, PubAck, encode, encode_error};
use crate::jetstream::publish_headers::schedule_ttl;
use crate::jetstream::request::{ApiRequest, StreamVerb};
use crate::jetstream::status::{Remainder, Status};
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
    pub(super) fn message(&self, reply: &[u8], block: &[u8], body: Option<Vec<u8>>) -> StreamForm {
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
        let mut block = self.block(&view, readers);
        if let Some(pin) = delivery.pin {
            block = with_headers(&block, &[("Nats-Pin-Id", &text(pin.as_bytes()))]);
        }
        let body = self.body(&view, readers);
        if !has_headers_only {
            return self.message(&reply, &block, body);
        }
        let size = body.as_deref().unwrap_or(view.body).len().to_string();
        self.message(&reply, &with_headers(&block, &[("Nats-Msg-Size", &size)]), Some(Vec::new()))
    }

    fn republished(
        &self,
        stream: &Name,
        entry: &Entry,
        before: u64,
        has_headers_only: bool,
        readers: HeaderReaders,
    ) -> StreamForm {
        let (view, envelope) = (entry.message().view(), entry.envelope());
        let (stream, subject) = (text(stream.as_bytes()), text(envelope.address.subject.as_bytes()));
        let (sequence, before) = (envelope.sequence.to_string(), before.to_string());
        let body = self.body(&view, readers);
        let size = body.as_deref().unwrap_or(view.body).len().to_string();
        let time = time(envelope.since).to_string();
        let mut headers = vec![
            ("Nats-Stream", &*stream),
            ("Nats-Subject", &*subject),
            ("Nats-Sequence", &*sequence),
            ("Nats-Time-Stamp", &*time),
            ("Nats-Last-Sequence", &*before),
        ];
        headers.extend(has_headers_only.then_some(("Nats-Msg-Size", &*size)));
        let block = with_headers(&self.block(&view, readers), &headers);
        let body = if has_headers_only { Some(Vec::new()) } else { body };
        self.message(b"", &block, body)
    }

    fn scheduled(
        &self,
        entry: &Entry,
        schedule: &Schedule,
        content: &Entry,
        next: Option<Time>,
        readers: HeaderReaders,
    ) -> StreamForm {
        let (view, content) = (entry.message().view(), content.message().view());
        let subject = text(entry.envelope().address.subject.as_bytes());
        let told = next.map_or_else(|| "purge".to_owned(), |next| time(next).to_string());
        let mut own = vec![("Nats-Scheduler", &*subject), ("Nats-Schedule-Next", &*told)];
        let ttl = schedule_ttl(stored_block(&view)).map(text);
        own.extend(ttl.as_deref().map(|ttl| ("Nats-TTL", ttl)));
        own.extend(schedule.is_rollup.then_some(("Nats-Rollup", "sub")));
        let block = with_headers(&without_headers(&self.block(&content, readers)), &own);
        self.message(b"", &block, self.body(&content, readers))
    }

    /// The header block of a stored message; empty if it has no headers.
    pub(super) fn block(&self, view: &MessageView<'_>, readers: HeaderReaders) -> Vec<u8> {
        match self.origins.form(view.properties.origin) {
            Some(PLAIN) => Vec::new(),
            Some(HEADERS) => stored_block(view).to_vec(),
            _ => Some(render(view, readers))
                .filter(|block| block.len() > VERSION_LINE.len() + BLOCK_END.len())
                .unwrap_or_default(),
        }
    }

    /// The body, if it is stored in another form.
    pub(super) fn body(&self, view: &MessageView<'_>, readers: HeaderReaders) -> Option<Vec<u8>> {
        if !view.properties.is_count && self.origins.form(view.properties.origin).is_some() {
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
                    PullEnd::PinLost => Status::WrongPinId(remainder),
                    PullEnd::PinMismatch => Status::PinIdMismatch,
                })
            }
            StreamMessage::Heartbeat { delivered, unanswered } => {
                let stalled = unanswered.as_ref().map(flow_subject);
                self.status(&Status::IdleHeartbeat {
                    consumer_sequence: delivered.consumer,
                    stream_sequence: delivered.stream,
                    stalled: stalled.as_deref().map(text).as_deref(),
                })
            }
            StreamMessage::FlowControl(request) => {
                let mut block = Vec::new();
                Status::FlowControlRequest.push(&mut block);
                self.message(&flow_subject(request), &block, Some(Vec::new()))
            }
            StreamMessage::Republished { stream, entry, before, has_headers_only } => {
                self.republished(stream, entry, *before, *has_headers_only, readers)
            }
            StreamMessage::Marker { ttl } => {
                let ttl = duration(Some(*ttl)).to_string();
                let headers = [("Nats-Marker-Reason", "MaxAge"), ("Nats-TTL", &*ttl), ("Nats-Rollup", "sub")];
                self.message(b"", &with_headers(b"", &headers), Some(Vec::new()))
            }
            StreamMessage::Scheduled { entry, schedule, content, next } => {
                self.scheduled(entry, schedule, content, *next, readers)
            }
            StreamMessage::Staged => self.message(b"", b"", Some(Vec::new())),
            StreamMessage::Published { stream, sequence, is_duplicate, level, receipt } => {
                let mut body = Vec::new();
                let (stream, level) = (text(stream.as_bytes()), Some(level.as_str()));
                let (value, batch) = match receipt {
                    Receipt::Plain => (None, None),
                    Receipt::Count(value) => (Some(text(value)), None),
                    Receipt::Batch(id, count) => (None, Some((text(id), *count))),
                };
                let ack = PubAck {
                    stream: &stream,
                    seq: *sequence,
                    duplicate: *is_duplicate,
                    val: value.as_deref(),
                    batch: batch.as_ref().map(|(id, _)| &**id),
                    count: batch.as_ref().map(|(_, count)| *count),
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

    fn advisory_subject(&self, advisory: &Advisory<'_>) -> Vec<u8> {
        advisories::subject(advisory)
    }

    fn advisory(&self, advisory: &Advisory<'_>, id: [u8; 16]) -> StreamForm {
        self.message(b"", b"", Some(advisories::body(advisory, id)))
    }
}

fn flow_subject(request: &FlowRequest<'_>) -> Vec<u8> {
    let (stream, consumer) = (request.stream.as_bytes(), request.consumer.as_bytes());
    FlowSubject { stream, consumer, number: request.number }.encode()
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
        StreamRefusal::ScheduleDenied => ApiError::MESSAGE_SCHEDULES_DISABLED,
        StreamRefusal::ScheduleTarget => ApiError::MESSAGE_SCHEDULES_TARGET_INVALID,
        StreamRefusal::ScheduleSource => ApiError::MESSAGE_SCHEDULES_SOURCE_INVALID,
        StreamRefusal::NoSchedule => ApiError::MESSAGE_SCHEDULES_SCHEDULER_INVALID,
        StreamRefusal::IncrementDenied => ApiError::MESSAGE_INCREMENT_DISABLED,
        StreamRefusal::IncrementMissing => ApiError::MESSAGE_INCREMENT_MISSING,
        StreamRefusal::IncrementBody => ApiError::MESSAGE_INCREMENT_PAYLOAD,
        StreamRefusal::IncrementInvalid => ApiError::MESSAGE_INCREMENT_INVALID,
        StreamRefusal::CounterBroken => ApiError::MESSAGE_COUNTER_BROKEN,
        StreamRefusal::CounterOnDisk => ApiError::stream_store_failed("the counter is on disk; try again"),
        StreamRefusal::BatchDenied => ApiError::ATOMIC_PUBLISH_DISABLED,
        StreamRefusal::BatchIncomplete => ApiError::ATOMIC_PUBLISH_INCOMPLETE_BATCH,
        StreamRefusal::BatchTooLarge(max) => ApiError::atomic_publish_too_large_batch(max),
        StreamRefusal::TooManyBatches => ApiError::ATOMIC_PUBLISH_TOO_MANY_INFLIGHT,
        StreamRefusal::BatchEndUnknown => ApiError::ATOMIC_PUBLISH_INVALID_BATCH_COMMIT,
        StreamRefusal::BatchDuplicate => ApiError::ATOMIC_PUBLISH_CONTAINS_DUPLICATE_MESSAGE,
        StreamRefusal::BatchLastId => {
            ApiError::atomic_publish_unsupported_header_batch("Nats-Expected-Last-Msg-Id")
        }
        StreamRefusal::BatchExpectation => ApiError::STREAM_WRONG_LAST_SEQUENCE_CONSTANT,
        StreamRefusal::BatchRollup(Rollup::Subject) => {
            ApiError::stream_rollup_failed("batch rollup sub invalid")
        }
        StreamRefusal::BatchRollup(Rollup::All) => ApiError::stream_rollup_failed("batch rollup all invalid"),
        StreamRefusal::Unavailable(cause) => ApiError::unavailable(*cause),
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

/// A header block without what concerns how the message came into the stream.
fn without_headers(block: &[u8]) -> Vec<u8> {
    let mut out = VERSION_LINE.to_vec();
    for (name, value) in Headers::new(block) {
        let is_own = [&b"Nats-Schedule"[..], b"Nats-Expected-"].iter().any(|begin| name.starts_with(begin));
        if !is_own && !matches!(name, b"Nats-Msg-Id" | b"Nats-TTL" | b"Nats-Rollup") {
            push_header(&mut out, name, value);
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_follow_those_of_the_message() {
        for (block, expected) in [
            (&b""[..], &b"NATS/1.0\r\nNats-Sequence: 2\r\n\r\n"[..]),
            (b"NATS/1.0\r\nA: b\r\n\r\n", b"NATS/1.0\r\nA: b\r\nNats-Sequence: 2\r\n\r\n"),
        ] {
            assert_eq!(with_headers(block, &[("Nats-Sequence", "2")]), expected);
        }
    }
}
