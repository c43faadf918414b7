//! The part of the environment that knows users and rights.

use std::fmt;

use crate::authorize::{Action, Actor, Identity, Object, Refusal, authorize};
use crate::login::{Login, SCRAM_BYTES, ScramParameters, Verdict, Verification};
use crate::name::Name;

/// Users and rights, as a [`World`](super::World) knows them. By default no login succeeds.
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
