//! The errors of opening and changing the definitions.

use std::fmt;
use std::io;

use super::damage::DefinitionsDamage;
use crate::disk;
use crate::settings::OnDamage;

/// The name of the file.
pub const NAME: &str = "definitions.redb";

/// The reason why the definitions cannot be opened or changed.
#[derive(Debug)]
pub enum DefinitionsError {
    /// The disk returned an error; nothing is applied after it.
    Disk(io::Error),
    /// The file belongs to another store.
    Foreign,
    /// The file has an unknown version.
    Version(u32),
    /// The file cannot be read at all.
    Unreadable(String),
    /// The file is damaged, and the settings refuse to open it.
    Damaged(Box<DefinitionsDamage>),
}

impl DefinitionsError {
    /// Whether the error is only a lack of space, which may come back.
    #[must_use]
    pub fn is_out_of_space(&self) -> bool {
        matches!(self, DefinitionsError::Disk(error) if disk::is_out_of_resources(error))
    }
}

/// A failed sync, which never counts as a mere lack of space, whatever its cause.
#[derive(Debug)]
pub(crate) struct SyncFailed(io::Error);

impl SyncFailed {
    /// Wraps the error for redb, keeping its message.
    pub(crate) fn told(error: io::Error) -> io::Error {
        io::Error::other(SyncFailed(error))
    }
}

impl fmt::Display for SyncFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for SyncFailed {}

impl fmt::Display for DefinitionsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DefinitionsError::Disk(error) => {
                write!(f, "`{NAME}` cannot be read or written: {error}; check the disk")
            }
            DefinitionsError::Foreign => {
                write!(f, "`{NAME}` belongs to another store; take it out of the folder")
            }
            DefinitionsError::Version(version) => {
                write!(f, "`{NAME}` has version `{version}`; open it with the release that wrote it")
            }
            DefinitionsError::Unreadable(why) => write!(
                f,
                "`{NAME}` is damaged so that nothing can be read from it: {why}; restore the whole folder from a \
                 copy, or {}: messages then come back in queues that are named by number",
                OnDamage::TO_GO_ON
            ),
            DefinitionsError::Damaged(damage) => {
                write!(f, "`{NAME}` is damaged; restore it, or {}\n{damage}", OnDamage::TO_GO_ON)
            }
        }
    }
}

impl std::error::Error for DefinitionsError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            DefinitionsError::Disk(error) => Some(error),
            _ => None,
        }
    }
}

impl From<io::Error> for DefinitionsError {
    fn from(error: io::Error) -> DefinitionsError {
        DefinitionsError::Disk(error)
    }
}

impl From<redb::Error> for DefinitionsError {
    fn from(error: redb::Error) -> DefinitionsError {
        let is_of_disk = |error: &io::Error| {
            let is_sync = error.get_ref().is_some_and(|inner| inner.is::<SyncFailed>());
            is_sync || error.raw_os_error().is_some() || error.kind() == io::ErrorKind::WriteZero
        };
        match error {
            redb::Error::Io(error) if is_of_disk(&error) => DefinitionsError::Disk(error),
            redb::Error::PreviousIo => DefinitionsError::Disk(io::Error::other("it failed before")),
            other => DefinitionsError::Unreadable(other.to_string()),
        }
    }
}

impl From<redb::StorageError> for DefinitionsError {
    fn from(error: redb::StorageError) -> DefinitionsError {
        redb::Error::from(error).into()
    }
}

impl From<redb::TableError> for DefinitionsError {
    fn from(error: redb::TableError) -> DefinitionsError {
        redb::Error::from(error).into()
    }
}

impl From<redb::TransactionError> for DefinitionsError {
    fn from(error: redb::TransactionError) -> DefinitionsError {
        redb::Error::from(error).into()
    }
}

impl From<redb::CommitError> for DefinitionsError {
    fn from(error: redb::CommitError) -> DefinitionsError {
        redb::Error::from(error).into()
    }
}

impl From<redb::DatabaseError> for DefinitionsError {
    fn from(error: redb::DatabaseError) -> DefinitionsError {
        redb::Error::from(error).into()
    }
}
