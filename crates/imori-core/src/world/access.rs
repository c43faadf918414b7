//! The part of the environment that knows users, rights and limits.

use std::fmt;

use crate::authorize::{Action, Actor, Identity, Object, Refusal, authorize};
use crate::id::VhostId;
use crate::login::{Login, SCRAM_BYTES, ScramParameters, Verdict, Verification};
use crate::name::Name;
use crate::quota::QuotaReached;

/// Users, rights and limits, as a [`World`](super::World) knows them. By default no login succeeds, and
/// there are no limits.
pub trait Access {
    /// Verifies a login, now or later. By default every login is refused.
    fn verify(&self, _login: Login) -> Verification {
        Verification::Done(Verdict::Refused)
    }

    /// The SCRAM parameters of a user. An unknown user gets some too, always the same ones
    /// (SECURITY AUTH-09). `None` if no user can log in that way.
    fn scram_parameters(&self, _user: &[u8]) -> Option<ScramParameters> {
        None
    }

    /// Whether all users with a password or a token have SCRAM keys. If SCRAM is offered, a client
    /// uses it before it has named its user.
    fn all_have_scram_keys(&self) -> bool {
        true
    }

    /// The `ServerSignature` (RFC 5802, 3), by which the broker proves that it knows the keys of a
    /// user who has logged in. `None` if the user has none.
    fn scram_signature(&self, _user: &[u8], _messages: &[u8]) -> Option<[u8; SCRAM_BYTES]> {
        None
    }

    /// Decides about an action as [`authorize`] does, and reports a refusal to [`Access::refused`].
    /// Must not be called with an outbound half locked.
    ///
    /// # Errors
    /// The reason, in words for the client.
    #[inline]
    fn authorize(&self, actor: &Actor<'_>, action: Action, object: Object<'_>) -> Result<(), Refusal> {
        authorize(actor.identity, action, actor.vhost, object)
            .inspect_err(|refusal| self.refused(actor, refusal))
    }

    /// A text by which [`Access::identity_of`] finds a user later, also after a restart, and no other user of the same
    /// name. `None` for users that are not stored: the operator, and bearers of access tokens.
    fn maker_of(&self, _identity: &Identity) -> Option<Name> {
        None
    }

    /// The present identity of a maker, without a login; `None` if the user is gone.
    fn identity_of(&self, _maker: &[u8]) -> Option<Identity> {
        None
    }

    /// Counts a connection towards its user and vhost, replacing those it counted towards before.
    /// Must not be called with an outbound half locked. By default there are no limits.
    ///
    /// # Errors
    /// The limit of the vhost or the user is reached.
    fn enter(&self, _actor: &Actor<'_>) -> Result<(), QuotaReached> {
        Ok(())
    }

    /// Claims a client id for the life of a connection; false if another connection of the same
    /// user holds it in this vhost. SECURITY AUTH-07: equal ids of different users are different.
    fn claim_client_id(&self, _actor: &Actor<'_>, _id: &[u8]) -> bool {
        true
    }

    /// Releases the client id claimed by a connection, if any.
    fn release_client_id(&self, _actor: &Actor<'_>) {}

    /// Opens a session through `open`, unless the user's connections have reached their limit. Must
    /// not be called with an outbound half locked.
    ///
    /// # Errors
    /// The limit is reached, and `open` was not called.
    fn open_session<R>(&self, _actor: &Actor<'_>, open: impl FnOnce() -> R) -> Result<R, QuotaReached> {
        Ok(open())
    }

    /// An operator's limit on the number of queues in a vhost, if set.
    fn queues_max(&self, _vhost: VhostId) -> Option<usize> {
        None
    }

    /// Whether a rate limit applies to an actor's publishes. Called only if [`Gauge::rates`](crate::memory::Gauge::rates) is not
    /// zero.
    fn has_rate(&self, _actor: &Actor<'_>) -> bool {
        false
    }

    /// Whether an actor's publishes must wait because its user or vhost exceeded its rate. The
    /// world makes the connection ask again when the wait is over.
    fn must_wait_for_rate(&self, _actor: &Actor<'_>) -> bool {
        false
    }

    /// Reports a change of the total bytes of messages in a vhost's queues. Called with a queue
    /// locked.
    fn bytes_changed(&self, _vhost: VhostId, _change: i64) {}

    /// The limit on a vhost's message bytes, if it has been reached. Called only if
    /// [`Gauge::full_vhosts`](crate::memory::Gauge::full_vhosts) is not zero.
    fn bytes_max_reached(&self, _vhost: VhostId) -> Option<QuotaReached> {
        None
    }

    /// Reports that an actor was refused. Must not be called with an outbound half locked.
    fn refused(&self, _actor: &Actor<'_>, _refusal: &Refusal) {}

    /// Reports a change to an object by an actor, for the audit log. Must not be called with an
    /// outbound half locked.
    fn changed(&self, _actor: &Actor<'_>, _change: Change, _object: &dyn fmt::Display) {}
}

/// A change by a client that is audited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// A queue or an exchange was created.
    Declare,
    /// A queue or an exchange was deleted.
    Delete,
    /// A binding was added.
    Bind,
    /// A binding was removed.
    Unbind,
    /// The ready messages of a queue were purged.
    Purge,
}

impl Change {
    /// The word for it in the audit log.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Change::Declare => "declare",
            Change::Delete => "delete",
            Change::Bind => "bind",
            Change::Unbind => "unbind",
            Change::Purge => "purge",
        }
    }
}
