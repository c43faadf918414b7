//! Creates internal clients, from any thread.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use imori_core::authorize::{Action, Identity, Object, authorize};
use imori_core::error::BrokerError;
use imori_core::id::VhostId;
use imori_core::internal::SubscriptionEnd;
use imori_core::login::{Credentials, Login, Verdict};
use imori_core::name::Name;

use super::client::InternalClient;
use super::connection::Origin;
use super::error::InternalError;
use super::start::{StartCell, start_on};
use crate::cell::Cell;
use crate::cell_state::internal_counts::Owner;
use crate::login::verdict_of;
use crate::shared::{NO_CONNECTION, Shared};

/// Creates internal clients of a running broker.
#[derive(Clone)]
pub struct InternalClients {
    shared: Arc<Shared>,
    owner: Owner,
}

/// Options of an internal client.
#[derive(Debug, Clone)]
pub struct ClientOptions {
    /// The user it acts for: returned by [`InternalClients::log_in`], or [`Identity::broker`].
    pub identity: Identity,
    /// The vhost that it works in.
    pub vhost: Name,
    /// The client's name, for operators.
    pub name: String,
    /// The cell to run on. `None` picks the calling thread's cell or, outside a cell's thread, the cell that a new
    /// network connection would get.
    pub cell: Option<u16>,
}

impl ClientOptions {
    /// Options for a client of this user in this vhost.
    #[must_use]
    pub fn new(identity: Identity, vhost: &[u8]) -> ClientOptions {
        ClientOptions { identity, vhost: Name::new(vhost), name: String::from("internal"), cell: None }
    }
}

impl InternalClients {
    pub(crate) fn of(shared: &Arc<Shared>) -> InternalClients {
        InternalClients::owned(shared, Owner::Program)
    }

    pub(crate) fn owned(shared: &Arc<Shared>, owner: Owner) -> InternalClients {
        InternalClients { shared: Arc::clone(shared), owner }
    }

    /// Checks credentials presented at `source` as a network connection's are checked. `is_encrypted` says whether the
    /// transport hid them. From another machine, only encrypted credentials are accepted, unless `insecure_dev` is set.
    ///
    /// # Errors
    /// [`InternalError::LoginRefused`].
    pub async fn log_in(
        &self,
        source: SocketAddr,
        is_encrypted: bool,
        credentials: Credentials,
    ) -> Result<Identity, InternalError> {
        let ip = source.ip().to_canonical();
        let is_local = self.shared.settings.load().config.insecure_dev || ip.is_loopback();
        let login = Login {
            connection: NO_CONNECTION,
            is_local,
            source: Some(ip),
            is_encrypted,
            certificate: None,
            credentials,
        };
        // SECURITY AUTH-09: a password that could be read in transit is not even checked.
        let verdict = match is_local || is_encrypted {
            true => verdict_of(&self.shared.verifiers, &login).await,
            false => Verdict::Refused,
        };
        self.shared.note_outside_login(source, "internal", &login, &verdict);
        match verdict {
            Verdict::Granted(identity) => Ok(identity),
            _ => Err(InternalError::LoginRefused),
        }
    }

    /// Creates a client that acts for `identity` in the vhost of this name.
    ///
    /// # Errors
    /// As [`InternalClients::connect_with`].
    pub async fn connect(&self, identity: Identity, vhost: &[u8]) -> Result<InternalClient, InternalError> {
        self.connect_with(ClientOptions::new(identity, vhost)).await
    }

    /// Creates a client. It counts toward the connection limits of its user and vhost, unless it acts for the broker or
    /// serves an operator's request.
    ///
    /// # Errors
    /// [`InternalError::NoVhost`], [`InternalError::NoCell`], [`InternalError::TooMany`], [`InternalError::Broker`] if
    /// the user may not enter the vhost or a connection limit is reached, and [`InternalError::Ended`] if the broker
    /// has stopped.
    pub async fn connect_with(&self, options: ClientOptions) -> Result<InternalClient, InternalError> {
        let ClientOptions { identity, vhost, name, cell } = options;
        let found = self.shared.table.load().vhost_named(vhost.as_bytes());
        let id = found.ok_or(InternalError::NoVhost(vhost))?;
        authorize(&identity, Action::Enter, id, Object::Vhost).map_err(BrokerError::from)?;
        let own = || Cell::current(|current| current.id);
        let cell = match cell.or_else(own) {
            Some(cell) => cell,
            None => self.shared.least_busy().ok_or(InternalError::Ended(SubscriptionEnd::Ended))?,
        };
        let is_counted = self.owner == Owner::Program && identity != Identity::broker();
        let origin = Origin { identity, vhost: id, name, owner: self.owner, is_counted };
        start_on(StartCell { shared: Arc::clone(&self.shared), cell }, origin).await.map(InternalClient)
    }
}

impl InternalClients {
    /// Creates a client without checking that the user may enter the vhost; each command still checks its own right.
    pub(crate) async fn connect_to(
        &self,
        identity: Identity,
        vhost: VhostId,
    ) -> Result<InternalClient, InternalError> {
        let cell = self.shared.least_busy().ok_or(InternalError::Ended(SubscriptionEnd::Ended))?;
        let name = String::from("operator");
        let origin = Origin { identity, vhost, name, owner: self.owner, is_counted: false };
        start_on(StartCell { shared: Arc::clone(&self.shared), cell }, origin).await.map(InternalClient)
    }
}

impl fmt::Debug for InternalClients {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InternalClients").finish_non_exhaustive()
    }
}
