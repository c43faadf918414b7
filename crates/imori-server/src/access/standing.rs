//! Logins that outlive their request: what each rests on, and what its user may do now.

use std::fmt;

use imori_core::authorize::Identity;
use imori_core::time::Time;

use super::access::Access;
use crate::credentials::digest;

/// A login with a password that holds until the password changes, the user is deleted, or its token ends.
pub struct Standing {
    user: String,
    basis: Basis,
}

/// The fact that a login rests on.
enum Basis {
    /// The operator's password, which is valid until the process ends.
    Operator,
    /// An access token, whose bearer keeps these rights until their end.
    AccessToken(Identity),
    /// The user has this id, and this has not changed.
    Stored { id: String, proof: Proof },
}

/// What a stored user has logged in with.
enum Proof {
    /// A token with this digest.
    Token(String),
    /// A password with this mark.
    Password(String),
}

impl Standing {
    /// The standing of a user who has just logged in with this password; `None` if the user was changed meanwhile, so
    /// that the login has to be checked again, or has no password of its own, as the built-in user.
    pub fn of(access: &Access, granted: &Identity, password: &str) -> Option<Standing> {
        let user = granted.user.to_string();
        let basis = if *granted == Identity::operator() {
            Basis::Operator
        } else if granted.rights.valid_until().is_some() {
            Basis::AccessToken(granted.clone())
        } else {
            let stored = access.user(&user)?;
            access.identity_of(&user).filter(|identity| identity == granted)?;
            let proof = match digest(password.as_bytes()).filter(|digest| stored.tokens.contains(digest)) {
                Some(digest) => Proof::Token(digest),
                None => Proof::Password(stored.password.as_ref()?.mark()),
            };
            Basis::Stored { id: stored.login_id(), proof }
        };
        Some(Standing { user, basis })
    }

    /// The user with its present rights; `None` if the login does not hold any more.
    pub fn identity(&self, access: &Access, now: Time) -> Option<Identity> {
        let (id, proof) = match &self.basis {
            Basis::Operator => return Some(Identity::operator()),
            Basis::AccessToken(identity) => {
                let is_valid = identity.rights.valid_until().is_some_and(|end| now < end);
                return is_valid.then(|| identity.clone());
            }
            Basis::Stored { id, proof } => (id, proof),
        };
        let stored = access.user(&self.user).filter(|stored| stored.login_id() == *id)?;
        let holds = match proof {
            Proof::Token(digest) => stored.tokens.contains(digest),
            Proof::Password(mark) => stored.password.as_ref().is_some_and(|hash| hash.mark() == *mark),
        };
        if holds { access.identity_of(&self.user) } else { None }
    }
}

impl fmt::Debug for Standing {
    /// Keeps hashes and digests out of logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Standing").field("user", &self.user).finish_non_exhaustive()
    }
}
