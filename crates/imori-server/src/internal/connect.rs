//! Internal clients come to be, asked for from any thread.

use std::fmt;
use std::sync::Arc;

use imori_core::authorize::{Action, Identity, Object, authorize};
use imori_core::error::BrokerError;
use imori_core::name::Name;
use tokio::sync::oneshot;

use super::client::{InternalClient, InternalError};
use super::task::start;
use crate::cell::Cell;
use crate::shared::{Arrival, Shared};

/// Makes internal clients of a running broker.
#[derive(Clone)]
pub struct InternalClients(Arc<Shared>);

impl InternalClients {
    pub(crate) fn of(shared: &Arc<Shared>) -> InternalClients {
        InternalClients(Arc::clone(shared))
    }

    /// Makes a client that acts for `identity` in the vhost of this name.
    ///
    /// # Errors
    /// [`InternalError::NoVhost`], [`InternalError::TooMany`], [`InternalError::Ended`] where the broker has, and
    /// [`InternalError::Broker`] where the identity may not enter the vhost.
    pub async fn connect(&self, identity: Identity, vhost: &[u8]) -> Result<InternalClient, InternalError> {
        let (answer, answered) = oneshot::channel();
        let vhost = Name::new(vhost);
        let job = Box::new(move || {
            let made = Cell::current(|cell| connect(cell, identity, &vhost));
            // Who asked may be gone, and the client goes with its handle.
            let _ = answer.send(made.unwrap_or(Err(InternalError::Ended)));
        });
        let cell = self.0.cell(0).ok_or(InternalError::Ended)?;
        cell.arrivals.send(Arrival::Job(job)).map_err(|_| InternalError::Ended)?;
        answered.await.map_err(|_| InternalError::Ended)?
    }
}

impl fmt::Debug for InternalClients {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InternalClients").finish_non_exhaustive()
    }
}

fn connect(cell: &Cell, identity: Identity, vhost: &Name) -> Result<InternalClient, InternalError> {
    let found = cell.shared.table.load().vhost_named(vhost.as_bytes());
    let id = found.ok_or_else(|| InternalError::NoVhost(vhost.clone()))?;
    authorize(&identity, Action::Enter, id, Object::Vhost).map_err(BrokerError::from)?;
    start(cell, identity, id).ok_or(InternalError::TooMany)
}
