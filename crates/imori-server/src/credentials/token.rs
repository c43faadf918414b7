//! Tokens: secrets of a user that the broker makes, and of which it keeps a digest.
//!
//! A token has 125 random bits, so that no slow hash has to protect it.

use std::fmt;

use sha2::{Digest as _, Sha256};

use super::password::random_password;

/// The beginning of each token, by which people and programs that look for secrets know one.
const PREFIX: &str = "imori_";

/// A token that was made, to be shown once.
pub(crate) struct Token(String);

impl fmt::Debug for Token {
    /// A token never gets into a log.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

impl Token {
    /// Makes a token. `None` where the system has no random bytes.
    pub(crate) fn make() -> Option<Token> {
        random_password().map(|random| Token(format!("{PREFIX}{random}")))
    }

    /// The text, for the one who asked for it.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }

    /// The digest that is kept of it.
    pub(crate) fn digest(&self) -> String {
        digest(self.0.as_bytes()).unwrap_or_default()
    }
}

/// The digest of a text that may be a token; `None` where it is none.
pub(crate) fn digest(text: &[u8]) -> Option<String> {
    let digest = text.starts_with(PREFIX.as_bytes()).then(|| Sha256::digest(text))?;
    Some(digest.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}")))
}
