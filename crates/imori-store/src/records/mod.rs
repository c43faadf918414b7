//! Encoding of records, batches and journal files.
//!
//! Encoding and decoding only: `recovery/` reads and judges files, `journal/` writes them.

pub(crate) mod journal_file;
mod file_header;
pub mod batch;
pub mod record;

pub use self::file_header::{FileHeader, HeaderError, VERSION};
pub use self::journal_file::JournalFile;
pub use self::record::{Record, RecordError, RecordType, RecordView};
