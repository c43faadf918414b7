//! Records, the batches in which they are written, and the files that hold those, as bytes.
//!
//! Encoding and decoding only: who reads a file and judges what stands in it is `recovery/`, who writes one is
//! `journal/`.

pub(crate) mod journal_file;
mod file_header;
pub mod batch;
pub mod record;

pub use self::file_header::{FileHeader, HeaderError, VERSION};
pub use self::journal_file::JournalFile;
pub use self::record::{Record, RecordError, RecordType, RecordView};
