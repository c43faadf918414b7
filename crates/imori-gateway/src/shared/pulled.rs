//! Messages that were pulled and wait for their settlement.

use std::collections::HashMap;
use std::sync::Mutex;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use imori_server::InternalClient;

use crate::limits::PULLED_MAX;
use crate::lock::lock;

/// The messages of all pulls, by their token.
#[derive(Default)]
pub(crate) struct Pulled(Mutex<HashMap<String, Pull>>);

/// A message that was pulled.
pub(crate) struct Pull {
    /// The client that holds the delivery.
    pub(crate) client: InternalClient,
    pub(crate) number: u64,
    /// The user who may settle it.
    pub(crate) user: Vec<u8>,
}

impl Pulled {
    /// Adds a message and returns its token; `None` if too many wait, or if the system has no random bytes.
    pub(crate) fn add(&self, pull: Pull) -> Option<String> {
        let mut random = [0; 18];
        getrandom::fill(&mut random).ok()?;
        let token = URL_SAFE_NO_PAD.encode(random);
        let mut pulls = lock(&self.0);
        if pulls.len() >= PULLED_MAX {
            return None;
        }
        pulls.insert(token.clone(), pull);
        Some(token)
    }

    /// Takes the message of a token, if it is the user's and has not been settled.
    pub(crate) fn take(&self, token: &str, user: Option<&[u8]>) -> Option<Pull> {
        let mut pulls = lock(&self.0);
        let is_own = user.is_none_or(|user| pulls.get(token).is_some_and(|pull| pull.user == user));
        is_own.then(|| pulls.remove(token)).flatten()
    }
}
