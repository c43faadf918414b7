//! Logins that were right a moment ago, so that a client that comes again costs no slow hash.

use std::collections::HashMap;
use std::fmt;
use std::sync::Mutex;

use sha2::{Digest as _, Sha256};

use crate::slots::unpoisoned;

/// For each user the last password that was right, as a digest under a key of this process.
pub(super) struct Verified {
    key: [u8; 32],
    digests: Mutex<HashMap<String, [u8; 32]>>,
}

impl fmt::Debug for Verified {
    /// Nothing of it gets into a log.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Verified").finish_non_exhaustive()
    }
}

impl Verified {
    /// Nobody yet. Without random bytes of the system nobody is ever remembered.
    pub(super) fn new() -> Option<Verified> {
        let mut key = [0; 32];
        getrandom::fill(&mut key).ok()?;
        Some(Verified { key, digests: Mutex::default() })
    }

    /// Says whether this password of the user was right before, and has not been changed since.
    pub(super) fn has(&self, user: &str, password: &[u8]) -> bool {
        let digest = self.digest(user, password);
        let known = unpoisoned(self.digests.lock()).get(user).copied();
        // The digests are unpredictable without the key, so that the time of the comparison tells nothing.
        known == Some(digest)
    }

    /// Remembers a right password.
    pub(super) fn note(&self, user: &str, password: &[u8]) {
        let digest = self.digest(user, password);
        unpoisoned(self.digests.lock()).insert(user.to_owned(), digest);
    }

    /// Forgets a user, who is gone or has another password.
    pub(super) fn forget(&self, user: &str) {
        unpoisoned(self.digests.lock()).remove(user);
    }

    fn digest(&self, user: &str, password: &[u8]) -> [u8; 32] {
        let length = (user.len() as u64).to_le_bytes();
        let digest = Sha256::new().chain_update(self.key).chain_update(length);
        digest.chain_update(user).chain_update(password).finalize().into()
    }
}
