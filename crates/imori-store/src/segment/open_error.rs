//! Why segments cannot be opened.

use std::fmt;
use std::io;

use crate::settings::OnDamage;

use super::report::SegmentReport;

/// Why segments cannot be opened.
#[derive(Debug)]
pub enum SegmentOpenError {
    /// The disk returned an error.
    Disk(io::Error),
    /// A file belongs to another store.
    Foreign {
        /// Name of the file.
        name: String,
    },
    /// A file has an unknown version.
    Version {
        /// Name of the file.
        name: String,
        /// Version of the file.
        version: u32,
    },
    /// There is damage or a missing segment, and the settings refuse to open the store in that case. Nothing was
    /// changed.
    Damaged(Box<SegmentReport>),
}

impl SegmentOpenError {
    /// Adds the names of damaged pages' owners, as far as `name` knows them.
    #[must_use]
    pub fn naming_owners(mut self, name: impl Fn(u64) -> Option<String>) -> SegmentOpenError {
        if let SegmentOpenError::Damaged(report) = &mut self {
            report.name_owners(name);
        }
        self
    }
}

impl fmt::Display for SegmentOpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SegmentOpenError::Disk(error) => {
                write!(f, "the segments cannot be opened: {error}; check the disk")
            }
            SegmentOpenError::Foreign { name } => {
                write!(f, "`{name}` belongs to another store; take it out of the folder")
            }
            SegmentOpenError::Version { name, version } => {
                write!(f, "`{name}` has version `{version}`; open it with the release that wrote it")
            }
            SegmentOpenError::Damaged(report) => {
                write!(
                    f,
                    "segments are damaged or missing; restore the whole folder from a copy, or {}\n{report}",
                    OnDamage::TO_GO_ON
                )
            }
        }
    }
}

impl std::error::Error for SegmentOpenError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            SegmentOpenError::Disk(error) => Some(error),
            _ => None,
        }
    }
}

impl From<io::Error> for SegmentOpenError {
    fn from(error: io::Error) -> SegmentOpenError {
        SegmentOpenError::Disk(error)
    }
}
