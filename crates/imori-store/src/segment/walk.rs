//! Visits every piece of a segment for an operator, without judging it.

use std::io;

use crate::disk::{Disk, ReadFrom};
use crate::limits::SEGMENT_BYTES_MAX;
use crate::seal::StoreId;
use crate::settings::OnDamage;

use super::file::{self, FileKind};
use super::header::{SegmentHeader, SegmentHeaderError};
use super::inspect::{bytes_of, inspect_bytes};
use super::open_error::SegmentOpenError;
use super::page::{self, EntryLocation, PageDamage};
use super::row::PageFacts;
use super::settings::SegmentSettings;

/// One piece of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SegmentPiece<'a> {
    /// A header that does not verify or has another version; nothing after it is read.
    Header(SegmentHeaderError),
    /// A header of another store; its pages are not read.
    Foreign,
    /// A page; its entries follow.
    Page(&'a PageFacts),
    /// An entry that verifies.
    Entry(EntryLocation<'a>),
    /// The damage of the preceding page.
    Damage(&'a PageDamage),
    /// No row of the page with this index verifies, so its location is unknown.
    Lost(u32),
}

/// The names of all durable segments, including those set aside.
///
/// # Errors
///
/// Any error of the operating system.
pub fn files<D: Disk>(disk: &D) -> io::Result<Vec<String>> {
    let kind = |name: &str| file::parse_name(name).map(|(_, kind)| kind);
    let mut names = disk.list()?;
    names.retain(|name| matches!(kind(name), Some(FileKind::Durable | FileKind::Damaged)));
    Ok(names)
}

/// Reads a segment and passes each piece with its offset to `found`, until that returns an error.
///
/// # Errors
///
/// The file cannot be read, or the error of `found`.
pub fn walk<D: Disk, E: From<io::Error>>(
    disk: &D,
    store: StoreId,
    name: &str,
    found: &mut dyn FnMut(u64, SegmentPiece<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let bytes_max = usize::try_from(SEGMENT_BYTES_MAX).unwrap_or(usize::MAX);
    let bytes = disk.read(name, ReadFrom::Cache, bytes_max)?;
    let settings = SegmentSettings::new(store, OnDamage::Quarantine);
    let Some((number, _)) = file::parse_name(name) else { return Ok(()) };
    let inspection = match inspect_bytes(&bytes, &settings, number, name) {
        Ok(inspection) => inspection,
        Err(SegmentOpenError::Foreign { .. }) => return found(0, SegmentPiece::Foreign),
        Err(SegmentOpenError::Version { version, .. }) => {
            return found(0, SegmentPiece::Header(SegmentHeaderError::Version(version)));
        }
        Err(error) => return Err(io::Error::other(error).into()),
    };
    let header = SegmentHeader::decode(&bytes);
    if let Err(error) = header {
        found(0, SegmentPiece::Header(error))?;
    }
    for (index, row) in (0..).zip(&inspection.rows) {
        let Some(row) = row else {
            found(0, SegmentPiece::Lost(index))?;
            continue;
        };
        found(row.offset, SegmentPiece::Page(&row.facts))?;
        let (entries, damage) = page::places(bytes_of(&bytes, row), row, settings.seal);
        for (at, entry) in entries {
            found(row.offset + at as u64, SegmentPiece::Entry(entry))?;
        }
        if let Some(damage) = &damage {
            found(row.offset, SegmentPiece::Damage(damage))?;
        }
    }
    Ok(())
}
