//! The reasons for which a change of objects is refused.

use std::fmt;
use std::path::PathBuf;

/// The reason for refusing a change. Nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AccessError {
    /// There is no such object: its kind and name.
    Missing(&'static str, String),
    /// The request contradicts itself or existing objects; the sentence says how to fix it.
    Bad(String),
    /// The system has no random bytes for a password.
    NoRandomness,
    /// The file with a secret cannot be used, and the reason.
    Secret(PathBuf, String),
    /// The change cannot be made durable: the disk has no room, or the broker is stopping.
    NotKept,
}

impl AccessError {
    /// An [`AccessError::Bad`] with this sentence.
    pub fn bad(reason: impl fmt::Display) -> AccessError {
        AccessError::Bad(reason.to_string())
    }
}

impl fmt::Display for AccessError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AccessError::Missing(kind, name) => write!(f, "there is no {kind} `{}`", name.escape_debug()),
            AccessError::Bad(reason) => f.write_str(reason),
            AccessError::NoRandomness => f.write_str("the system gives no random bytes for a password"),
            AccessError::Secret(path, why) => {
                write!(f, "the secret in `{}` is not taken: {why}", path.display())
            }
            AccessError::NotKept => f.write_str(
                "the change cannot be made durable: the disk has no room for it or the broker stops; make space and \
                 try again",
            ),
        }
    }
}

impl std::error::Error for AccessError {}
