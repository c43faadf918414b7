//! The trusted issuer of access tokens.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use imori_core::authorize::{Identity, Rights};
use imori_core::id::VhostId;
use imori_core::name::Name;
use imori_core::time::Time;

use super::claims::Claims;
use super::jwt_error::JwtError;
use super::scopes::Scopes;
use super::source::{KeySource, KeysError};
use super::token::verified;
use crate::clock::Clock;
use crate::config::Jwt;
use crate::limits::JWT_BYTES_MAX;

/// Verifies tokens of one issuer.
pub(crate) struct Issuer {
    terms: Jwt,
    source: KeySource,
    clock: Clock,
    /// A login is waiting for newer keys; others do not wait as well.
    is_renewing: AtomicBool,
}

impl fmt::Debug for Issuer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Issuer").field("terms", &self.terms).finish_non_exhaustive()
    }
}

/// Whether a password may be a token: three base64url parts, of which the first begins like JSON. Avoids a thread's
/// check of other passwords.
pub(crate) fn looks_like_token(password: &[u8]) -> bool {
    password.starts_with(b"eyJ")
        && password.len() <= JWT_BYTES_MAX
        && password.iter().filter(|byte| **byte == b'.').count() == 2
}

impl Issuer {
    /// The issuer that a configuration trusts, if any.
    ///
    /// # Errors
    /// The file of its keys cannot be used.
    pub(crate) fn of(terms: &Jwt, clock: Clock) -> Result<Option<Issuer>, KeysError> {
        let source = KeySource::of(terms)?;
        let issuer =
            |source| Issuer { terms: terms.clone(), source, clock, is_renewing: AtomicBool::new(false) };
        Ok(source.map(issuer))
    }

    /// Keeps the keys up to date until [`Issuer::close`]; runs on its own thread.
    pub(crate) fn run(&self) {
        self.source.run();
    }

    /// Ends [`Issuer::run`].
    pub(crate) fn close(&self) {
        self.source.close();
    }

    /// Verifies a token and returns the identity it grants in `vhosts` until it expires. If the token names an
    /// unknown key, waits for newer keys unless another login does (SECURITY AUTH-10).
    ///
    /// # Errors
    /// The reason the token is refused.
    pub(crate) fn check<'a>(
        &self,
        token: &[u8],
        vhosts: impl Iterator<Item = (VhostId, &'a str)>,
    ) -> Result<Identity, JwtError> {
        let claims = match verified(token, &self.source.keys()) {
            Err(JwtError::UnknownKey(_)) if !self.is_renewing.swap(true, Ordering::AcqRel) => {
                self.source.renew();
                self.is_renewing.store(false, Ordering::Release);
                verified(token, &self.source.keys())?
            }
            verified => verified?,
        };
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let claims = Claims::of(&claims, &self.terms, since_epoch)?;
        let left = claims.ends.saturating_sub(since_epoch);
        self.identity(&claims, self.clock.now().after(left.min(LONGEST)), vhosts)
    }

    fn identity<'a>(
        &self,
        claims: &Claims,
        end: Time,
        vhosts: impl Iterator<Item = (VhostId, &'a str)>,
    ) -> Result<Identity, JwtError> {
        let prefix = self.terms.scope_prefix.as_deref().unwrap_or_default();
        let scopes = Scopes::read(claims.scopes.iter().map(String::as_str), prefix);
        let grants = scopes.in_vhosts(vhosts);
        let user = Name::from(claims.user.as_str());
        let rights =
            Rights::new(&user, scopes.tags, grants.iter().map(|(id, name, grants)| (*id, name, grants)));
        let rights = rights.map_err(JwtError::Scopes)?.until(end);
        // Clients whose protocol cannot name a vhost use the only one.
        let rights = match &*grants {
            [(only, _, _)] => rights.at_home(*only),
            _ => rights,
        };
        Ok(Identity { user, rights: rights.into() })
    }
}

/// A bound for expiry times, longer than any connection lasts.
const LONGEST: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);
