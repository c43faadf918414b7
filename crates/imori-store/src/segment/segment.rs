//! What is held in memory of one segment: where its pages are, and which are still needed.

use super::census::SegmentCensus;
use super::file::FileKind;
use super::row::{PageFacts, Row};

/// One segment.
#[derive(Debug)]
pub(crate) struct Segment {
    pub(crate) kind: FileKind,
    pages: Vec<Option<Row>>,
    live: usize,
}

impl Segment {
    /// A segment of these pages; those that are gone or lost are none.
    pub(crate) fn new(kind: FileKind, pages: Vec<Option<Row>>) -> Segment {
        let live = pages.iter().flatten().count();
        Segment { kind, pages, live }
    }

    /// Where the page of this index is, if it is still needed.
    pub(crate) fn row(&self, index: u32) -> Option<&Row> {
        self.pages.get(usize::try_from(index).ok()?)?.as_ref()
    }

    /// Tells that nobody needs the page any more.
    pub(crate) fn discard(&mut self, index: u32) {
        let page = usize::try_from(index).ok().and_then(|index| self.pages.get_mut(index));
        self.live -= usize::from(page.and_then(Option::take).is_some());
    }

    /// Tells whether nobody needs any of its pages.
    pub(crate) fn is_gone(&self) -> bool {
        self.live == 0
    }

    /// The facts of all pages that are needed.
    pub(crate) fn facts(&self) -> impl Iterator<Item = PageFacts> {
        self.pages.iter().flatten().map(|row| row.facts)
    }

    /// What a checkpoint remembers of it.
    pub(crate) fn census(&self, segment: u32) -> SegmentCensus {
        let gone = (0..).zip(&self.pages).filter(|(_, row)| row.is_none()).map(|(index, _)| index).collect();
        let page_count = u32::try_from(self.pages.len()).expect("the limit of pages fits");
        SegmentCensus { segment, page_count, gone }
    }
}
