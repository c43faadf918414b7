//! Makes a stream of an archive, batch by batch.

use imori_core::authorize::Identity;
use imori_core::id::VhostId;
use imori_core::internal::{Done, StreamVerb, Verb};
use imori_core::name::Name;
use imori_core::stream::ArchivedMessage;
use imori_nats::DeclaredStream;
use imori_nats::archive::{ArchiveError, ArchiveItem, ArchiveReader, ArchivedConsumer};
use imori_nats::jetstream::stream_info::StreamState;

use super::error::TransferError;
use crate::broker::Broker;
use crate::internal::{InternalClient, InternalError};
use crate::limits::{RESTORE_BATCH_BYTES, RESTORE_CONSUMERS_BYTES_MAX, RESTORE_MESSAGE_BYTES_MAX};
use crate::protocol_numbers::ARCHIVE_FORMS;

/// A stream that is being made of an archive. If it is dropped before its end, the stream is deleted.
#[derive(Debug)]
pub struct StreamRestore {
    broker: Broker,
    client: InternalClient,
    vhost: VhostId,
    stream: Name,
    declared: DeclaredStream,
    reader: ArchiveReader,
    state: StreamState,
    consumers: Vec<(String, ArchivedConsumer)>,
    waiting: Vec<ArchivedMessage>,
    waiting_bytes: usize,
    /// The stream is there, and not yet whole.
    is_open: bool,
}

impl StreamRestore {
    /// Declares the stream with the rights of `client`.
    ///
    /// # Errors
    /// [`TransferError`].
    pub async fn begin(
        broker: &Broker,
        client: InternalClient,
        vhost: VhostId,
        declared: DeclaredStream,
    ) -> Result<StreamRestore, TransferError> {
        let stream = Name::from(declared.config().name.as_str());
        let verb = StreamVerb::BeginRestore { settings: Box::new(declared.settings()) };
        if let Done::Existed = client.done(Verb::Stream { stream: stream.clone(), verb }).await? {
            return Err(TransferError::Exists);
        }
        Ok(StreamRestore {
            broker: broker.clone(),
            client,
            vhost,
            stream,
            declared,
            reader: ArchiveReader::new(RESTORE_MESSAGE_BYTES_MAX),
            state: StreamState::default(),
            consumers: Vec::new(),
            waiting: Vec::new(),
            waiting_bytes: 0,
            is_open: true,
        })
    }

    /// Takes the next bytes of the archive. Bytes behind its end are ignored.
    ///
    /// # Errors
    /// [`TransferError`]; then the restore has to be given up.
    pub async fn write(&mut self, bytes: &[u8]) -> Result<(), TransferError> {
        // In small pieces, so that no more than one frame of the archive is unpacked.
        for piece in bytes.chunks(RESTORE_BATCH_BYTES) {
            self.reader.push(piece);
            while let Some(item) = self.reader.read()? {
                self.take(item).await?;
            }
        }
        Ok(())
    }

    async fn take(&mut self, item: ArchiveItem) -> Result<(), TransferError> {
        match item {
            ArchiveItem::State(state) => self.state = *state,
            ArchiveItem::Consumer(name, consumer) => {
                self.waiting_bytes += consumer.bytes();
                if self.waiting_bytes > RESTORE_CONSUMERS_BYTES_MAX {
                    return Err(ArchiveError::Invalid.into());
                }
                self.consumers.push((name, *consumer));
            }
            ArchiveItem::Message(message) => {
                if self.waiting.is_empty() {
                    self.waiting_bytes = 0;
                }
                self.waiting_bytes += message.body.len() + message.block.len() + size_of::<ArchivedMessage>();
                let is_counter = self.declared.config().allow_msg_counter;
                self.waiting.push(ARCHIVE_FORMS.restored(message, is_counter));
                if self.waiting_bytes >= RESTORE_BATCH_BYTES {
                    self.store().await?;
                }
            }
            ArchiveItem::End => {}
        }
        Ok(())
    }

    /// Stores the messages that wait.
    async fn store(&mut self) -> Result<(), TransferError> {
        let messages = std::mem::take(&mut self.waiting);
        let Some(last) = messages.last().map(|message| message.sequence) else { return Ok(()) };
        let count = messages.len();
        match self.run(StreamVerb::Restore(messages)).await? {
            Done::Restored(taken) if taken == count => Ok(()),
            _ => Err(ArchiveError::Order(last).into()),
        }
    }

    /// Ends the restore: from now on, the stream is like any other.
    ///
    /// # Errors
    /// [`TransferError`]; then the stream is deleted.
    pub async fn finish(mut self) -> Result<(), TransferError> {
        match self.complete().await {
            Ok(()) => {
                self.is_open = false;
                Ok(())
            }
            Err(error) => {
                self.give_up().await;
                Err(error)
            }
        }
    }

    async fn complete(&mut self) -> Result<(), TransferError> {
        self.reader.check_end()?;
        self.store().await?;
        let (mut configs, mut consumers) = (Vec::new(), Vec::new());
        let now = self.broker.now();
        for (name, consumer) in std::mem::take(&mut self.consumers) {
            let checked = self.declared.archived_consumer(&name, &consumer.config, &configs);
            let (config, settings) = checked.map_err(|error| {
                TransferError::Configuration(format!("failed to add consumer {name:?}: {error}"))
            })?;
            configs.push(config);
            consumers.push(consumer.state(&name, settings, (self.state.last_seq, now)));
        }
        let (next, subjects) = (self.state.last_seq + 1, self.declared.subjects());
        self.run(StreamVerb::EndRestore { next, consumers, subjects }).await?;
        Ok(())
    }

    /// Deletes what came.
    pub async fn give_up(mut self) {
        self.is_open = false;
        // The stream may be gone, or the broker.
        let _ = delete(&self.broker, self.vhost, self.stream.clone()).await;
    }

    async fn run(&self, verb: StreamVerb) -> Result<Done, InternalError> {
        self.client.done(Verb::Stream { stream: self.stream.clone(), verb }).await
    }
}

impl Drop for StreamRestore {
    fn drop(&mut self) {
        if self.is_open {
            let (broker, vhost, stream) = (self.broker.clone(), self.vhost, self.stream.clone());
            self.broker.runtime().spawn(async move {
                let _ = delete(&broker, vhost, stream).await;
            });
        }
    }
}

/// Deletes a stream as the broker: its maker may lack the right to delete it.
async fn delete(broker: &Broker, vhost: VhostId, stream: Name) -> Result<(), InternalError> {
    let client = broker.connect_operator(Identity::broker(), vhost).await?;
    client.done(Verb::Stream { stream, verb: StreamVerb::Delete }).await.map(drop)
}
