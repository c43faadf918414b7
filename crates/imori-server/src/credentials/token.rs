//! Tokens: secrets that the broker generates for users, of which it stores only a digest.
//!
//! A token has 125 random bits, so its digest need not be a slow hash.

use std::fmt;

use data_encoding::HEXLOWER;
use sha2::{Digest as _, Sha256};

use super::password::random_password;

/// Prefix by which people and secret scanners recognize tokens.
const PREFIX: &str = "imori_";

/// Random bytes of an id.
const ID_BYTES: usize = 16;

/// A new token, to be shown once.
pub struct Token(String);

impl fmt::Debug for Token {
    /// Keeps tokens out of logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

impl Token {
    /// Generates a token; `None` if the system has no random bytes.
    pub fn make() -> Option<Token> {
        random_password().map(|random| Token(format!("{PREFIX}{random}")))
    }

    /// The token's text, for the operator who requested it.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// The digest to store.
    pub fn digest(&self) -> String {
        digest(self.0.as_bytes()).unwrap_or_default()
    }
}

/// An id that no other has, in hexadecimal digits; `None` if the system has no random bytes.
pub fn random_id() -> Option<String> {
    let mut random = [0; ID_BYTES];
    getrandom::fill(&mut random).ok()?;
    Some(HEXLOWER.encode(&random))
}

/// The digest of a text that may be a token; `None` if it lacks the prefix.
pub(crate) fn digest(text: &[u8]) -> Option<String> {
    text.starts_with(PREFIX.as_bytes()).then(|| HEXLOWER.encode(&Sha256::digest(text)))
}
