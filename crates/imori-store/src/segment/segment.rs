//! One segment in memory: which of its pages are needed. Their rows stay on disk.

use std::ops::Range;

use crate::limits::BLOCK_BYTES;
use crate::planted::{Fault, Planted};

use super::file::{self, FileKind};
use super::row::Row;
use crate::manifest::ManifestEntry;

/// The rows of a segment.
#[derive(Debug)]
pub(crate) enum Rows {
    /// All of the table verified, which has this many.
    InTable(u16),
    /// The table is damaged, and these were found; `None` where no row of a page verifies, or the page is gone.
    Found(Vec<Option<Row>>),
}

/// One segment.
#[derive(Debug)]
pub(crate) struct Segment {
    pub(crate) kind: FileKind,
    page_count: u16,
    live: u16,
    /// Number of needed pages when holes were punched last.
    punched_at: Option<u16>,
    /// A bit for each page that is not needed, or lost; nothing where all pages are needed.
    gone: Option<Box<[u64]>>,
    /// The rows of a damaged segment, whose table is of no use.
    rows: Option<Box<[Option<Row>]>>,
}

impl Segment {
    /// A segment with these rows; the pages with the indexes `gone` are not needed.
    pub(crate) fn new(kind: FileKind, rows: Rows, gone: &[u32]) -> Segment {
        let (page_count, rows) = match rows {
            Rows::InTable(count) => (count, None),
            Rows::Found(rows) => {
                (u16::try_from(rows.len()).unwrap_or(u16::MAX), Some(rows.into_boxed_slice()))
            }
        };
        let (punched_at, gone_bits) = (None, None);
        let mut segment = Segment { kind, page_count, live: page_count, punched_at, gone: gone_bits, rows };
        for index in 0..segment.page_count {
            let place = usize::from(index);
            let is_lost =
                segment.rows.as_ref().is_some_and(|rows| rows.get(place).is_none_or(Option::is_none));
            if is_lost {
                segment.discard(u32::from(index));
            }
        }
        gone.iter().for_each(|index| segment.discard(*index));
        segment
    }

    /// Tells whether a page is there and needed.
    pub(crate) fn is_needed(&self, index: u32) -> bool {
        index < u32::from(self.page_count) && !self.is_gone_at(index)
    }

    fn is_gone_at(&self, index: u32) -> bool {
        let word = self.gone.as_ref().and_then(|gone| gone.get(index as usize / 64));
        word.is_some_and(|word| word & (1 << (index % 64)) != 0)
    }

    /// The row of a page, where it is in memory.
    pub(crate) fn row(&self, index: u32) -> Option<Row> {
        self.rows.as_ref()?.get(usize::try_from(index).ok()?).copied().flatten()
    }

    /// Tells whether the rows are in memory, as far as they were found.
    pub(crate) fn has_rows(&self) -> bool {
        self.rows.is_some()
    }

    /// Takes rows that were found by their copies, because the table does not verify.
    pub(crate) fn find_rows(&mut self, rows: Vec<Option<Row>>) {
        self.rows = Some(rows.into_boxed_slice());
    }

    /// Number of pages that were written.
    pub(crate) fn page_count(&self) -> u16 {
        self.page_count
    }

    /// Number of needed pages.
    pub(crate) fn live(&self) -> usize {
        usize::from(self.live)
    }

    /// Marks a page as no longer needed.
    pub(crate) fn discard(&mut self, index: u32) {
        if !self.is_needed(index) {
            return;
        }
        let words = usize::from(self.page_count).div_ceil(64);
        let gone = self.gone.get_or_insert_with(|| vec![0; words].into_boxed_slice());
        if let Some(word) = gone.get_mut(index as usize / 64) {
            *word |= 1 << (index % 64);
        }
        self.live -= 1;
    }

    /// Whether no page is needed any more.
    pub(crate) fn is_gone(&self) -> bool {
        self.live == 0
    }

    /// Tells whether pages went since holes were punched last, and notes that they are punched now.
    pub(crate) fn begin_punching(&mut self) -> bool {
        let is_new = self.live < self.page_count && self.punched_at != Some(self.live);
        // A damaged file stays unchanged, so that an operator can inspect it.
        if !is_new || self.kind == FileKind::Damaged || self.rows.is_some() {
            return false;
        }
        self.punched_at = Some(self.live);
        true
    }

    /// The entry of this segment in the manifest.
    pub(crate) fn manifest(&self, segment: u32) -> ManifestEntry {
        let gone = (0..u32::from(self.page_count)).filter(|index| self.is_gone_at(*index)).collect();
        ManifestEntry { segment, page_count: u32::from(self.page_count), gone }
    }

    /// Bytes of memory behind this value.
    #[cfg(test)]
    pub(crate) fn memory(&self) -> usize {
        let gone = self.gone.as_ref().map_or(0, |gone| size_of_val(&**gone));
        gone + self.rows.as_ref().map_or(0, |rows| size_of_val(&**rows))
    }
}

/// The parts of a file between its needed pages, in whole blocks, some of them empty.
pub(crate) fn unneeded(page_count: u16, needed: &[Row], planted: Planted) -> Vec<Range<u64>> {
    let block = BLOCK_BYTES as u64;
    let is_outward = planted.has(Fault::GiveBackNeighbours);
    let from = |at: u64| if is_outward { at / block * block } else { at.next_multiple_of(block) };
    let mut parts = Vec::new();
    let mut at = file::table_end(usize::from(page_count)) as u64;
    // Behind the last one it is not known here where the file ends.
    for row in needed {
        parts.push(from(at)..row.offset / block * block);
        at = row.end();
    }
    parts.push(from(at)..u64::MAX);
    parts
}
