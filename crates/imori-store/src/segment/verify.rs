//! Verifies every byte of every segment, past the page cache, and changes nothing.

use std::collections::BTreeSet;
use std::fmt;

use crate::disk::{Disk, ReadFrom};
use crate::limits::{SECTOR_BYTES, SEGMENT_BYTES_MAX};
use crate::seal::StoreId;
use crate::settings::OnDamage;

use super::file::{self, FileKind};
use super::inspect::{bytes_of, inspect_bytes};
use super::open::absent;
use super::open_error::SegmentOpenError;
use super::page;
use super::report::{AbsentSegment, DamagedPage, DamagedSegment};
use super::settings::SegmentSettings;
use crate::manifest::{Manifest, ManifestDamage};

/// The findings of a full verification.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SegmentsInspection {
    /// Number of durable segments.
    pub segment_count: usize,
    /// Number of pages with a row that verifies.
    pub page_count: usize,
    /// Number of unneeded pages that have become holes.
    pub hole_count: usize,
    /// Number of entries that verify.
    pub entry_count: usize,
    /// Segments with a damaged header or table.
    pub damaged: Vec<DamagedSegment>,
    /// Pages with damage inside.
    pub pages: Vec<DamagedPage>,
    /// The damage of the manifest that the last checkpoint names.
    pub manifest: Option<ManifestDamage>,
    /// Missing segments that the last checkpoint needs.
    pub absent: Vec<AbsentSegment>,
}

impl SegmentsInspection {
    /// Number of findings that concern needed data.
    #[must_use]
    pub fn damage_count(&self) -> usize {
        let manifest = usize::from(self.manifest.is_some());
        manifest
            + self.absent.len()
            + self.damaged.len()
            + self.pages.iter().filter(|page| !page.is_gone).count()
    }
}

impl fmt::Display for SegmentsInspection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SegmentsInspection { segment_count, page_count, entry_count, .. } = self;
        write!(f, "{entry_count} entries in {page_count} pages in {segment_count} segments")?;
        if self.hole_count > 0 {
            write!(f, ", the space of {} pages more is given back", self.hole_count)?;
        }
        self.damaged.iter().try_for_each(|segment| write!(f, "\n{segment}"))?;
        self.pages.iter().try_for_each(|page| write!(f, "\n{page}"))?;
        self.manifest.iter().try_for_each(|manifest| write!(f, "\n{manifest}"))?;
        self.absent.iter().try_for_each(|segment| write!(f, "\n{segment}"))
    }
}

/// Verifies all durable segments of a store. Skips incomplete and transient files. Also verifies gone pages, unless
/// they have become holes.
pub fn verify<D: Disk>(
    disk: &D,
    store: StoreId,
    manifest: &Manifest,
) -> Result<SegmentsInspection, SegmentOpenError> {
    let settings = SegmentSettings::new(store, OnDamage::Quarantine);
    let bytes_max = usize::try_from(SEGMENT_BYTES_MAX).unwrap_or(usize::MAX);
    let (mut seen, mut there) = (SegmentsInspection::default(), BTreeSet::new());
    for name in disk.list()? {
        let Some((number, kind)) = file::parse_name(&name) else { continue };
        if matches!(kind, FileKind::New | FileKind::Transient) {
            continue;
        }
        let bytes = disk.read(&name, ReadFrom::Device, bytes_max)?;
        let mut inspection = inspect_bytes(&bytes, &settings, number, &name)?;
        if let Some(listed) = manifest.segment(number) {
            inspection.know(listed);
        }
        seen.segment_count += 1;
        there.insert(number);
        if !inspection.is_whole && !manifest.is_gone(number) {
            seen.damaged.push(inspection.report(&name));
        }
        for row in inspection.rows.iter().flatten() {
            let begin = usize::try_from(row.offset).unwrap_or(usize::MAX).min(bytes.len());
            let end = usize::try_from(row.end()).unwrap_or(usize::MAX).min(bytes.len());
            let index = row.facts.page.index();
            if manifest.has_gone(number, index) && is_hole(&bytes, begin, end) {
                seen.hole_count += 1;
                continue;
            }
            let page = page::decode_lsns(bytes_of(&bytes, row), row, settings.seal);
            seen.page_count += 1;
            seen.entry_count += page.entries.len();
            let (owner, name) = (row.facts.owner, name.clone());
            let is_gone = manifest.is_gone(number) || manifest.has_gone(number, index);
            let damaged = |damage| DamagedPage { name, owner, owner_name: None, is_gone, damage };
            seen.pages.extend(page.damage.map(damaged));
        }
    }
    seen.manifest.clone_from(&manifest.damage);
    seen.absent = absent(manifest, |number| there.contains(&number));
    Ok(seen)
}

/// Whether an unneeded page has become a hole. The extent of the hole depends on pages around it that may have been
/// discarded since.
fn is_hole(bytes: &[u8], begin: usize, end: usize) -> bool {
    let mut sectors = (begin / SECTOR_BYTES * SECTOR_BYTES..end).step_by(SECTOR_BYTES);
    sectors.any(|at| bytes.get(at..at + SECTOR_BYTES).is_some_and(|all| all.iter().all(|byte| *byte == 0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_space_of_a_page_is_given_back_where_a_whole_sector_under_it_is_zeros() {
        for (zeros, page, expected) in [
            (0..0, 600..2000, false),
            (0..2048, 600..2000, true),
            (512..1024, 600..2000, true),
            (1024..1536, 600..2000, true),
            (1536..2048, 600..2000, true),
            (1536..2048, 1540..1550, true),
            (0..512, 600..2000, false),
            (2048..2560, 600..2000, false),
            (600..1023, 600..2000, false),
            (800..1300, 600..2000, false),
            (2560..2700, 2560..2700, false),
            (1024..1536, 1024..1024, false),
        ] {
            let mut bytes = vec![1; 2700];
            bytes[zeros.clone()].fill(0);
            assert_eq!(is_hole(&bytes, page.start, page.end), expected, "{page:?} with {zeros:?}");
        }
    }
}
