//! Writes the archive of a stream, page by page.

use imori_core::entries::Entry;
use imori_core::id::{QueueId, VhostId};
use imori_core::index::Filter;
use imori_core::internal::{Done, StreamVerb, Verb};
use imori_core::name::Name;
use imori_core::queue::Peek;
use imori_streams::archive::ArchiveWriter;
use tokio::time::sleep;

use super::error::TransferError;
use crate::broker::Broker;
use crate::internal::InternalClient;
use crate::limits::{
    SNAPSHOT_PAGE_LOOK_EVERY, SNAPSHOT_PAGE_LOOKS_MAX, SNAPSHOT_PEEK_BYTES, SNAPSHOT_PEEK_LEN,
};
use crate::protocols::{archive_forms, header_reader};

/// The archive of a stream as it was when this began; messages that leave the stream meanwhile may be missing.
#[derive(Debug)]
pub struct StreamSnapshot {
    broker: Broker,
    client: InternalClient,
    stream: Name,
    writer: Box<dyn ArchiveWriter>,
    /// The next sequence number to look at, and the last one.
    next: u64,
    last: u64,
    is_ended: bool,
}

impl StreamSnapshot {
    /// Begins the archive of a stream; `client` has the right to read it.
    ///
    /// # Errors
    /// [`TransferError`].
    pub async fn begin(
        broker: &Broker,
        client: InternalClient,
        vhost: VhostId,
        stream: &Name,
        has_consumers: bool,
    ) -> Result<StreamSnapshot, TransferError> {
        // The right to read is checked before anything is told.
        peek(&client, stream, u64::MAX, 1).await?;
        let id = broker.table().queue(vhost, stream.as_bytes()).ok_or(TransferError::Gone)?;
        let now = broker.now();
        let forms = archive_forms().ok_or(TransferError::NoForm)?;
        let found = broker.with_queue(id, |queue| {
            let (first, last) = (queue.stream()?.index().first(), queue.last_sequence());
            Some((forms.writer(queue, has_consumers, now), first.unwrap_or(last + 1), last))
        });
        let (writer, next, last) = found.flatten().ok_or(TransferError::Gone)?;
        let (broker, stream) = (broker.clone(), stream.clone());
        Ok(StreamSnapshot { broker, client, stream, writer, next, last, is_ended: false })
    }

    /// The next piece of the archive; `None` at its end.
    ///
    /// # Errors
    /// [`TransferError`].
    pub async fn read(&mut self) -> Result<Option<Vec<u8>>, TransferError> {
        loop {
            let piece = self.writer.take();
            if !piece.is_empty() {
                return Ok(Some(piece));
            }
            if self.is_ended {
                return Ok(None);
            }
            if self.next > self.last {
                self.writer.end();
                self.is_ended = true;
            } else {
                self.write_more().await?;
            }
        }
    }

    async fn write_more(&mut self) -> Result<(), TransferError> {
        for _ in 0..SNAPSHOT_PAGE_LOOKS_MAX {
            let (id, found) = peek(&self.client, &self.stream, self.next, SNAPSHOT_PEEK_LEN).await?;
            if let Some(entries) = self.broker.read_peek(id, found, SNAPSHOT_PEEK_BYTES).await {
                if entries.is_empty() {
                    self.next = self.last + 1;
                }
                self.write(&entries);
                return Ok(());
            }
            // The page is being written, or was read into memory meanwhile.
            sleep(SNAPSHOT_PAGE_LOOK_EVERY).await;
        }
        Err(TransferError::Unreadable)
    }

    fn write(&mut self, entries: &[Entry]) {
        for entry in entries {
            let sequence = entry.envelope().sequence;
            if (self.next..=self.last).contains(&sequence) {
                self.writer.write(&self.stream, entry, header_reader);
            }
            self.next = self.next.max(sequence + 1);
        }
    }
}

async fn peek(
    client: &InternalClient,
    stream: &Name,
    from: u64,
    count: usize,
) -> Result<(QueueId, Peek), TransferError> {
    let verb = StreamVerb::Peek { from, filter: Filter::all(), count };
    match client.done(Verb::Stream { stream: stream.clone(), verb }).await? {
        Done::Peeked(id, found) => Ok((id, found)),
        _ => Err(TransferError::Gone),
    }
}
