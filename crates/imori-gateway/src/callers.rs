//! Who asks, and the client inside the broker that acts for them.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use http::HeaderMap;
use http::header::AUTHORIZATION;
use imori_core::authorize::Identity;
use imori_core::login::Verdict;
use imori_server::broker::Broker;
use imori_server::http::{HttpLogin, RequestOrigin};
use imori_server::{ClientOptions, InternalClient, InternalError};

use crate::limits::CALLERS_MAX;
use crate::routes::LoginRule;

/// Why nobody may act for a request.
#[derive(Debug)]
pub(crate) enum LoginError {
    /// The caller has to log in.
    Missing,
    /// The login is wrong.
    Wrong,
    /// Too many logins are being checked.
    Busy,
    /// The route's user does not exist.
    NoUser(String),
}

/// The login that a request has sent.
pub(crate) enum Sent {
    Nothing,
    Login(HttpLogin),
    /// `Authorization` is there, and is none that is known.
    Unreadable,
}

impl Sent {
    /// Reads the login of a request with these headers.
    pub(crate) fn of(broker: &Broker, headers: &HeaderMap, origin: &RequestOrigin) -> Sent {
        match HttpLogin::from(broker, headers, origin) {
            Some(login) => Sent::Login(login),
            None if headers.contains_key(AUTHORIZATION) => Sent::Unreadable,
            None => Sent::Nothing,
        }
    }
}

/// The user of a request.
///
/// # Errors
/// [`LoginError`].
pub(crate) async fn identity_of(
    broker: &Broker,
    sent: Sent,
    rule: LoginRule,
    user: Option<&str>,
) -> Result<Option<Identity>, LoginError> {
    match sent {
        Sent::Login(login) => {
            return match login.decide(broker).await {
                Verdict::Granted(identity) => Ok(Some(identity)),
                Verdict::Refused => Err(LoginError::Wrong),
                Verdict::Busy => Err(LoginError::Busy),
            };
        }
        Sent::Unreadable => return Err(LoginError::Wrong),
        Sent::Nothing if rule == LoginRule::Required => return Err(LoginError::Missing),
        Sent::Nothing => {}
    }
    let Some(user) = user else { return Ok(None) };
    broker.access().identity_of(user).map(Some).ok_or_else(|| LoginError::NoUser(user.to_owned()))
}

/// The clients of a worker's callers.
pub(crate) struct Callers {
    broker: Broker,
    clients: RefCell<HashMap<Key, Kept>>,
}

/// A caller: rights that change are other rights. The address stays valid while [`Kept`] holds the rights.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    rights: usize,
    vhost: String,
}

struct Kept {
    /// Keeps the rights' address from being used again.
    _identity: Identity,
    client: InternalClient,
    used: Instant,
}

impl Callers {
    pub(crate) fn new(broker: &Broker) -> Callers {
        Callers { broker: broker.clone(), clients: RefCell::default() }
    }

    /// A client that acts for a user.
    ///
    /// # Errors
    /// The user may not enter the vhost, or has reached a limit.
    pub(crate) async fn client(
        &self,
        identity: &Identity,
        vhost: &str,
    ) -> Result<InternalClient, InternalError> {
        let key =
            Key { rights: Arc::as_ptr(&identity.rights).cast::<u8>() as usize, vhost: vhost.to_owned() };
        if let Some(kept) = self.clients.borrow_mut().get_mut(&key) {
            kept.used = Instant::now();
            return Ok(kept.client.clone());
        }
        let mut options = ClientOptions::new(identity.clone(), vhost.as_bytes());
        options.name = String::from("gateway");
        let client = self.broker.internal_clients().connect_with(options).await?;
        let mut clients = self.clients.borrow_mut();
        if clients.len() >= CALLERS_MAX {
            let oldest = clients.iter().min_by_key(|(_, kept)| kept.used).map(|(key, _)| key.clone());
            oldest.and_then(|key| clients.remove(&key));
        }
        let kept = Kept { _identity: identity.clone(), client: client.clone(), used: Instant::now() };
        clients.insert(key, kept);
        Ok(client)
    }

    /// Forgets the clients of an identity, which have ended.
    pub(crate) fn forget(&self, identity: &Identity) {
        let rights = Arc::as_ptr(&identity.rights).cast::<u8>() as usize;
        self.clients.borrow_mut().retain(|key, _| key.rights != rights);
    }
}
