//! Every place in a segment at which something stands, for people who look; it judges nothing.

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

/// What stands at a place of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SegmentPiece<'a> {
    /// The header, and it does not verify, or is of another version, after which nothing is read.
    Header(SegmentHeaderError),
    /// The header, and it is of another store, whose pages do not verify in this one.
    Foreign,
    /// A page; its entries follow.
    Page(&'a PageFacts),
    /// An entry that verifies.
    Entry(EntryLocation<'a>),
    /// What of the page before does not verify.
    Damage(&'a PageDamage),
    /// Neither row of the page of this index verifies, so that nobody knows where it is.
    Lost(u32),
}

/// The names of the segments that outlive a run, also of those that were set aside.
///
/// # Errors
/// What the operating system says.
pub fn files<D: Disk>(disk: &D) -> io::Result<Vec<String>> {
    let kind = |name: &str| file::parse_name(name).map(|(_, kind)| kind);
    let mut names = disk.list()?;
    names.retain(|name| matches!(kind(name), Some(FileKind::Durable | FileKind::Damaged)));
    Ok(names)
}

/// Reads a segment and tells each place of it, with its offset in the file; an error of `found` ends it.
///
/// # Errors
/// That the file cannot be read, or what `found` says.
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
