//! Restoring a queue after a restart: its pages, its messages in memory, and its messages in the journal.

use crate::confirm::Lsn;
use crate::delivery::{AnnotatedMessage, DeliveryCount, EarlierDeliveries};
use crate::entries::{Entry, Gathered, InJournal, PageFacts, PagePart, Part, Ranges, Run, restored_position};
use crate::limits::PAGE_BYTES_GOAL;
use crate::queue::Queue;

/// A page that was found at the start, with the settlements since it was written.
#[derive(Debug)]
pub(crate) struct FoundPage {
    pub(crate) facts: PageFacts,
    pub(crate) live: u32,
    pub(crate) settled: Ranges,
    pub(crate) is_doubtful: bool,
}

/// A part of a queue's messages after a restart, in order.
#[derive(Debug)]
pub(crate) enum RestoredPart {
    /// On disk.
    Page(FoundPage),
    /// In memory.
    Entry(Entry),
    /// Messages that only the journal has, each in a record of its own.
    InJournal(InJournal),
}

impl Queue {
    /// Restores the messages that were ready in a priority before a restart, in their order.
    ///
    /// Returns the sequence numbers of messages that failed too often; they are unsettled until the caller
    /// releases them. Pages in the journal take about `page_bytes` of memory. Messages with records below
    /// `doubtful_below` may have been delivered.
    pub(crate) fn restore(
        &mut self,
        priority: u8,
        found: Vec<RestoredPart>,
        (page_bytes, doubtful_below): (usize, Lsn),
    ) -> Vec<u64> {
        let mut too_often = Vec::new();
        let mut run = Run::default();
        let mut gathered = Gathered::default();
        let (mut position, ends) = (0, ends(&found));
        for (found, end) in found.into_iter().zip(ends) {
            let goes_on = match &found {
                RestoredPart::InJournal(message) => gathered.takes(message, page_bytes, doubtful_below),
                RestoredPart::Page(_) | RestoredPart::Entry(_) => false,
            };
            if !goes_on {
                self.restore_gathered(priority, &mut gathered, doubtful_below);
            }
            match found {
                RestoredPart::InJournal(message) => {
                    self.ready.restore(priority, Part::Memory(std::mem::take(&mut run)));
                    position = gathered.push(message, position, end);
                }
                RestoredPart::Page(FoundPage { facts, live, settled, is_doubtful }) => {
                    let id = self.pages.restore(&facts, live, settled, is_doubtful);
                    position = position.max(facts.last_position);
                    if live == 0 {
                        self.pages.forget(id);
                        continue;
                    }
                    let start = self.next_sequence;
                    if let Some(page) = self.pages.get_mut(id) {
                        page.first_sequence = Some(start);
                        page.priority = priority;
                    }
                    self.next_sequence += u64::from(facts.count);
                    self.ready.restore(priority, Part::Memory(std::mem::take(&mut run)));
                    let memory = PAGE_BYTES_GOAL;
                    let last = self.next_sequence - 1;
                    let (body_bytes, is_asked) = (0, false);
                    let part =
                        PagePart { id, first: None, len: live, start, last, memory, body_bytes, is_asked };
                    self.ready.restore(priority, Part::Page(part));
                    self.ready.pack(&mut self.pages);
                }
                RestoredPart::Entry(mut entry) => {
                    let sequence = self.next_sequence;
                    self.next_sequence += 1;
                    entry.envelope.sequence = sequence;
                    position = restored_position(entry.envelope.lsn, position, end);
                    entry.position = position;
                    self.gauge.add(Entry::CHARGE);
                    if self.death_reason(&entry.envelope).is_none() {
                        run.push_back(entry);
                    } else {
                        self.give_out(entry);
                        too_often.push(sequence);
                    }
                }
            }
        }
        self.restore_gathered(priority, &mut gathered, doubtful_below);
        self.ready.restore(priority, Part::Memory(run));
        if let Some(level) = self.ready.lane(priority) {
            level.position = level.position.max(position);
        }
        self.charge_room();
        self.renew_features();
        too_often
    }

    /// Restores the delivery counts of messages that are in pages.
    pub(crate) fn restore_counts(&mut self, counts: impl Iterator<Item = DeliveryCount>) {
        let earlier =
            |count: DeliveryCount| (count.record_ref.lsn, EarlierDeliveries { count, annotations: None });
        self.counts.extend(counts.map(earlier));
        self.renew_features();
    }

    /// Restores the annotations of messages, for those with a delivery count.
    pub(crate) fn restore_annotations(&mut self, messages: impl Iterator<Item = AnnotatedMessage>) {
        for AnnotatedMessage { record_ref, annotations } in messages {
            if let Some(earlier) = self.counts.get_mut(&record_ref.lsn) {
                earlier.annotations = Some(annotations);
            }
        }
    }
}

/// For each part of the queue, the position at which the next page behind it begins.
fn ends(found: &[RestoredPart]) -> Vec<u64> {
    let mut end = u64::MAX;
    let backwards = found.iter().rev().map(|found| {
        let behind = end;
        if let RestoredPart::Page(page) = found {
            end = page.facts.first_position;
        }
        behind
    });
    let mut ends: Vec<u64> = backwards.collect();
    ends.reverse();
    ends
}
