//! Why a store cannot be opened.

use std::{fmt, io};

use imori_core::record::RecordError;
use imori_store::definitions::DefinitionsError;
use imori_store::folder::FolderError;
use imori_store::journal::OpenError;
use imori_store::recovery::{ReadError, RecoverError};
use imori_store::segment::SegmentOpenError;
use imori_store::settings::FileBytesError;

/// Why a store cannot be opened.
#[derive(Debug)]
pub enum StoreError {
    /// The folder cannot be used.
    Folder(FolderError),
    /// The size of journal files is not possible.
    FileBytes(FileBytesError),
    /// The journal cannot be opened.
    Journal(OpenError),
    /// The segments cannot be opened.
    Segments(SegmentOpenError),
    /// The definitions cannot be opened.
    Definitions(DefinitionsError),
    /// A record verifies and cannot be read: a later release wrote it.
    Record {
        /// Its LSN; 0 for a definition that is no longer in the journal.
        lsn: u64,
        /// The reason.
        error: RecordError,
    },
    /// A thread cannot be started.
    Thread(io::Error),
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreError::Folder(error) => error.fmt(f),
            StoreError::FileBytes(error) => error.fmt(f),
            StoreError::Journal(error) => write!(f, "{error}; `imori verify` shows what is there"),
            StoreError::Segments(error) => write!(f, "{error}; `imori verify` shows what is there"),
            StoreError::Definitions(error) => write!(f, "{error}; `imori verify` shows what is there"),
            StoreError::Record { lsn, error } => {
                write!(f, "record `{lsn}` cannot be read: {error}; `imori store dump` shows it")
            }
            StoreError::Thread(error) => write!(f, "a thread of the store cannot be started: {error}"),
        }
    }
}

impl std::error::Error for StoreError {}

impl From<FolderError> for StoreError {
    fn from(error: FolderError) -> StoreError {
        StoreError::Folder(error)
    }
}

impl From<OpenError> for StoreError {
    fn from(error: OpenError) -> StoreError {
        StoreError::Journal(error)
    }
}

impl From<ReadError<StoreError>> for StoreError {
    fn from(error: ReadError<StoreError>) -> StoreError {
        match error {
            ReadError::Disk(error) => StoreError::Journal(RecoverError::Disk(error).into()),
            ReadError::Taker(error) => error,
        }
    }
}

impl From<SegmentOpenError> for StoreError {
    fn from(error: SegmentOpenError) -> StoreError {
        StoreError::Segments(error)
    }
}

impl From<DefinitionsError> for StoreError {
    fn from(error: DefinitionsError) -> StoreError {
        StoreError::Definitions(error)
    }
}
