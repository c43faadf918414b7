//! The messages of a subscription or a consumer, and the reason for its end.

use std::sync::Arc;
use std::task::{Context, Poll, ready};

use imori_core::internal::{IncomingMessage, OutgoingMessage, SubscriptionEnd};
use tokio::sync::mpsc;

use super::error::InternalError;
use super::handle::{Handle, Published};
use crate::pipe::{Item, Waiting};

/// Receives the messages of a subscription or a consumer.
///
/// Dropping it ends the subscription at once. A consumer's messages that were delivered but not received return to
/// their queue, and do not count as failures.
#[derive(Debug)]
pub struct Subscription {
    pub(super) handle: Arc<Handle>,
    pub(super) number: u64,
    pub(super) items: mpsc::UnboundedReceiver<Item>,
    pub(super) waiting: Arc<Waiting>,
    pub(super) granting: Option<Granting>,
    /// Counts a live subscription among those of its client.
    pub(super) place: Option<Arc<()>>,
    pub(super) end: Option<SubscriptionEnd>,
}

/// The credit of a consumer that does not settle. Its receiver grants more while it takes messages.
#[derive(Debug)]
pub(super) struct Granting {
    pub(super) credit: u32,
    /// Messages taken so far; wraps around.
    pub(super) taken: u32,
    /// The value of `taken` at the last grant.
    pub(super) granted_at: u32,
}

impl Subscription {
    /// Receives the next message.
    ///
    /// # Errors
    /// Why the subscription ended. Every later call returns the same reason.
    pub async fn recv(&mut self) -> Result<IncomingMessage, SubscriptionEnd> {
        std::future::poll_fn(|cx| self.poll_recv(cx)).await
    }

    /// Polls for the next message, as [`Subscription::recv`] does, to implement a stream.
    pub fn poll_recv(&mut self, cx: &mut Context<'_>) -> Poll<Result<IncomingMessage, SubscriptionEnd>> {
        if let Some(reason) = &self.end {
            return Poll::Ready(Err(reason.clone()));
        }
        let item = ready!(self.items.poll_recv(cx));
        Poll::Ready(self.take(item))
    }

    /// Receives a message that has already arrived; `None` if there is none.
    ///
    /// # Errors
    /// As [`Subscription::recv`].
    pub fn try_recv(&mut self) -> Result<Option<IncomingMessage>, SubscriptionEnd> {
        if let Some(reason) = &self.end {
            return Err(reason.clone());
        }
        match self.items.try_recv() {
            Ok(item) => self.take(Some(item)).map(Some),
            Err(mpsc::error::TryRecvError::Empty) => Ok(None),
            Err(mpsc::error::TryRecvError::Disconnected) => self.take(None).map(Some),
        }
    }

    /// Replies to a request, as [`InternalClient::reply`](super::InternalClient::reply) does, on the subscription's own connection: a user who may
    /// only answer what they were asked has that right where the request arrived.
    ///
    /// # Errors
    /// [`InternalError`].
    pub async fn reply(
        &self,
        request: &IncomingMessage,
        message: OutgoingMessage,
    ) -> Result<Published, InternalError> {
        self.handle.reply(request, message).await
    }

    fn take(&mut self, item: Option<Item>) -> Result<IncomingMessage, SubscriptionEnd> {
        let mut ended = |reason: SubscriptionEnd| Err(self.end.insert(reason).clone());
        match item {
            Some(Ok(message)) => {
                self.waiting.remove(&message);
                self.handle.pipe.wake_if_blocked_on(self.number);
                self.grant();
                Ok(message)
            }
            Some(Err(reason)) => ended(reason),
            None => ended(self.handle.pipe.end_reason()),
        }
    }

    /// Grants more credit once half of it has been used.
    fn grant(&mut self) {
        let Some(granting) = &mut self.granting else { return };
        granting.taken = granting.taken.wrapping_add(1);
        if granting.taken.wrapping_sub(granting.granted_at) >= granting.credit.div_ceil(2) {
            granting.granted_at = granting.taken;
            self.handle.pipe.grant(self.number, granting.taken, granting.credit);
        }
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        if self.end.is_some() {
            return;
        }
        let items = &mut self.items;
        self.handle.pipe.unsubscribe(self.number, || {
            let mut unseen = Vec::new();
            while let Ok(item) = items.try_recv() {
                unseen.extend(item.ok().filter(|message| message.settles).map(|message| message.number));
            }
            unseen
        });
    }
}
