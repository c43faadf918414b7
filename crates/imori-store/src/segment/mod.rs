//! Segments: immutable files of pages, each page the entries of one queue at one priority.
//!
//! What is still unsettled when a journal file is to be used again goes here, and so does a queue that
//! is longer than its memory. A segment is written whole under a temporary name, synced and renamed; it
//! goes when nobody needs a page of it. What an entry says is not interpreted.

mod segments;
mod verify;
mod walk;
mod open;
mod tables;
mod look;
mod open_error;
mod report;
mod segment;
mod census;
mod file;
mod page;
mod row;
mod header;
mod settings;
#[cfg(test)]
mod crash;
#[cfg(test)]
mod damage;

pub use self::census::{Census, SegmentCensus};
pub use self::file::Durability;
pub use self::header::{SegmentHeader, SegmentHeaderError};
pub use self::open_error::SegmentOpenError;
pub use self::page::{EntryPlace, NewPage, Page, PageDamage, PageEntry, decode, encode, entry_bytes};
pub use self::report::{AbsentSegment, DamagedPage, DamagedSegment, SegmentReport};
pub use self::row::{PageFacts, PageRef, Place, ROW_BYTES, Row};
pub use self::segments::{PageError, Segments, Writing};
pub use self::settings::SegmentSettings;
pub use self::tables::Tables;
pub use self::verify::{SegmentsLook, verify};
pub use self::walk::{SegmentPlace, files, walk};
