//! Reads every segment whole, past the page cache, and changes nothing.

use std::collections::BTreeSet;
use std::fmt;

use crate::disk::{Disk, ReadFrom};
use crate::limits::{SECTOR_BYTES, SEGMENT_BYTES_MAX};
use crate::seal::StoreId;
use crate::settings::OnDamage;

use super::census::Census;
use super::file::{self, FileKind};
use super::look::{bytes_of, look_at};
use super::open::absent;
use super::open_error::SegmentOpenError;
use super::page;
use super::report::{AbsentSegment, DamagedPage, DamagedSegment};
use super::settings::SegmentSettings;

/// What a folder of segments holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SegmentsLook {
    /// Segments that outlive a run.
    pub segment_count: usize,
    /// Pages of which a row verifies.
    pub page_count: usize,
    /// Pages that nobody needs any more, whose space was given back.
    pub given_back_count: usize,
    /// Entries that verify.
    pub entry_count: usize,
    /// Segments with damage in front of their pages.
    pub damaged: Vec<DamagedSegment>,
    /// Pages with damage inside.
    pub pages: Vec<DamagedPage>,
    /// Segments that are not there and that the last checkpoint needs.
    pub absent: Vec<AbsentSegment>,
}

impl SegmentsLook {
    /// How many places are damaged that somebody needs.
    #[must_use]
    pub fn damage_count(&self) -> usize {
        self.absent.len() + self.damaged.len() + self.pages.iter().filter(|page| !page.is_gone).count()
    }
}

impl fmt::Display for SegmentsLook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SegmentsLook { segment_count, page_count, entry_count, .. } = self;
        write!(f, "{entry_count} entries in {page_count} pages in {segment_count} segments")?;
        if self.given_back_count > 0 {
            write!(f, ", the space of {} pages more is given back", self.given_back_count)?;
        }
        self.damaged.iter().try_for_each(|segment| write!(f, "\n{segment}"))?;
        self.pages.iter().try_for_each(|page| write!(f, "\n{page}"))?;
        self.absent.iter().try_for_each(|segment| write!(f, "\n{segment}"))
    }
}

/// Reads the segments of a store; what is of one run alone, or was never whole, is left out. Pages that are gone by
/// the census are looked at too, but for those whose space was given back.
pub fn verify<D: Disk>(disk: &D, store: StoreId, census: &Census) -> Result<SegmentsLook, SegmentOpenError> {
    let settings = SegmentSettings::new(store, OnDamage::Quarantine);
    let bytes_max = usize::try_from(SEGMENT_BYTES_MAX).unwrap_or(usize::MAX);
    let (mut seen, mut there) = (SegmentsLook::default(), BTreeSet::new());
    for name in disk.list()? {
        let Some((number, kind)) = file::parse_name(&name) else { continue };
        if matches!(kind, FileKind::New | FileKind::Transient) {
            continue;
        }
        let bytes = disk.read(&name, ReadFrom::Device, bytes_max)?;
        let mut looked = look_at(&bytes, &settings, number, &name)?;
        if let Some(listed) = census.segment(number) {
            looked.know(listed);
        }
        seen.segment_count += 1;
        there.insert(number);
        if !looked.is_whole && !census.is_gone(number) {
            seen.damaged.push(looked.report(&name));
        }
        for row in looked.rows.iter().flatten() {
            let begin = usize::try_from(row.offset).unwrap_or(usize::MAX).min(bytes.len());
            let end = usize::try_from(row.end()).unwrap_or(usize::MAX).min(bytes.len());
            let index = row.facts.page.index();
            if census.has_gone(number, index) && is_given_back(&bytes, begin, end) {
                seen.given_back_count += 1;
                continue;
            }
            let page = page::decode_lsns(bytes_of(&bytes, row), row, settings.seal);
            seen.page_count += 1;
            seen.entry_count += page.entries.len();
            let (owner, name) = (row.facts.owner, name.clone());
            let is_gone = census.is_gone(number) || census.has_gone(number, index);
            let damaged = |damage| DamagedPage { name, owner, owner_name: None, is_gone, damage };
            seen.pages.extend(page.damage.map(damaged));
        }
    }
    seen.absent = absent(census, |number| there.contains(&number));
    Ok(seen)
}

/// Tells whether there are zeros under a page that nobody needs: which of it was given back depends on the pages
/// around it, which may have gone since.
fn is_given_back(bytes: &[u8], begin: usize, end: usize) -> bool {
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
            assert_eq!(is_given_back(&bytes, page.start, page.end), expected, "{page:?} with {zeros:?}");
        }
    }
}
