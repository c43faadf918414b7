//! Segments: immutable files of pages, each with entries of one queue and one priority.
//!
//! Entries move here if they are unsettled when their journal file is to be reused, or if a queue outgrows its
//! memory. A segment is written under a temporary name, synced and renamed, and removed once no page is needed.
//! Entries are not interpreted.

mod reader;
mod segments;
mod verify;
mod walk;
mod open;
mod tables;
mod inspect;
mod open_error;
mod report;
mod segment;
mod file;
mod page;
mod row;
mod header;
mod settings;
#[cfg(test)]
mod crash;
#[cfg(test)]
mod damage;

pub use self::file::Durability;
pub use self::header::{SegmentHeader, SegmentHeaderError};
pub use self::open_error::SegmentOpenError;
pub use self::page::{EntryLocation, NewPage, Page, PageDamage, PageEntry, decode, encode, entry_bytes};
pub use self::reader::PageError;
pub use self::report::{AbsentSegment, DamagedPage, DamagedSegment, SegmentReport};
pub use self::row::{PageFacts, PageRef, PageTimes, ROW_BYTES, Row, RowPlacement, SubjectDigest};
pub use self::segments::{SegmentWriter, Segments};
pub use self::settings::SegmentSettings;
pub use self::tables::Tables;
pub use self::verify::{SegmentsInspection, verify};
pub use self::walk::{SegmentPiece, files, walk};
