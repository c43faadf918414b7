//! Translations between the core's and the store's facts about pages.

use imori_core::confirm::Lsn;
use imori_core::entries::{PageFacts, PagePlace};
use imori_core::id::DurableQueueId;
use imori_core::record::Checkpoint;
use imori_store::segment::{Manifest, ManifestEntry, PageRef};

/// Makes the manifest by which segments are opened from a checkpoint.
#[must_use]
pub fn manifest_of(checkpoint: &Checkpoint) -> Manifest {
    let segments = checkpoint.segments.iter().map(|state| ManifestEntry {
        segment: state.segment,
        page_count: state.page_count,
        gone: state.gone.clone(),
    });
    Manifest { next_segment: checkpoint.next_segment, segments: segments.collect() }
}

/// Makes the core's facts of a page from the store's.
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
