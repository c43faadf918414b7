//! Why the store refuses.

use std::fmt;
use std::io;

/// Why the store cannot do what it was told.
#[derive(Debug, Clone)]
pub enum StoreError {
    /// The folder or a thread cannot be made.
    Io(String),
    /// The database refused.
    Sql(String),
    /// The store has a format that this version does not know.
    Version(i64),
    /// A document cannot be read.
    Damaged,
    /// The store has been closed.
    Closed,
    /// The connection to the server is lost or cannot be made; a later attempt may succeed.
    Unreachable(String),
    /// Another broker has changed the store since this one lost its connection.
    TakenOver,
}

impl From<io::Error> for StoreError {
    fn from(error: io::Error) -> StoreError {
        StoreError::Io(error.to_string())
    }
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> StoreError {
        StoreError::Sql(error.to_string())
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreError::Io(error) => write!(f, "the automation's store cannot be opened: {error}"),
            StoreError::Sql(error) => write!(f, "the automation's store: {error}"),
            StoreError::Version(version) => write!(
                f,
                "the automation's store has format {version}, which this version does not know; \
                 start the version that wrote it, or give the automation a new store: move `automation` out of the data \
                 folder, or name another database in `automation.store`"
            ),
            StoreError::Damaged => {
                f.write_str("a document in the automation's store is damaged; `imori automate fsck` names it")
            }
            StoreError::Closed => f.write_str("the automation's store has been closed"),
            StoreError::Unreachable(error) => {
                write!(f, "the automation's store cannot be reached: {error}")
            }
            StoreError::TakenOver => f.write_str(
                "another broker has changed the automation's store while this one had no connection; \
                 stop the other broker, or restart this one after its end",
            ),
        }
    }
}

impl std::error::Error for StoreError {}
