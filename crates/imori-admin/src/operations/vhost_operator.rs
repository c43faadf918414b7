//! An operator in a vhost: checks what they may see, and runs commands in their name with an internal client.

use imori_core::authorize::Identity;
use imori_core::id::{QueueId, VhostId};
use imori_core::internal::{Done, Verb};
use imori_server::InternalClient;
use imori_server::broker::Broker;

use crate::objects::operation_error::OperationError;

/// An operator in a vhost that the operator may see.
#[derive(Clone)]
pub(crate) struct VhostOperator {
    pub(crate) broker: Broker,
    pub(crate) identity: Identity,
    pub(crate) vhost: VhostId,
    /// The name of the vhost.
    pub(crate) name: String,
}

impl VhostOperator {
    /// Creates the operator in the vhost of this name.
    ///
    /// # Errors
    /// The user sees no vhost of this name.
    pub(crate) fn of(
        broker: &Broker,
        identity: Identity,
        name: &str,
    ) -> Result<VhostOperator, OperationError> {
        let vhost = broker.vhost(&identity, name).ok_or_else(|| OperationError::no_vhost(name))?;
        Ok(VhostOperator { broker: broker.clone(), identity, vhost, name: name.to_owned() })
    }

    /// Finds a queue. The right to see the vhost is enough.
    ///
    /// # Errors
    /// There is no queue of this name.
    pub(crate) fn queue(&self, name: &str) -> Result<QueueId, OperationError> {
        let found = self.broker.table().queue(self.vhost, name.as_bytes());
        found.ok_or_else(|| OperationError::Missing("queue", name.to_owned()))
    }

    /// Connects a client in the operator's name, for one request.
    ///
    /// # Errors
    /// Too many requests are running, or the broker has stopped.
    pub(crate) async fn client(&self) -> Result<InternalClient, OperationError> {
        Ok(self.broker.connect_operator(self.identity.clone(), self.vhost).await?)
    }

    /// Runs a command in the operator's name; returns once its effect is durable.
    ///
    /// # Errors
    /// The refusal of the command; or the broker has stopped.
    pub(crate) async fn run(&self, verb: Verb) -> Result<Done, OperationError> {
        Ok(self.client().await?.done(verb).await?)
    }
}
