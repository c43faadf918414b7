//! Somebody who administers a vhost: their rights, and the cell that does what they ask for.

use std::sync::Arc;

use imori_core::authorize::Identity;
use imori_core::broker::Actor;
use imori_core::confirm::Confirm;
use imori_core::id::{QueueId, VhostId};

use crate::cell::Cell;
use crate::requests::administered::Administered;
use crate::requests::on_cell::{is_kept, on_cell, operator};
use crate::requests::operation_error::OperationError;

/// An operator in a vhost that they may see.
#[derive(Clone)]
pub(crate) struct VhostOperator {
    pub(crate) broker: Arc<Administered>,
    pub(crate) identity: Identity,
    pub(crate) vhost: VhostId,
    /// The name of the vhost.
    pub(crate) name: String,
}

impl VhostOperator {
    /// An operator in the vhost of this name.
    ///
    /// # Errors
    /// There is no such vhost, or none that the user may see.
    pub(crate) fn of(
        broker: &Arc<Administered>,
        identity: Identity,
        name: &str,
    ) -> Result<VhostOperator, OperationError> {
        let vhost = broker.vhost(&identity, name).ok_or_else(|| OperationError::no_vhost(name))?;
        Ok(VhostOperator { broker: Arc::clone(broker), identity, vhost, name: name.to_owned() })
    }

    /// Finds a queue, which anybody may look at who may see the vhost.
    ///
    /// # Errors
    /// There is none of this name.
    pub(crate) fn queue(&self, name: &str) -> Result<QueueId, OperationError> {
        let found = self.broker.shared.table.load().queue(self.vhost, name.as_bytes());
        found.ok_or_else(|| OperationError::Missing("queue", name.to_owned()))
    }

    /// Does something in a turn of a cell, in the operator's name.
    ///
    /// # Errors
    /// The broker has come to its end.
    pub(crate) async fn act<R: Send + 'static>(
        &self,
        act: impl FnOnce(&Cell, &Actor<'_>) -> R + Send + 'static,
    ) -> Result<R, OperationError> {
        let (identity, vhost) = (self.identity.clone(), self.vhost);
        let acted = on_cell(&self.broker.shared, 0, move |cell| act(cell, &operator(&identity, vhost)));
        acted.await.ok_or(OperationError::Ended)
    }

    /// Changes a definition in a turn of a cell, and waits until no crash undoes it.
    ///
    /// # Errors
    /// The refusal of the change; or the broker has come to its end.
    pub(crate) async fn define(
        &self,
        change: impl FnOnce(&Cell, &Actor<'_>) -> Result<Confirm, OperationError> + Send + 'static,
    ) -> Result<(), OperationError> {
        let confirm = self.act(change).await??;
        self.keep(confirm).await
    }

    /// Waits until no crash undoes a change.
    ///
    /// # Errors
    /// The broker has come to its end.
    pub(crate) async fn keep(&self, confirm: Confirm) -> Result<(), OperationError> {
        if is_kept(&self.broker.shared, confirm).await { Ok(()) } else { Err(OperationError::Ended) }
    }
}
