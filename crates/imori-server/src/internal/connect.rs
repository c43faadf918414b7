//! The making of internal clients, asked for from any thread.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use imori_core::authorize::{Action, Identity, Object, authorize};
use imori_core::error::BrokerError;
use imori_core::id::VhostId;
use imori_core::internal::SubscriptionEnd;
use imori_core::login::{Credentials, Login, Verdict};
use imori_core::name::Name;
use tokio::sync::oneshot;

use super::client::{Handle, InternalClient};
use super::connection::{Origin, start};
use super::error::InternalError;
use crate::cell::Cell;
use crate::cell_state::internal_counts::Owner;
use crate::login::verdict_of;
use crate::shared::{Arrival, NO_CONNECTION, Phase, Shared};

/// Makes internal clients of a running broker.
#[derive(Clone)]
pub struct InternalClients {
    shared: Arc<Shared>,
    owner: Owner,
}

/// What an internal client is to be.
#[derive(Debug, Clone)]
pub struct ClientOptions {
    /// The user on behalf of whom it acts: one that [`InternalClients::log_in`] gave, or [`Identity::broker`].
    pub identity: Identity,
    /// The vhost.
    pub vhost: Name,
    /// The client's name, for operators.
    pub name: String,
    /// The cell to stand on. `None` for the caller's own, if it is a cell's thread, or else the one that a new
    /// connection would be given.
    pub cell: Option<u16>,
}

/// The cell that a connection is made on.
pub(super) struct Place {
    pub(super) shared: Arc<Shared>,
    pub(super) cell: u16,
}

impl ClientOptions {
    /// A client of this user in this vhost.
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

    /// Checks the credentials of a client at `source`, as those of a connection are checked; `is_encrypted` tells
    /// whether they could not be read on the way. The password of a client that is elsewhere has to be encrypted.
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
        // SECURITY AUTH-09: a password that could be read on the way is not even checked.
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

    /// Makes a client that acts for `identity` in the vhost of this name.
    ///
    /// # Errors
    /// As [`InternalClients::connect_with`].
    pub async fn connect(&self, identity: Identity, vhost: &[u8]) -> Result<InternalClient, InternalError> {
        self.connect_with(ClientOptions::new(identity, vhost)).await
    }

    /// Makes a client. It counts towards the limits of connections of its user and its vhost, unless it acts for the
    /// broker or an operator's request.
    ///
    /// # Errors
    /// [`InternalError::NoVhost`], [`InternalError::NoCell`], [`InternalError::TooMany`], [`InternalError::Broker`] if
    /// the user may not enter the vhost, and [`InternalError::Ended`] if the broker has.
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
        start_on(Place { shared: Arc::clone(&self.shared), cell }, origin).await
    }
}

impl InternalClients {
    /// Makes a client in a vhost without asking whether the user may enter it: each command asks for its own right.
    pub(crate) async fn connect_to(
        &self,
        identity: Identity,
        vhost: VhostId,
    ) -> Result<InternalClient, InternalError> {
        let cell = self.shared.least_busy().ok_or(InternalError::Ended(SubscriptionEnd::Ended))?;
        let name = String::from("operator");
        let origin = Origin { identity, vhost, name, owner: self.owner, is_counted: false };
        start_on(Place { shared: Arc::clone(&self.shared), cell }, origin).await
    }
}

impl fmt::Debug for InternalClients {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InternalClients").finish_non_exhaustive()
    }
}

/// Makes a client on a cell.
pub(super) async fn start_on(place: Place, origin: Origin) -> Result<InternalClient, InternalError> {
    let Place { shared, cell } = place;
    let is_own = Cell::current(|current| current.id == cell);
    if is_own == Some(true) {
        let made = Cell::current(|current| start_here(current, origin));
        return made.unwrap_or(Err(InternalError::Ended(SubscriptionEnd::Ended)));
    }
    let ended = || InternalError::Ended(SubscriptionEnd::Ended);
    let (answer, answered) = oneshot::channel();
    let job = Box::new(move || {
        let made = Cell::current(|current| start_here(current, origin));
        // Who asked may be gone, and the client goes with its handle.
        let _ = answer.send(made);
    });
    let handle = shared.cell(cell).ok_or(InternalError::NoCell(cell))?;
    handle.arrivals.send(Arrival::Job(job)).map_err(|_| ended())?;
    answered.await.ok().flatten().ok_or_else(ended)?
}

/// Makes a client on this thread's cell.
pub(super) fn start_here(cell: &Cell, origin: Origin) -> Result<InternalClient, InternalError> {
    if *cell.shared.phase.borrow() > Phase::Serving {
        return Err(InternalError::Ended(SubscriptionEnd::Ended));
    }
    let Origin { identity, vhost, name, owner, .. } = &origin;
    let (identity, vhost, name, owner) = (identity.clone(), *vhost, name.clone(), *owner);
    let pipe = start(cell, origin)?;
    let shared = Arc::clone(&cell.shared);
    Ok(InternalClient(Arc::new(Handle { pipe, shared, identity, vhost, name, owner, cell: cell.id })))
}
