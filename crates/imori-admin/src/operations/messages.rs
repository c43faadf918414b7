//! Peeks at the waiting messages of a queue, or takes them.

use std::time::Duration;

use imori_core::broker::TakeReport;
use imori_core::delivery::Outcome;
use imori_core::entries::Entry;
use imori_core::internal::{Done, Verb};
use imori_core::name::Name;
use tokio::time::sleep;

use super::message_facts::MessageFacts;
use super::vhost_operator::VhostOperator;
use crate::limits::{ADMIN_MESSAGES_BYTES_MAX, ADMIN_PAGE_LOOK_EVERY, ADMIN_PAGE_LOOKS_MAX};
use crate::objects::operation_error::OperationError;

/// The result of a peek.
pub(crate) struct Peeked {
    pub(crate) messages: Vec<MessageFacts>,
    /// The number of messages that wait in the queue.
    pub(crate) ready: usize,
}

impl VhostOperator {
    /// Peeks at up to `count` waiting messages behind the first `skip`, in memory or on disk; changes nothing. Returns
    /// fewer once their bodies exceed `ADMIN_MESSAGES_BYTES_MAX`.
    ///
    /// # Errors
    /// [`OperationError`]; the user needs the right to read the queue (SECURITY AUTH-15).
    pub(crate) async fn peek(&self, name: &str, skip: usize, count: usize) -> Result<Peeked, OperationError> {
        let entries = self.peek_entries(name, skip, count).await?;
        let (ready, ttl) = self.waiting_of(name)?;
        Ok(Peeked { messages: entries.iter().map(|entry| MessageFacts::of(entry, ttl)).collect(), ready })
    }

    /// The number of waiting messages in a queue, and the queue's message TTL.
    fn waiting_of(&self, name: &str) -> Result<(usize, Option<Duration>), OperationError> {
        let id = self.queue(name)?;
        let found = self.broker.with_queue(id, |queue| (queue.ready_len(), queue.settings().message_ttl));
        found.ok_or_else(|| OperationError::Missing("queue", name.to_owned()))
    }

    /// The entries that [`VhostOperator::peek`] returns the facts of.
    ///
    /// # Errors
    /// [`OperationError`].
    pub(super) async fn peek_entries(
        &self,
        name: &str,
        skip: usize,
        count: usize,
    ) -> Result<Vec<Entry>, OperationError> {
        let client = self.client().await?;
        for _ in 0..ADMIN_PAGE_LOOKS_MAX {
            let looked = client.done(Verb::Peek { queue: Name::from(name), skip, count }).await?;
            let Done::Peeked(id, found) = looked else { return Err(OperationError::Ended) };
            if let Some(entries) = self.broker.read_peek(id, found, ADMIN_MESSAGES_BYTES_MAX).await {
                return Ok(entries);
            }
            // The page is being written, or was read into memory meanwhile.
            sleep(ADMIN_PAGE_LOOK_EVERY).await;
        }
        Err(unreadable())
    }

    /// Takes up to `count` messages from a queue and settles them with `outcome`; each comes with the number of
    /// messages left behind it. With a release, returns only messages that are in memory, unless there are none.
    ///
    /// # Errors
    /// [`OperationError`].
    pub(crate) async fn take(
        &self,
        name: &str,
        count: usize,
        outcome: Outcome,
    ) -> Result<Vec<(MessageFacts, usize)>, OperationError> {
        let (mut taken, mut bytes) = (Vec::new(), 0);
        let (_, ttl) = self.waiting_of(name)?;
        let client = self.client().await?;
        for _ in 0..ADMIN_PAGE_LOOKS_MAX {
            let take = Verb::Take {
                queue: Name::from(name),
                count: count - taken.len(),
                bytes_max: ADMIN_MESSAGES_BYTES_MAX.saturating_sub(bytes),
                outcome,
            };
            let Done::Taken(TakeReport { messages, is_on_disk, .. }) = client.done(take).await? else {
                return Err(OperationError::Ended);
            };
            bytes += messages.iter().map(|(entry, _)| entry.message().view().body.len()).sum::<usize>();
            taken.extend(messages.iter().map(|(entry, left)| (MessageFacts::of(entry, ttl), *left)));
            let comes_back = matches!(outcome, Outcome::Release { .. });
            let is_enough = taken.len() >= count || bytes >= ADMIN_MESSAGES_BYTES_MAX;
            if is_enough || !is_on_disk || comes_back && !taken.is_empty() {
                return Ok(taken);
            }
            sleep(ADMIN_PAGE_LOOK_EVERY).await;
        }
        if taken.is_empty() { Err(unreadable()) } else { Ok(taken) }
    }
}

/// The refusal of a request that waited too long for messages on disk.
pub(super) fn unreadable() -> OperationError {
    let text = "the messages are on disk and cannot be read now; ask again in a moment";
    OperationError::Unavailable(String::from(text))
}
