//! Sessions of the web console: logins that a cookie stands for, so that no page keeps a password.
//!
//! They live in memory, by the digest of their secret. Each request asks again what its login rests on, so a session
//! has the rights that its user has now, and none once the password changed.

use std::collections::HashMap;
use std::fmt;
use std::sync::Mutex;
use std::time::Instant;

use axum::http::header::COOKIE;
use axum::http::{HeaderMap, HeaderValue};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use imori_core::authorize::Identity;
use imori_server::access::Standing;
use imori_server::broker::Broker;
use imori_server::http::RequestOrigin;
use sha2::{Digest as _, Sha256};

use crate::limits::{SESSION_IDLE_MAX, SESSION_LIFE_MAX, SESSIONS_MAX, USER_SESSIONS_MAX};
use crate::lock::lock;

/// The name of the cookie.
const NAME: &str = "imori_session";

/// Bytes of a secret.
const SECRET_BYTES: usize = 32;

/// The header in which browsers relate the page that sends a request to the host that receives it.
const SEC_FETCH_SITE: &str = "sec-fetch-site";

/// Identifies a session: the digest of its secret.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct SessionKey([u8; 32]);

impl fmt::Debug for SessionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionKey").finish_non_exhaustive()
    }
}

impl SessionKey {
    /// The key of a cookie's value; `None` if that cannot be a secret.
    pub fn of(value: &str) -> Option<SessionKey> {
        let secret = URL_SAFE_NO_PAD.decode(value).ok()?;
        (secret.len() == SECRET_BYTES).then(|| SessionKey(Sha256::digest(secret).into()))
    }
}

/// The cookie of a session that has begun.
#[derive(Debug)]
pub struct SessionCookie {
    /// The key of the session.
    pub key: SessionKey,
    /// The value of `Set-Cookie`.
    pub header: HeaderValue,
}

impl SessionCookie {
    /// A cookie with a new secret, to be sent back over TLS only if it `is_encrypted` now; `None` if the system has no
    /// random bytes.
    pub fn new(is_encrypted: bool) -> Option<SessionCookie> {
        let mut secret = [0; SECRET_BYTES];
        getrandom::fill(&mut secret).ok()?;
        let value = URL_SAFE_NO_PAD.encode(secret);
        Some(SessionCookie {
            key: SessionKey::of(&value)?,
            header: HeaderValue::from_str(&cookie(&value, is_encrypted)).ok()?,
        })
    }

    /// The value of `Set-Cookie` that removes the cookie.
    pub(crate) fn removal(is_encrypted: bool) -> Option<HeaderValue> {
        HeaderValue::from_str(&(cookie("", is_encrypted) + "; Max-Age=0")).ok()
    }
}

fn cookie(value: &str, is_encrypted: bool) -> String {
    let secure = if is_encrypted { "; Secure" } else { "" };
    format!("{NAME}={value}; HttpOnly; SameSite=Strict; Path=/{secure}")
}

/// Whether a request has the cookie of a session, ended ones included.
pub fn has_cookie(headers: &HeaderMap) -> bool {
    values(headers).next().is_some()
}

/// The keys of the sessions that a request's cookies name, ended ones included.
pub fn session_keys(headers: &HeaderMap) -> impl Iterator<Item = SessionKey> {
    values(headers).filter_map(SessionKey::of)
}

/// The values of cookies with our name. A page of another port of this host can add cookies, so there may be several.
fn values(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let lines = headers.get_all(COOKIE).iter().filter_map(|line| line.to_str().ok());
    let pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.filter(|(name, _)| *name == NAME).map(|(_, value)| value.trim_matches('"'))
}

/// The sessions of the admin listener.
pub struct Sessions<T = Standing>(Mutex<HashMap<SessionKey, Session<T>>>);

/// A session.
struct Session<T> {
    user: String,
    login: T,
    /// It began on this machine and is valid here only, as some logins are.
    is_local: bool,
    began: Instant,
    used: Instant,
}

impl<T> Default for Sessions<T> {
    fn default() -> Sessions<T> {
        Sessions(Mutex::default())
    }
}

impl<T> fmt::Debug for Sessions<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sessions").finish_non_exhaustive()
    }
}

impl<T> Session<T> {
    fn is_over(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.began) >= SESSION_LIFE_MAX
            || now.saturating_duration_since(self.used) >= SESSION_IDLE_MAX
    }
}

impl<T> Sessions<T> {
    /// Begins a session. If there are too many, of this user or in all, the least recently used one ends.
    pub fn begin(&self, key: SessionKey, (user, login): (String, T), is_local: bool, now: Instant) {
        let mut sessions = lock(&self.0);
        sessions.retain(|_, session| !session.is_over(now));
        if sessions.values().filter(|session| session.user == user).count() >= USER_SESSIONS_MAX {
            end_oldest(&mut sessions, |session| session.user == user);
        }
        if sessions.len() >= SESSIONS_MAX {
            end_oldest(&mut sessions, |_| true);
        }
        sessions.insert(key, Session { user, login, is_local, began: now, used: now });
    }

    /// Uses a session: returns what `identify` makes of its login. If that is nothing, the session ends.
    pub fn using<R>(
        &self,
        key: SessionKey,
        is_local: bool,
        now: Instant,
        identify: impl FnOnce(&T) -> Option<R>,
    ) -> Option<R> {
        let mut sessions = lock(&self.0);
        let session = sessions.get_mut(&key)?;
        if session.is_local && !is_local {
            return None;
        }
        let identity = if session.is_over(now) { None } else { identify(&session.login) };
        match identity.is_some() {
            true => session.used = now,
            false => drop(sessions.remove(&key)),
        }
        identity
    }

    /// Ends a session, if it exists.
    pub fn end(&self, key: SessionKey) {
        lock(&self.0).remove(&key);
    }

    /// Ends the sessions of a request's cookies.
    pub(crate) fn end_all(&self, headers: &HeaderMap) {
        session_keys(headers).for_each(|key| self.end(key));
    }
}

impl Sessions {
    /// The session of a request and its user with the present rights; `None` if the request has none that holds, comes
    /// from a page of another origin, or could be read in transit.
    pub(crate) fn of_request(
        &self,
        broker: &Broker,
        headers: &HeaderMap,
        origin: &RequestOrigin,
    ) -> Option<(SessionKey, Identity)> {
        let is_own =
            headers.get_all(SEC_FETCH_SITE).iter().all(|site| site == "same-origin" || site == "none");
        if !is_own || !origin.is_secret(broker) {
            return None;
        }
        let is_local = origin.is_local(broker);
        let mut keys = session_keys(headers);
        keys.find_map(|key| Some((key, self.renewed(broker, key, is_local)?)))
    }

    /// The user of a session with the present rights; `None` if the session has ended.
    pub(crate) fn renewed(&self, broker: &Broker, key: SessionKey, is_local: bool) -> Option<Identity> {
        let identify = |standing: &Standing| standing.identity(broker.access(), broker.now());
        self.using(key, is_local, Instant::now(), identify)
    }
}

fn end_oldest<T>(sessions: &mut HashMap<SessionKey, Session<T>>, is_candidate: impl Fn(&Session<T>) -> bool) {
    let candidates = sessions.iter().filter(|(_, session)| is_candidate(session));
    let oldest = candidates.min_by_key(|(_, session)| session.used).map(|(key, _)| *key);
    oldest.map(|key| sessions.remove(&key));
}
