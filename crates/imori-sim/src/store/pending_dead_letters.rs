//! Dead letters that wait for room: how many a run has, and bugs planted in their records.

use imori_core::confirm::Lsn;
use imori_core::delivery::{DeliveryCount, RecordRef};
use imori_core::id::DurableQueueId;
use imori_core::queue::Queue;
use imori_core::record::{
    NewRecord, RecordError, RecordKind, count_records, decode_counts, encode_counts, settle_records,
};
use imori_store::segment::{NewPage, PageEntry};

use crate::machine::Shared;
use crate::planted::Bug;

/// For this many decisions a dead letter counts as recently pending.
const MOMENT: u64 = 100;

impl Shared {
    /// Notes whether a changed queue has pending dead letters.
    pub(crate) fn note_pending_dead_letters(&self, queue: &Queue) {
        if queue.pending_dead_letters_len() > 0 {
            self.dead_letters_pended_at.set(Some(self.step.get()));
        }
    }

    /// Whether a dead letter is pending, or was recently.
    pub(crate) fn has_pending_dead_letters(&self) -> bool {
        self.dead_letters_pended_at.get().is_some_and(|at| at + MOMENT > self.step.get())
    }

    /// Counts an end of the broker if dead letters are pending.
    pub(crate) fn note_end_with_pending(&self) {
        let mut pending = 0;
        self.queues.each(|_, queue| pending += queue.pending_dead_letters_len());
        self.ends_with_pending.set(self.ends_with_pending.get() + u64::from(pending > 0));
    }

    /// The records of a cell, with rejections altered by a planted bug.
    pub(crate) fn alter_rejections(&self, records: Vec<NewRecord>) -> Vec<NewRecord> {
        let garble = |record: NewRecord| match self.bug {
            Some(Bug::RejectionUnrecorded) => without_rejections(record).0,
            Some(Bug::PendingDeadLetterSettled) => {
                let (mut records, rejected) = without_rejections(record);
                records.extend(settle_records(&rejected));
                records
            }
            _ => {
                if self.has(Bug::PendingDeadLetterNotCopied) {
                    self.rejected.borrow_mut().extend(rejections(&record));
                }
                vec![record]
            }
        };
        records.into_iter().flat_map(garble).collect()
    }

    /// The pages of a segment, without the entries that a planted bug does not copy.
    pub(crate) fn uncopied(&self, pages: &[NewPage]) -> Vec<NewPage> {
        let rejected = self.rejected.borrow();
        let mut pages = pages.to_vec();
        for page in &mut pages {
            let queue = DurableQueueId(page.owner);
            let is_copied =
                |entry: &PageEntry| !rejected.contains(&RecordRef { queue, lsn: Lsn(entry.lsn.0) });
            match page.entries.iter().any(is_copied) {
                true => page.entries.retain(is_copied),
                // A page cannot be empty, so it goes to a queue that does not exist.
                false => page.owner = u64::MAX,
            }
        }
        pages
    }
}

/// A record without its rejections, and the rejected messages.
pub(crate) fn without_rejections(record: NewRecord) -> (Vec<NewRecord>, Vec<RecordRef>) {
    let rejected = rejections(&record);
    if rejected.is_empty() {
        return (vec![record], rejected);
    }
    let counts = counts(&record.payload).expect("the core wrote it");
    (count_records(&without(counts)), rejected)
}

/// The counts of a recovered record, without those of rejected messages.
pub(crate) fn unread_rejections(payload: &[u8]) -> Result<Vec<u8>, RecordError> {
    Ok(encode_counts(&without(counts(payload)?)))
}

fn rejections(record: &NewRecord) -> Vec<RecordRef> {
    if record.kind != RecordKind::Count {
        return Vec::new();
    }
    let counts = counts(&record.payload).expect("the core wrote it");
    counts.iter().filter(|count| count.is_rejected).map(|count| count.record_ref).collect()
}

fn without(counts: Vec<DeliveryCount>) -> Vec<DeliveryCount> {
    counts.into_iter().filter(|count| !count.is_rejected).collect()
}

fn counts(payload: &[u8]) -> Result<Vec<DeliveryCount>, RecordError> {
    let mut counts = Vec::new();
    decode_counts(payload, &mut |count| counts.push(count))?;
    Ok(counts)
}
