//! The highest record of which a page is durable: so was that record, whatever the journal shows of it.

use crate::disk::Disk;
use crate::lsn::Lsn;

use super::file::{self, FileKind};
use super::open::{SegmentOpenError, look};
use super::settings::SegmentSettings;

/// Looks at the tables of all durable segments, also of those that are gone; changes nothing.
///
/// # Errors
/// [`SegmentOpenError`], but for damage: what verifies is enough.
pub fn last_record<D: Disk>(disk: &D, settings: &SegmentSettings) -> Result<Option<Lsn>, SegmentOpenError> {
    let mut last = None;
    for name in disk.list()? {
        let Some((number, kind)) = file::parse_name(&name) else { continue };
        if matches!(kind, FileKind::New | FileKind::Transient) {
            continue;
        }
        let looked = look(disk, settings, number, &name)?;
        last = last.max(looked.rows.iter().flatten().map(|row| row.facts.last).max());
    }
    Ok(last)
}
