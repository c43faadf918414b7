//! The state that the handles of a client share, and the commands that any of them sends.

use std::sync::Arc;

use imori_core::confirm::Level;
use imori_core::id::VhostId;
use imori_core::internal::{Done, IncomingMessage, OutgoingMessage, SubscriptionEnd, Verb};
use imori_core::message::{Address, Property};
use tokio::sync::oneshot;

use super::error::InternalError;
use crate::cell_state::internal_counts::Owner;
use crate::pipe::{ClientPipe, Failure, Reply};
use crate::shared::Shared;

/// The state shared by all clones of a client.
pub(super) struct Handle {
    pub(super) pipe: Arc<ClientPipe>,
    pub(super) shared: Arc<Shared>,
    /// Cloned by each live subscription, to count them.
    pub(super) subscriptions: Arc<()>,
    pub(super) vhost: VhostId,
    pub(super) name: String,
    pub(super) owner: Owner,
    pub(super) cell: u16,
}

impl std::fmt::Debug for Handle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Handle").field("name", &self.name).field("cell", &self.cell).finish_non_exhaustive()
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.pipe.handles_dropped();
    }
}

/// A message that was published.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Published {
    /// The number of queues, subscriptions and inboxes that received it; 0 if it is unroutable.
    pub receivers: usize,
    /// The durability that it has reached: the lowest level among its queues.
    pub level: Level,
}

impl Handle {
    /// Publishes a message; returns once it is confirmed.
    pub(super) async fn publish(
        &self,
        to: Address,
        message: OutgoingMessage,
    ) -> Result<Published, InternalError> {
        match self.done(Verb::Publish { to, message }).await? {
            Done::Published { receivers, level } => Ok(Published { receivers, level }),
            _ => Err(self.ended()),
        }
    }

    /// Replies to a request and copies its correlation id.
    pub(super) async fn reply(
        &self,
        request: &IncomingMessage,
        message: OutgoingMessage,
    ) -> Result<Published, InternalError> {
        let Some(to) = request.reply_to() else {
            return Ok(Published { receivers: 0, level: Level::Memory });
        };
        let message = match request.property(Property::CorrelationId) {
            Some(id) => message.with(Property::CorrelationId, id),
            None => message,
        };
        self.publish(to, message).await
    }

    /// Runs a command whose answer is not a message.
    pub(super) async fn done(&self, verb: Verb) -> Result<Done, InternalError> {
        match self.command(verb).await? {
            Reply::Done(done) => Ok(done),
            Reply::Message(_) => Err(self.ended()),
        }
    }

    async fn command(&self, verb: Verb) -> Result<Reply, InternalError> {
        let answered = self.pipe.send(verb).await?;
        self.answered(answered).await
    }

    pub(super) async fn answered(
        &self,
        answered: oneshot::Receiver<Result<Reply, Failure>>,
    ) -> Result<Reply, InternalError> {
        Ok(answered.await.map_err(|_| self.ended())??)
    }

    pub(super) fn ended(&self) -> InternalError {
        InternalError::Ended(match self.pipe.end_reason() {
            SubscriptionEnd::Cut(reason) => SubscriptionEnd::Cut(reason),
            _ => SubscriptionEnd::Ended,
        })
    }
}
