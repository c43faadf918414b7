//! One segment in memory: the locations of its pages, and which are still needed.

use std::ops::Range;

use crate::limits::BLOCK_BYTES;
use crate::planted::{Fault, Planted};

use super::file::{self, FileKind};
use super::row::{PageFacts, Row};
use crate::manifest::ManifestEntry;

/// One segment.
#[derive(Debug)]
pub(crate) struct Segment {
    pub(crate) kind: FileKind,
    pages: Vec<Option<Row>>,
    live: usize,
    /// Number of needed pages when holes were last punched.
    punched_at: Option<usize>,
}

impl Segment {
    /// A segment of these pages; a gone or lost page is `None`.
    pub(crate) fn new(kind: FileKind, pages: Vec<Option<Row>>) -> Segment {
        let live = pages.iter().flatten().count();
        Segment { kind, pages, live, punched_at: None }
    }

    /// The row of a page, if the page is still needed.
    pub(crate) fn row(&self, index: u32) -> Option<&Row> {
        self.pages.get(usize::try_from(index).ok()?)?.as_ref()
    }

    /// Marks a page as no longer needed.
    pub(crate) fn discard(&mut self, index: u32) {
        let page = usize::try_from(index).ok().and_then(|index| self.pages.get_mut(index));
        self.live -= usize::from(page.and_then(Option::take).is_some());
    }

    /// Whether no page is needed any more.
    pub(crate) fn is_gone(&self) -> bool {
        self.live == 0
    }

    /// Unneeded parts of the file in whole blocks, some of them empty. Empty if holes were already punched there.
    pub(crate) fn unneeded(&mut self, planted: Planted) -> Vec<Range<u64>> {
        let is_new = self.live < self.pages.len() && self.punched_at != Some(self.live);
        // Damaged segments stay unchanged, so that an operator can inspect them.
        if !is_new || self.kind == FileKind::Damaged {
            return Vec::new();
        }
        self.punched_at = Some(self.live);
        let block = BLOCK_BYTES as u64;
        let is_outward = planted.has(Fault::GiveBackNeighbours);
        let from = |at: u64| if is_outward { at / block * block } else { at.next_multiple_of(block) };
        let mut parts = Vec::new();
        let mut at = file::table_end(self.pages.len()) as u64;
        // The end of the file is not known here.
        for row in self.pages.iter().flatten() {
            parts.push(from(at)..row.offset / block * block);
            at = row.end();
        }
        parts.push(from(at)..u64::MAX);
        parts
    }

    /// The facts of all needed pages.
    pub(crate) fn facts(&self) -> impl Iterator<Item = PageFacts> {
        self.pages.iter().flatten().map(|row| row.facts)
    }

    /// The entry of this segment in the manifest.
    pub(crate) fn manifest(&self, segment: u32) -> ManifestEntry {
        let gone = (0..).zip(&self.pages).filter(|(_, row)| row.is_none()).map(|(index, _)| index).collect();
        let page_count = u32::try_from(self.pages.len()).expect("the limit of pages fits");
        ManifestEntry { segment, page_count, gone }
    }
}
