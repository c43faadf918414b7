//! Remembers recently verified passwords, so that another login of the client needs no slow hash.

use std::collections::HashMap;
use std::fmt;
use std::sync::Mutex;
use std::time::Instant;

use sha2::{Digest as _, Sha256};

use crate::limits::VERIFIED_MAX;
use crate::slots::unpoisoned;

/// For each user, the last correct password as a digest under a key of this process, and when it was checked.
pub(super) struct Verified {
    key: [u8; 32],
    digests: Mutex<HashMap<String, ([u8; 32], Instant)>>,
}

impl fmt::Debug for Verified {
    /// Keeps the key and the digests out of logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Verified").finish_non_exhaustive()
    }
}

impl Verified {
    /// Remembers no password yet. `None` if the system has no random bytes; then none is ever remembered.
    pub(super) fn new() -> Option<Verified> {
        let mut key = [0; 32];
        getrandom::fill(&mut key).ok()?;
        Some(Verified { key, digests: Mutex::default() })
    }

    /// Tells whether this password of the user was correct within the last hour, and has not been changed since.
    pub(super) fn has(&self, user: &str, password: &[u8], now: Instant) -> bool {
        let digest = self.digest(user, password);
        let mut digests = unpoisoned(self.digests.lock());
        let Some((known, checked)) = digests.get(user).copied() else { return false };
        if now.saturating_duration_since(checked) >= VERIFIED_MAX {
            digests.remove(user);
            return false;
        }
        // The digests are unpredictable without the key, so the time of the comparison reveals nothing.
        known == digest
    }

    /// Remembers a correct password.
    pub(super) fn note(&self, user: &str, password: &[u8], now: Instant) {
        let digest = self.digest(user, password);
        unpoisoned(self.digests.lock()).insert(user.to_owned(), (digest, now));
    }

    /// Forgets a user that was changed or deleted.
    pub(super) fn forget(&self, user: &str) {
        unpoisoned(self.digests.lock()).remove(user);
    }

    fn digest(&self, user: &str, password: &[u8]) -> [u8; 32] {
        let length = (user.len() as u64).to_le_bytes();
        let digest = Sha256::new().chain_update(self.key).chain_update(length);
        digest.chain_update(user).chain_update(password).finalize().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SECURITY AUTH-09.
    #[test]
    fn a_right_password_is_remembered_for_an_hour() {
        let (verified, start) = (Verified::new().unwrap(), Instant::now());
        verified.note("adam", b"right", start);
        let almost = start + VERIFIED_MAX - std::time::Duration::from_secs(1);
        assert!(verified.has("adam", b"right", almost));
        assert!(!verified.has("adam", b"wrong", almost) && !verified.has("eve", b"right", almost));
        assert!(!verified.has("adam", b"right", start + VERIFIED_MAX));
        assert!(!verified.has("adam", b"right", start), "it is forgotten");
        verified.note("adam", b"right", start);
        verified.forget("adam");
        assert!(!verified.has("adam", b"right", start));
    }
}
