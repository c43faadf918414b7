//! Reads every segment whole, past the page cache, and changes nothing.

use std::fmt;

use crate::disk::Disk;
use crate::limits::SEGMENT_BYTES_MAX;
use crate::seal::StoreId;
use crate::settings::OnDamage;
use crate::whole_file::ReadFrom;

use super::file::{self, FileKind};
use super::open::{self, SegmentOpenError};
use super::page::{self, PageDamage};
use super::report::DamagedSegment;
use super::settings::SegmentSettings;

/// A page of which not all verifies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DamagedPage {
    /// The name of its segment.
    pub name: String,
    /// Whose entries these are.
    pub owner: u64,
    /// What does not verify.
    pub damage: PageDamage,
}

/// What a folder of segments holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SegmentsLook {
    /// Segments that outlive a run.
    pub segment_count: usize,
    /// Pages of which a row verifies.
    pub page_count: usize,
    /// Entries that verify.
    pub entry_count: usize,
    /// Segments with damage in front of their pages.
    pub damaged: Vec<DamagedSegment>,
    /// Pages with damage inside.
    pub pages: Vec<DamagedPage>,
}

impl SegmentsLook {
    /// How many places are damaged.
    #[must_use]
    pub fn damage_count(&self) -> usize {
        self.damaged.len() + self.pages.len()
    }
}

impl fmt::Display for SegmentsLook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SegmentsLook { segment_count, page_count, entry_count, .. } = self;
        write!(f, "{entry_count} entries in {page_count} pages in {segment_count} segments")?;
        for segment in &self.damaged {
            write!(f, "\ndamage in front of `{}`: {} pages are found", segment.name, segment.page_count)?;
            match (segment.has_lost_count, segment.lost.len()) {
                (true, _) => f.write_str(", how many are lost is not known")?,
                (false, lost) => write!(f, ", {lost} are lost")?,
            }
        }
        for DamagedPage { name, owner, damage } in &self.pages {
            let (index, lost) = (damage.page.index(), damage.lost);
            write!(
                f,
                "\ndamage in page {index} of `{name}`, of the queue with id {owner}: {lost} entries are lost"
            )?;
            for (at, range) in damage.lsns.iter().enumerate() {
                write!(f, "{} {range}", if at == 0 { ", among numbers" } else { "," })?;
            }
        }
        Ok(())
    }
}

/// Reads the segments of a store; what is of one run alone, or was never whole, is left out.
pub fn verify<D: Disk>(disk: &D, store: StoreId) -> Result<SegmentsLook, SegmentOpenError> {
    let settings = SegmentSettings::new(store, OnDamage::Quarantine);
    let bytes_max = usize::try_from(SEGMENT_BYTES_MAX).unwrap_or(usize::MAX);
    let mut seen = SegmentsLook::default();
    for name in disk.list()? {
        let Some((number, kind)) = file::parse_name(&name) else { continue };
        if matches!(kind, FileKind::New | FileKind::Transient) {
            continue;
        }
        let bytes = disk.read(&name, ReadFrom::Device, bytes_max)?;
        let looked = open::look_at(&bytes, &settings, number, &name)?;
        seen.segment_count += 1;
        if !looked.is_whole {
            seen.damaged.push(looked.report(name.clone(), &name));
        }
        for row in looked.rows.iter().flatten() {
            let begin = usize::try_from(row.offset).unwrap_or(usize::MAX).min(bytes.len());
            let end = usize::try_from(row.end()).unwrap_or(usize::MAX).min(bytes.len());
            let page = page::decode_lsns(bytes.get(begin..end).unwrap_or_default(), row, settings.seal);
            seen.page_count += 1;
            seen.entry_count += page.entries.len();
            let (owner, name) = (row.facts.owner, name.clone());
            seen.pages.extend(page.damage.map(|damage| DamagedPage { name, owner, damage }));
        }
    }
    Ok(seen)
}
