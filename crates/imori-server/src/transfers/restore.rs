//! Makes a stream of an archive, batch by batch.

use imori_core::authorize::Identity;
use imori_core::id::VhostId;
use imori_core::internal::{Done, StreamVerb, Verb};
use imori_core::name::Name;
use imori_core::record::ConsumerState;
use imori_core::stream::ArchivedMessage;
use imori_streams::DeclaredStream;
use imori_streams::archive::{ArchiveError, ArchiveItem, ArchiveReader};

use super::error::TransferError;
use crate::broker::Broker;
use crate::internal::{InternalClient, InternalError};
use crate::limits::{RESTORE_BATCH_BYTES, RESTORE_CONSUMERS_BYTES_MAX, RESTORE_MESSAGE_BYTES_MAX};
use crate::protocols::archive_forms;

/// A stream that is being made of an archive. If it is dropped before its end, the stream is deleted.
#[derive(Debug)]
pub struct StreamRestore {
    broker: Broker,
    client: InternalClient,
    vhost: VhostId,
    stream: Name,
    declared: DeclaredStream,
    reader: Box<dyn ArchiveReader>,
    /// The number of the last message.
    last: u64,
    consumers: Vec<ConsumerState>,
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
        let forms = archive_forms().ok_or(TransferError::NoForm)?;
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
            reader: forms.reader(&declared, RESTORE_MESSAGE_BYTES_MAX, broker.now()),
            declared,
            last: 0,
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
            ArchiveItem::Last(last) => self.last = last,
            ArchiveItem::Consumer(consumer) => {
                self.waiting_bytes += bytes_of(&consumer);
                if self.waiting_bytes > RESTORE_CONSUMERS_BYTES_MAX {
                    return Err(ArchiveError::Invalid.into());
                }
                self.consumers.push(*consumer);
            }
            ArchiveItem::Message(message) => {
                if self.waiting.is_empty() {
                    self.waiting_bytes = 0;
                }
                self.waiting_bytes += message.body.len() + message.text.len() + size_of::<ArchivedMessage>();
                self.waiting.push(message);
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
        let consumers = std::mem::take(&mut self.consumers);
        let (next, subjects) = (self.last + 1, self.declared.subjects());
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

/// Bytes that the state of a consumer takes in memory, about.
fn bytes_of(consumer: &ConsumerState) -> usize {
    let numbers = 3 * consumer.pending.len() + consumer.first_ones.len() + consumer.done.len();
    size_of::<ConsumerState>() + consumer.settings.note.len() + size_of::<u64>() * numbers
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
