//! Why a stream cannot be copied.

use std::fmt;

use imori_streams::archive::ArchiveError;

use crate::internal::InternalError;

/// Why a stream cannot be copied or restored.
#[derive(Debug)]
pub enum TransferError {
    /// The broker refused a command, or has stopped.
    Broker(InternalError),
    /// The bytes are not an archive, or one that this broker does not take.
    Archive(ArchiveError),
    /// The configuration in the archive is refused.
    Configuration(String),
    /// There is a queue of the stream's name.
    Exists,
    /// No protocol of this build has archives of streams.
    NoForm,
    /// The stream is gone.
    Gone,
    /// Messages are on disk and could not be read in time.
    Unreadable,
    /// The client stopped to send or to answer.
    Stalled(&'static str),
}

impl fmt::Display for TransferError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TransferError::Broker(error) => write!(f, "{error}"),
            TransferError::Archive(error) => write!(f, "{error}"),
            TransferError::Configuration(error) => f.write_str(error),
            TransferError::Exists => f.write_str("stream name already in use, cannot restore"),
            TransferError::NoForm => f.write_str("no protocol of this build has archives of streams"),
            TransferError::Gone => f.write_str("the stream is gone"),
            TransferError::Unreadable => {
                f.write_str("the messages are on disk and cannot be read now; try again in a moment")
            }
            TransferError::Stalled(what) => f.write_str(what),
        }
    }
}

impl std::error::Error for TransferError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            TransferError::Broker(error) => Some(error),
            TransferError::Archive(error) => Some(error),
            _ => None,
        }
    }
}

impl From<InternalError> for TransferError {
    fn from(error: InternalError) -> Self {
        TransferError::Broker(error)
    }
}

impl From<ArchiveError> for TransferError {
    fn from(error: ArchiveError) -> Self {
        TransferError::Archive(error)
    }
}
