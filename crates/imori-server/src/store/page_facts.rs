//! Conversions between the core's and the store's types for pages.

use imori_core::confirm::Lsn;
use imori_core::entries::{PageFacts, PagePlace};
use imori_core::id::DurableQueueId;
use imori_core::record::Checkpoint;
use imori_store::segment::{Manifest, ManifestEntry, PageRef};

/// Converts a checkpoint to the manifest that segments are opened by.
#[must_use]
pub fn manifest_of(checkpoint: &Checkpoint) -> Manifest {
    let segments = checkpoint.segments.iter().map(|state| ManifestEntry {
        segment: state.segment,
        page_count: state.page_count,
        gone: state.gone.clone(),
    });
    Manifest { next_segment: checkpoint.next_segment, segments: segments.collect() }
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
