//! Conversions between the core's and the store's types for pages.

use imori_core::confirm::Lsn;
use imori_core::entries::{PageFacts, PagePlace};
use imori_core::id::DurableQueueId;
use imori_core::record::{Checkpoint, ManifestPlace};
use imori_store::manifest::ManifestMark;
use imori_store::segment::PageRef;

/// Makes the place in the manifest that a checkpoint names.
#[must_use]
pub fn manifest_mark(checkpoint: &Checkpoint) -> ManifestMark {
    let ManifestPlace { generation, end, sum } = checkpoint.manifest;
    ManifestMark { next_segment: checkpoint.next_segment, generation, end, sum }
}

/// Converts the store's facts of a page to the core's.
#[must_use]
pub fn page_facts(facts: &imori_store::segment::PageFacts) -> PageFacts {
    PageFacts {
        queue: DurableQueueId(facts.owner),
        priority: facts.level,
        place: place_of(facts.page),
        count: facts.count,
        first: Lsn(facts.first.0),
        last: Lsn(facts.last.0),
        first_position: facts.first_sequence,
        last_position: facts.last_sequence,
    }
}

pub(super) fn page_ref(place: PagePlace) -> PageRef {
    PageRef::new(place.segment, place.index)
}

pub(super) fn place_of(page: PageRef) -> PagePlace {
    PagePlace { segment: page.segment(), index: page.index() }
}
