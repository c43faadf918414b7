//! Reads every segment whole, past the page cache, and changes nothing.

use std::fmt;

use crate::disk::Disk;
use crate::limits::SEGMENT_BYTES_MAX;
use crate::seal::StoreId;
use crate::settings::OnDamage;
use crate::whole_file::ReadFrom;

use super::census::Census;
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
    /// What that is called, if whoever looks knows it.
    pub owner_name: Option<String>,
    /// Nobody needs it any more.
    pub is_gone: bool,
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
    /// How many places are damaged that somebody needs.
    #[must_use]
    pub fn damage_count(&self) -> usize {
        self.damaged.len() + self.pages.iter().filter(|page| !page.is_gone).count()
    }

    /// Notes which pages nobody needs by the last checkpoint; a segment of which it lists none is not damaged.
    pub fn without_gone(mut self, census: &Census) -> SegmentsLook {
        for page in &mut self.pages {
            let (segment, index) = (page.damage.page.segment(), page.damage.page.index());
            let listed = census.segment(segment).is_some_and(|listed| listed.gone.contains(&index));
            page.is_gone = listed || census.is_gone(segment);
        }
        self.damaged.retain(|segment| {
            let number = file::parse_name(&segment.name).map(|(number, _)| number);
            number.is_none_or(|number| !census.is_gone(number))
        });
        self
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
        for DamagedPage { name, owner, owner_name, is_gone, damage } in &self.pages {
            let (index, lost) = (damage.page.index(), damage.lost);
            write!(f, "\ndamage in page {index} of `{name}`, of the queue ")?;
            match owner_name {
                Some(owner_name) => write!(f, "`{owner_name}`")?,
                None => write!(f, "with id {owner}")?,
            }
            if *is_gone {
                f.write_str(", which nobody needs any more")?;
                continue;
            }
            write!(f, ": {lost} entries are lost")?;
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
            let (owner_name, is_gone) = (None, false);
            let damaged = |damage| DamagedPage { name, owner, owner_name, is_gone, damage };
            seen.pages.extend(page.damage.map(damaged));
        }
    }
    Ok(seen)
}
