//! The form of archives of streams that nats-server has, and the dialogue by which its clients copy them.

use bytes::Bytes;
use imori_core::entries::Entry;
use imori_core::message::{HeaderReaders, Origins};
use imori_core::name::Name;
use imori_core::queue::Queue;
use imori_core::stream::{ArchivedMessage, StreamForm, StreamForms as _};
use imori_core::time::Time;
use imori_streams::archive::{
    ArchiveError, ArchiveForms, ArchiveItem, ArchiveReader, ArchiveWriter, TransferEnd, TransferFacts,
    TransferWords,
};
use imori_streams::consumer_config::ConsumerConfig;
use imori_streams::declared::DeclaredStream;
use imori_streams::error::ApiError;
use imori_streams::settings::consumer_config;
use imori_streams::units::time;

use super::advisories::{AuditClient, TransferAction, TransferFields};
use super::asks::schedule_in_archive;
use super::forms::NatsStreams;
use super::info::{Details, stream_info};
use crate::archive::{self, ArchivedConsumer, MessageEntry};
use crate::codec::operation::Publish;
use crate::counter;
use crate::header_block::{ReadHeaders, read};
use crate::jetstream::answers::{StreamCreated, encode, encode_error};
use crate::jetstream::request::{ApiRequest, StreamVerb};

/// The archives of nats-server, and its dialogue.
#[derive(Debug)]
pub struct NatsArchives {
    origins: Origins,
    streams: NatsStreams,
}

impl NatsArchives {
    /// Archives with these origins of header blocks.
    #[must_use]
    pub const fn new(origins: Origins) -> NatsArchives {
        NatsArchives { origins, streams: NatsStreams::new(origins) }
    }
}

impl ArchiveForms for NatsArchives {
    fn writer(&self, queue: &Queue, has_consumers: bool, now: Time) -> Box<dyn ArchiveWriter> {
        let state = stream_info(queue, Details::default(), now).state;
        let consumers = if has_consumers { queue.consumer_states() } else { Vec::new() };
        let archived = consumers.iter().map(|consumer| {
            let config = consumer_config(&consumer.name.to_string(), &consumer.settings);
            (consumer.name.clone(), ArchivedConsumer::new(config, consumer, now))
        });
        let entries = archive::ArchiveWriter::new(&state, &archived.collect::<Vec<_>>(), now);
        Box::new(Writer { entries, streams: NatsStreams::new(self.origins) })
    }

    fn reader(
        &self,
        declared: &DeclaredStream,
        message_bytes_max: usize,
        now: Time,
    ) -> Box<dyn ArchiveReader> {
        Box::new(Reader {
            entries: archive::ArchiveReader::new(message_bytes_max),
            origins: self.origins,
            declared: declared.clone(),
            now,
            last: 0,
            configs: Vec::new(),
        })
    }
}

#[derive(Debug)]
struct Writer {
    entries: archive::ArchiveWriter,
    streams: NatsStreams,
}

impl ArchiveWriter for Writer {
    fn write(&mut self, stream: &Name, entry: &Entry, readers: HeaderReaders) {
        let (envelope, view) = (entry.envelope(), entry.message().view());
        let own = envelope.address.subject.as_bytes();
        let other = self.streams.subject(stream, own);
        let (block, body) = (self.streams.block(&view, readers), self.streams.body(&view, readers));
        self.entries.write_message(
            (envelope.sequence, envelope.since),
            other.as_deref().unwrap_or(own),
            &block,
            body.as_deref().unwrap_or(view.body),
        );
    }

    fn end(&mut self) {
        self.entries.end();
    }

    fn take(&mut self) -> Vec<u8> {
        self.entries.take()
    }
}

#[derive(Debug)]
struct Reader {
    entries: archive::ArchiveReader,
    origins: Origins,
    declared: DeclaredStream,
    now: Time,
    /// The number of the last message, which the archive begins with.
    last: u64,
    /// The configurations of the consumers so far.
    configs: Vec<ConsumerConfig>,
}

impl ArchiveReader for Reader {
    fn push(&mut self, bytes: &[u8]) {
        self.entries.push(bytes);
    }

