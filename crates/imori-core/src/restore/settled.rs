//! What queues no longer have, by the records of their messages.

use std::collections::BTreeMap;

use foldhash::fast::FixedState;
use hashbrown::HashSet;

use crate::delivery::{PurgedRecords, RecordRef};
use crate::entries::{PageFacts, Ranges};
use crate::id::DurableQueueId;

/// The messages that were settled one by one, and ranges of those that were purged.
#[derive(Debug, Default)]
pub(super) struct Settled {
    records: HashSet<RecordRef, FixedState>,
    purged: BTreeMap<DurableQueueId, Ranges>,
}

impl Settled {
    pub(super) fn settle(&mut self, record_ref: RecordRef) {
        self.records.insert(record_ref);
    }

    pub(super) fn purge(&mut self, purged: &[PurgedRecords]) {
        let Some(first) = purged.first() else { return };
        let known = self.purged.entry(first.queue).or_default();
        let ranges = purged.iter().map(|purged| (purged.first.0, purged.last.0));
        *known = Ranges::merged(known.iter().chain(ranges).collect());
    }

    /// Whether a queue no longer has the message with this record.
    pub(super) fn has(&self, record_ref: &RecordRef) -> bool {
        let RecordRef { queue, lsn } = record_ref;
        self.records.contains(record_ref)
            || self.purged.get(queue).is_some_and(|ranges| ranges.contains(lsn.0))
    }

    /// Whether a page was purged as a whole.
    pub(super) fn covers(&self, page: &PageFacts) -> bool {
        self.purged.get(&page.queue).is_some_and(|ranges| ranges.covers(page.first.0, page.last.0))
    }

    /// Whether some messages of a page may have been purged.
    pub(super) fn touches(&self, page: &PageFacts) -> bool {
        self.purged.get(&page.queue).is_some_and(|ranges| ranges.touches(page.first.0, page.last.0))
    }

    /// The messages that were settled one by one.
    pub(super) fn each(&self) -> impl Iterator<Item = RecordRef> {
        self.records.iter().copied()
    }
}

impl FromIterator<RecordRef> for Settled {
    fn from_iter<I: IntoIterator<Item = RecordRef>>(records: I) -> Settled {
        Settled { records: records.into_iter().collect(), purged: BTreeMap::new() }
    }
}
