//! The one on whose behalf the broker does something.

use std::sync::{Arc, LazyLock};

use super::rights::{Extent, Rights};
use crate::id::{ConnectionId, VhostId};
use crate::name::Name;

/// The user that a connection speaks for, with that user's rights. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Identity {
    /// The user's name.
    pub user: Name,
    /// The user's rights, which all connections of the user share.
    pub rights: Arc<Rights>,
}

/// A change of a user: what each live connection of that user is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Renewal {
    /// The user.
    pub user: Name,
    /// The user's identity from now on; `None` ends the connection.
    pub identity: Option<Identity>,
}

impl Renewal {
    /// Tells whether an identity is the one that changes. Those of tokens last until these end.
    pub fn concerns(&self, identity: &Identity) -> bool {
        self.user == identity.user
            && !self.user.as_bytes().is_empty()
            && identity.rights.valid_until().is_none()
    }
}

/// Somebody on whose behalf the broker does something.
#[derive(Debug, Clone, Copy)]
pub struct Actor<'a> {
    /// The name they go by, and their rights.
    pub identity: &'a Identity,
    /// Their connection.
    pub connection: ConnectionId,
    /// The vhost they are in.
    pub vhost: VhostId,
}

/// The rights of those who may use all messaging.
static MESSAGING: LazyLock<Arc<Rights>> = LazyLock::new(|| Arc::new(Rights::all_messaging()));

/// The rights of those who may do everything.
static EVERYTHING: LazyLock<Arc<Rights>> = LazyLock::new(|| Arc::new(Rights::everything()));

/// The rights of those who may do nothing.
static NOTHING: LazyLock<Arc<Rights>> = LazyLock::new(|| Arc::new(Rights::nothing()));

impl Identity {
    /// The identity in which the broker's own services act: all messaging in every vhost.
    pub fn broker() -> Identity {
        Identity { user: Name::from("imori"), rights: Arc::clone(&MESSAGING) }
    }

    /// The identity of `guest`, which comes from loopback addresses only: all messaging in every vhost, and no
    /// administration.
    pub fn guest() -> Identity {
        Identity { user: Name::from("guest"), rights: Arc::clone(&MESSAGING) }
    }

    /// The identity of the operator on the broker's own machine: all messaging in every vhost, and all administration.
    pub fn operator() -> Identity {
        Identity { user: Name::from("operator"), rights: Arc::clone(&EVERYTHING) }
    }

    /// This identity for a client that gives itself a name: it stands for `{client_id}` in topic rights, as a value.
    #[must_use]
    pub fn with_client_id(self, client: &[u8]) -> Identity {
        Identity { rights: self.rights.for_client(client), user: self.user }
    }

    /// Tells whether the rights to an exchange depend on routing keys, if that is of the kind topic.
    #[inline]
    pub fn is_limited_by_key(&self, vhost: VhostId, exchange: &[u8]) -> bool {
        match self.rights.in_vhost(vhost) {
            Extent::Some(rights) => rights.topic(exchange).is_some(),
            Extent::All | Extent::Nothing => false,
        }
    }

    /// The identity of a client that has not logged in. It has no name and may do nothing.
    pub fn nobody() -> Identity {
        Identity { user: Name::from(""), rights: Arc::clone(&NOTHING) }
    }
}

impl PartialEq for Identity {
    /// Rights are equal that were compiled together: an identity that was renewed is another one.
    fn eq(&self, other: &Identity) -> bool {
        self.user == other.user && Arc::ptr_eq(&self.rights, &other.rights)
    }
}

impl Eq for Identity {}