    fn read(&mut self) -> Result<Option<ArchiveItem>, ArchiveError> {
        let Some(entry) = self.entries.read()? else { return Ok(None) };
        Ok(Some(match entry {
            archive::ArchiveItem::State(state) => {
                self.last = state.last_seq;
                ArchiveItem::Last(self.last)
            }
            archive::ArchiveItem::Consumer(name, consumer) => {
                let checked = self.declared.archived_consumer(&name, &consumer.config, &self.configs);
                let (config, settings) =
                    checked.map_err(|error| ArchiveError::Consumer(name.clone(), error.to_string()))?;
                self.configs.push(config);
                ArchiveItem::Consumer(Box::new(consumer.state(&name, settings, (self.last, self.now))))
            }
            archive::ArchiveItem::Message(message) => ArchiveItem::Message(self.message(message)),
            archive::ArchiveItem::End => ArchiveItem::End,
        }))
    }

    fn check_end(&self) -> Result<(), ArchiveError> {
        self.entries.check_end()
    }
}

impl Reader {
    /// A message of an archive, as a stream takes it.
    fn message(&self, message: MessageEntry) -> ArchivedMessage {
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
        let is_counter = self.declared.config().allow_msg_counter;
        let value = counter::value(&body).filter(|_| is_counter).map(|value| value.as_bytes().to_vec());
        properties.is_count = value.is_some();
        let (subject, body) = (Name::new(&subject), Bytes::from(value.unwrap_or(body)));
        ArchivedMessage { sequence, time, subject, schedule, properties, text, body }
    }
}

impl TransferWords for NatsArchives {
    fn message(&self, reply: &[u8], block: &[u8], body: Vec<u8>) -> StreamForm {
        self.streams.message(reply, block, Some(body))
    }

    fn ack_subject(&self, stream: &str, token: &str) -> String {
        format!("$JS.SNAPSHOT.ACK.{stream}.{token}")
    }

    fn end(&self, end: TransferEnd<'_>) -> Vec<u8> {
        let status = match end {
            // As in nats-server, whose clients take an empty message for the end.
            TransferEnd::Sent { has_pieces: false } => return Vec::new(),
            TransferEnd::Sent { has_pieces: true } => String::from("204"),
            TransferEnd::NoReader => String::from("408 No Interest"),
            TransferEnd::NoAnswer => String::from("408 No Flow Response"),
            TransferEnd::Failed(error) => format!("500 {error}"),
        };
        format!("NATS/1.0 {status}\r\n\r\n").into_bytes()
    }

    fn refused(&self, is_restore: bool, error: &str) -> Vec<u8> {
        let (verb, error) = match is_restore {
            true => (StreamVerb::Restore, ApiError::stream_restore(error)),
            false => (StreamVerb::Snapshot, ApiError::stream_snapshot(error)),
        };
        encode_error(ApiRequest::Stream { verb, stream: "" }.kind(), &error)
    }

    fn piece_refused(&self, error: &str) -> Vec<u8> {
        encode_error(created_kind(), &ApiError::stream_restore(error))
    }

    fn restored(&self, queue: &Queue, now: Time) -> Vec<u8> {
        let info = stream_info(queue, Details::default(), now);
        encode(created_kind(), &StreamCreated { info, did_create: false })
    }

    fn advisory(&self, facts: &TransferFacts<'_>, id: [u8; 16]) -> (Vec<u8>, Vec<u8>) {
        let action = match facts.is_restore {
            true => TransferAction::RestoreCompleted,
            false => TransferAction::SnapshotCompleted,
        };
        let fields = TransferFields {
            stream: facts.stream,
            client: AuditClient { user: facts.user, ..AuditClient::default() },
            start: Some(time(facts.began)),
            end: Some(time(facts.ended)),
            bytes: facts.bytes,
            error: facts.error.clone(),
        };
        (action.subject(facts.stream), action.body(&fields, id, facts.ended))
    }
}

fn created_kind() -> &'static str {
    ApiRequest::Stream { verb: StreamVerb::Create, stream: "" }.kind()
}
