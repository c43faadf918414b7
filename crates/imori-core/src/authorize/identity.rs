//! Identities, on behalf of which the broker acts.

use std::sync::{Arc, LazyLock};

use super::rights::{Extent, Rights};
use crate::id::{ConnectionId, VhostId};
use crate::name::Name;

/// The user of a connection, with that user's rights. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Identity {
    /// The user's name.
    pub user: Name,
    /// The user's rights, shared by all connections of the user.
    pub rights: Arc<Rights>,
}

/// A change of a user, which is sent to each of the user's live connections.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Renewal {
    /// The name of the user whose rights changed.
    pub user: Name,
    /// The user's new identity; `None` closes the connection.
    pub identity: Option<Identity>,
}

impl Renewal {
    /// Whether the change applies to `identity`. Identities from tokens stay as they are until they
    /// expire.
    pub fn concerns(&self, identity: &Identity) -> bool {
        self.user == identity.user
            && !self.user.as_bytes().is_empty()
            && identity.rights.valid_until().is_none()
    }
}

/// A client on behalf of which the broker acts.
#[derive(Debug, Clone, Copy)]
pub struct Actor<'a> {
    /// The client's user and rights.
    pub identity: &'a Identity,
    /// The client's connection.
    pub connection: ConnectionId,
    /// The vhost that the client is in.
    pub vhost: VhostId,
}

/// The shared rights to all messaging.
static MESSAGING: LazyLock<Arc<Rights>> = LazyLock::new(|| Arc::new(Rights::all_messaging()));

/// The shared rights to everything.
static EVERYTHING: LazyLock<Arc<Rights>> = LazyLock::new(|| Arc::new(Rights::everything()));

/// The shared rights to nothing.
static NOTHING: LazyLock<Arc<Rights>> = LazyLock::new(|| Arc::new(Rights::nothing()));

impl Identity {
    /// The identity of the broker's own services: all messaging in every vhost.
    pub fn broker() -> Identity {
        Identity { user: Name::from("imori"), rights: Arc::clone(&MESSAGING) }
    }

    /// The identity of `guest`, which may connect from loopback addresses only: all messaging in
    /// every vhost, but no administration.
    pub fn guest() -> Identity {
        Identity { user: Name::from("guest"), rights: Arc::clone(&MESSAGING) }
    }

    /// The identity of the operator on the broker's own machine: all messaging in every vhost, and
    /// all administration.
    pub fn operator() -> Identity {
        Identity { user: Name::from("operator"), rights: Arc::clone(&EVERYTHING) }
    }

    /// The identity of a client that sent a client id, which replaces `{client_id}` in topic
    /// rights, matched literally.
    #[must_use]
    pub fn with_client_id(self, client: &[u8]) -> Identity {
        Identity { rights: self.rights.for_client(client), user: self.user }
    }

    /// Whether the rights to an exchange depend on routing keys, provided that it is a topic
    /// exchange.
    #[inline]
    pub fn is_limited_by_key(&self, vhost: VhostId, exchange: &[u8]) -> bool {
        match self.rights.in_vhost(vhost) {
            Extent::Some(rights) => rights.topic(exchange).is_some(),
            Extent::All | Extent::Nothing => false,
        }
    }

    /// The identity of a client that has not logged in: no name, no rights.
    pub fn nobody() -> Identity {
        Identity { user: Name::from(""), rights: Arc::clone(&NOTHING) }
    }
}

impl PartialEq for Identity {
    /// Rights compare by pointer, so a renewed identity differs even if its grants are equal.
    fn eq(&self, other: &Identity) -> bool {
        self.user == other.user && Arc::ptr_eq(&self.rights, &other.rights)
    }
}

impl Eq for Identity {}
