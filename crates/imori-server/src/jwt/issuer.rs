//! The issuer of access tokens, as far as the broker trusts it.

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
    /// A login waits for newer keys; the others do not wait with it.
    is_renewing: AtomicBool,
}

impl fmt::Debug for Issuer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Issuer").field("terms", &self.terms).finish_non_exhaustive()
    }
}

/// Says that a password may be a token: three parts of base64url, the first of which begins as JSON does. The check is
/// worth a thread only then.
pub(crate) fn looks_like_token(password: &[u8]) -> bool {
    password.starts_with(b"eyJ")
        && password.len() <= JWT_BYTES_MAX
        && password.iter().filter(|byte| **byte == b'.').count() == 2
}

impl Issuer {
    /// The issuer that a configuration trusts; `None` where it trusts none.
    ///
    /// # Errors
    /// The file of its keys cannot be used.
    pub(crate) fn of(terms: &Jwt, clock: Clock) -> Result<Option<Issuer>, KeysError> {
        let source = KeySource::of(terms)?;
        let issuer =
            |source| Issuer { terms: terms.clone(), source, clock, is_renewing: AtomicBool::new(false) };
        Ok(source.map(issuer))
    }

    /// Keeps the keys up to date until [`Issuer::close`], on a thread of its own.
    pub(crate) fn run(&self) {
        self.source.run();
    }

    /// Ends [`Issuer::run`].
    pub(crate) fn close(&self) {
        self.source.close();
    }

    /// Verifies a token, and gives the identity that it grants in these vhosts, until the token ends. Waits for newer keys
    /// where the token names an unknown one, if no other does (SECURITY AUTH-10).
    ///
    /// # Errors
    /// Why the token is refused.
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
        // Where a client can name no vhost there is no choice.
        let rights = match &*grants {
            [(only, _, _)] => rights.at_home(*only),
            _ => rights,
        };
        Ok(Identity { user, rights: rights.into() })
    }
}

/// A connection that lasts longer than this is told of its end by nobody who is alive.
const LONGEST: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);
