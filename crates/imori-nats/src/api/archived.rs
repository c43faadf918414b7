//! The messages of a stream as its archive has them, and the messages and answers around a copy of a stream.

use bytes::Bytes;
use imori_core::entries::Entry;
use imori_core::message::{HeaderReaders, Origins};
use imori_core::name::Name;
use imori_core::queue::Queue;
use imori_core::record::ConsumerState;
use imori_core::stream::{ArchivedMessage, StreamForm, StreamForms as _};
use imori_core::time::Time;

use super::asks::schedule_in_archive;
use super::forms::NatsStreams;
use super::info::{Details, stream_info};
use crate::archive::{ArchiveWriter, ArchivedConsumer, MessageEntry};
use crate::codec::operation::Publish;
use crate::counter;
use crate::header_block::{ReadHeaders, read};
use crate::jetstream::answers::{StreamCreated, encode, encode_error};
use crate::jetstream::error::ApiError;
use crate::jetstream::request::{ApiRequest, StreamVerb};
use crate::jetstream::settings::consumer_config;
use crate::jetstream::stream_info::StreamState;

/// The form that NATS gives to the copies of streams.
#[derive(Debug)]
pub struct ArchiveForms {
    origins: Origins,
    streams: NatsStreams,
}

impl ArchiveForms {
    /// The forms with these origins of header blocks.
    #[must_use]
    pub const fn new(origins: Origins) -> ArchiveForms {
        ArchiveForms { origins, streams: NatsStreams::new(origins) }
    }

    /// Begins the archive of a stream in this state with these consumers, at the time `now`.
    #[must_use]
    pub fn writer(state: &StreamState, consumers: &[ConsumerState], now: Time) -> ArchiveWriter {
        let archived = consumers.iter().map(|consumer| {
            let config = consumer_config(&consumer.name.to_string(), &consumer.settings);
            (consumer.name.clone(), ArchivedConsumer::new(config, consumer, now))
        });
        ArchiveWriter::new(state, &archived.collect::<Vec<_>>(), now)
    }

    /// Writes a message of a stream into its archive. It loses what NATS cannot express of another protocol's message.
    pub fn write(&self, writer: &mut ArchiveWriter, stream: &Name, entry: &Entry, readers: HeaderReaders) {
        let (envelope, view) = (entry.envelope(), entry.message().view());
        let own = envelope.address.subject.as_bytes();
        let other = self.streams.subject(stream, own);
        let block = self.streams.block(&view, readers);
        let body = self.streams.body(&view, readers);
        let body = body.as_deref().unwrap_or(view.body);
        writer.write_message(
            (envelope.sequence, envelope.since),
            other.as_deref().unwrap_or(own),
            &block,
            body,
        );
    }

    /// A message of an archive, as a stream takes it; `is_counter` tells whether it is one of a counter.
    #[must_use]
    pub fn restored(&self, message: MessageEntry, is_counter: bool) -> ArchivedMessage {
        let MessageEntry { sequence, time, subject, block, body } = message;
        let publish = Publish {
            subject: &subject,
            reply: None,
            headers: (!block.is_empty()).then_some(&*block),
            payload: &body,
        };
        let mut scratch = Vec::new();
        let ReadHeaders { mut properties, text, .. } = read(&publish, self.origins, b"", &mut scratch);
        let text = text.into();
        let schedule = schedule_in_archive(&block, &mut properties);
        let value =
            if is_counter { counter::value(&body).map(|value| value.as_bytes().to_vec()) } else { None };
        properties.is_count = value.is_some();
        ArchivedMessage {
            sequence,
            time,
            subject: Name::new(&subject),
            schedule,
            properties,
            text,
            body: Bytes::from(value.unwrap_or(body)),
        }
    }

    /// A message of the broker's own: a piece of a snapshot, or an answer. Reply subject and header block may be empty.
    #[must_use]
    pub fn message(&self, reply: &[u8], block: &[u8], body: Vec<u8>) -> StreamForm {
        self.streams.message(reply, block, Some(body))
    }

    /// The answer to the last piece of a restore.
    #[must_use]
    pub fn restored_answer(queue: &Queue, now: Time) -> Vec<u8> {
        let info = stream_info(queue, Details::default(), now);
        encode(created_kind(), &StreamCreated { info, did_create: false })
    }

    /// The answer to a piece of a restore that has failed.
    #[must_use]
    pub fn restore_failed(error: &str) -> Vec<u8> {
        encode_error(created_kind(), &ApiError::stream_restore(error))
    }

    /// The answer to a request to restore a stream, which has failed.
    #[must_use]
    pub fn restore_refused(error: &str) -> Vec<u8> {
        let kind = ApiRequest::Stream { verb: StreamVerb::Restore, stream: "" }.kind();
        encode_error(kind, &ApiError::stream_restore(error))
    }

    /// The answer to a request for a snapshot, which has failed.
    #[must_use]
    pub fn snapshot_refused(error: &str) -> Vec<u8> {
        let kind = ApiRequest::Stream { verb: StreamVerb::Snapshot, stream: "" }.kind();
        encode_error(kind, &ApiError::stream_snapshot(error))
    }
}

fn created_kind() -> &'static str {
    ApiRequest::Stream { verb: StreamVerb::Create, stream: "" }.kind()
}
