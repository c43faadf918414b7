//! Finds users by the credentials that replace a user name.

use std::collections::HashMap;

use super::objects::{Objects, User};

/// Names of users by token digest, NATS key and certificate name; the number of users without SCRAM keys.
#[derive(Debug, Default, Clone)]
pub(super) struct LoginIndex {
    tokens: HashMap<String, String>,
    nkeys: HashMap<String, String>,
    certificates: HashMap<String, String>,
    without_scram_keys: usize,
}

impl LoginIndex {
    /// Indexes these users. If two have the same key, the first by name gets it.
    pub(super) fn of(objects: &Objects) -> LoginIndex {
        let mut index = LoginIndex::default();
        let add = |map: &mut HashMap<String, String>, key: &String, name: &String| {
            map.entry(key.clone()).or_insert_with(|| name.clone());
        };
        for (name, user) in &objects.users {
            user.tokens.iter().for_each(|token| add(&mut index.tokens, token, name));
            user.nkeys.iter().for_each(|key| add(&mut index.nkeys, key, name));
            user.certificate.iter().for_each(|named| add(&mut index.certificates, named, name));
            index.without_scram_keys += usize::from(lacks_scram_keys(user));
        }
        index
    }

    /// Tells whether no user lacks SCRAM keys, as [`lacks_scram_keys`] defines it.
    pub(super) fn all_have_scram_keys(&self) -> bool {
        self.without_scram_keys == 0
    }

    /// The user of the token with this digest.
    pub(super) fn by_token(&self, digest: &str) -> Option<&str> {
        self.tokens.get(digest).map(String::as_str)
    }

    /// The user of a NATS public key.
    pub(super) fn by_nkey(&self, key: &[u8]) -> Option<&str> {
        self.nkeys.get(str::from_utf8(key).ok()?).map(String::as_str)
    }

    /// The user whose certificates carry this name.
    pub(super) fn by_certificate(&self, named: &str) -> Option<&str> {
        self.certificates.get(named).map(String::as_str)
    }
}

/// Tells whether the user can log in by SASL PLAIN, with a password or a token, but not by SCRAM.
pub(super) fn lacks_scram_keys(user: &User) -> bool {
    user.password.as_ref().map_or(!user.tokens.is_empty(), |hash| hash.scram().is_none())
}
