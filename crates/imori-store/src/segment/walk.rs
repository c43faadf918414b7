//! Every place in a segment at which something stands, for people who look; it judges nothing.

use std::io;

use crate::disk::{Disk, ReadFrom};
use crate::limits::SEGMENT_BYTES_MAX;
use crate::seal::StoreId;
use crate::settings::OnDamage;

use super::file::{self, FileKind};
use super::header::{SegmentHeader, SegmentHeaderError};
use super::look::{bytes_of, look_at};
use super::open_error::SegmentOpenError;
use super::page::{self, EntryPlace, PageDamage};
use super::row::PageFacts;
use super::settings::SegmentSettings;

/// What stands at a place of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SegmentPlace<'a> {
    /// The header, and it does not verify, or is of another version, after which nothing is read.
    Header(SegmentHeaderError),
    /// The header, and it is of another store, whose pages do not verify in this one.
    Foreign,
    /// A page; its entries follow.
    Page(&'a PageFacts),
    /// An entry that verifies.
    Entry(EntryPlace<'a>),
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
    found: &mut dyn FnMut(u64, SegmentPlace<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let bytes_max = usize::try_from(SEGMENT_BYTES_MAX).unwrap_or(usize::MAX);
    let bytes = disk.read(name, ReadFrom::Cache, bytes_max)?;
    let settings = SegmentSettings::new(store, OnDamage::Quarantine);
    let Some((number, _)) = file::parse_name(name) else { return Ok(()) };
    let looked = match look_at(&bytes, &settings, number, name) {
        Ok(looked) => looked,
        Err(SegmentOpenError::Foreign { .. }) => return found(0, SegmentPlace::Foreign),
        Err(SegmentOpenError::Version { version, .. }) => {
            return found(0, SegmentPlace::Header(SegmentHeaderError::Version(version)));
        }
        Err(error) => return Err(io::Error::other(error).into()),
    };
    let header = SegmentHeader::decode(&bytes);
    if let Err(error) = header {
        found(0, SegmentPlace::Header(error))?;
    }
    for (index, row) in (0..).zip(&looked.rows) {
        let Some(row) = row else {
            found(0, SegmentPlace::Lost(index))?;
            continue;
        };
        found(row.offset, SegmentPlace::Page(&row.facts))?;
        let (entries, damage) = page::places(bytes_of(&bytes, row), row, settings.seal);
        for (at, entry) in entries {
            found(row.offset + at as u64, SegmentPlace::Entry(entry))?;
        }
        if let Some(damage) = &damage {
            found(row.offset, SegmentPlace::Damage(damage))?;
        }
    }
    Ok(())
}
