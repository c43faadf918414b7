//! Restoring a stream after a restart.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::confirm::Lsn;
use crate::entries::{Entry, PagePart, Part, Ranges, Run};
use crate::limits::PAGE_BYTES_GOAL;
use crate::message::Schedule;
use crate::paging::FoundPage;
use crate::queue::Queue;
use crate::record::{ConsumerState, StreamEntry};
use crate::stream::{Pending, Scheduled};
use crate::time::Time;

/// What a start found of a stream besides its messages in the journal.
#[derive(Debug, Default)]
pub(crate) struct FoundStream {
    /// The facts of the messages in pages.
    pub(crate) in_pages: Vec<StreamEntry>,
    /// The lowest number that the next message may get.
    pub(crate) next: u64,
    /// The record that has that number, and when the stream was made.
    pub(crate) mark: Option<(Lsn, Time)>,
    /// The consumers, each with the record of its state, and the messages that were acknowledged since.
    pub(crate) consumers: Vec<(ConsumerState, Lsn, Vec<u64>)>,
    /// The schedules of messages, each with the time of its last publish and its record.
    pub(crate) schedules: BTreeMap<u64, (Arc<Schedule>, Time, Lsn)>,
    /// What left with messages of the journal.
    pub(crate) gone: GoneMessages,
}

/// The messages of a stream that left with the arrival of others, as the records of these tell.
#[derive(Debug, Default)]
pub(crate) struct GoneMessages {
    /// Ranges of sequence numbers, as they are found.
    pub(crate) ranges: Vec<(u64, u64)>,
    /// These ranges as a set.
    merged: Ranges,
    /// All messages below this one.
    pub(crate) below: u64,
    /// By subject, the messages below this one.
    pub(crate) below_of: BTreeMap<Box<[u8]>, u64>,
}

impl GoneMessages {
    /// Notes that the messages of a subject below this one are gone.
    pub(crate) fn note_subject(&mut self, subject: &[u8], below: u64) {
        let known = self.below_of.entry(Box::from(subject)).or_default();
        *known = below.max(*known);
    }

    /// Merges the ranges, once all are known.
    fn merge(&mut self) {
        self.merged = Ranges::merged(std::mem::take(&mut self.ranges));
    }

    /// Whether a message is among them.
    fn has(&self, entry: &Entry) -> bool {
        let sequence = entry.envelope.sequence;
        let below_of = self.below_of.get(entry.envelope.address.subject.as_bytes());
        sequence < self.below
            || below_of.is_some_and(|below| sequence < *below)
            || self.merged.contains(sequence)
    }
}

impl Queue {
    /// Restores the messages of a stream: its pages in order, and those that the journal has, by rising number.
    pub(crate) fn restore_stream(
        &mut self,
        pages: Vec<FoundPage>,
        entries: Vec<Entry>,
        mut found: FoundStream,
        now: Time,
    ) {
        found.gone.merge();
        for fact in &found.in_pages {
            self.index_found(fact);
        }
        let in_pages = found.in_pages.iter().map(|fact| fact.sequence);
        let mut last = in_pages.chain(entries.iter().map(|entry| entry.envelope.sequence)).max().unwrap_or(0);
        // Before the pages: a page's range may contain the number of a message that the page does not have.
        let (gone, entries): (Vec<Entry>, Vec<Entry>) =
            entries.into_iter().partition(|entry| found.gone.has(entry));
        gone.iter().for_each(|entry| self.release_record(entry.envelope.lsn));
        let mut entries = entries.into_iter().peekable();
        for FoundPage { facts, live, settled, .. } in pages {
            let mut run = Run::default();
            while let Some(entry) = entries.next_if(|entry| entry.envelope.sequence < facts.first_position) {
                run.push_back(self.restored(entry));
            }
            self.ready.restore(0, Part::Memory(run));
            let id = self.pages.restore(&facts, live, settled.clone(), false);
            for (first, last) in settled.iter() {
                (first..=last).for_each(|sequence| self.pages.note_hole(id, sequence));
            }
            last = last.max(facts.last_position);
            let part = PagePart {
                id,
                first: None,
                len: live,
                start: facts.first_position,
                last: facts.last_position,
                memory: PAGE_BYTES_GOAL,
                body_bytes: 0,
                is_asked: false,
            };
            self.ready.restore(0, Part::Page(part));
            self.ready.pack(&mut self.pages);
        }
        let mut run = Run::default();
        for entry in entries {
            run.push_back(self.restored(entry));
        }
        self.ready.restore(0, Part::Memory(run));
        let first = self.stream.as_ref().map_or(1, |stream| stream.settings.first_sequence.max(1));
        self.next_sequence = (last + 1).max(found.next).max(first);
        self.ready_end = self.next_sequence;
        if let Some(stream) = &mut self.stream {
            stream.visible_end = self.next_sequence;
            if let Some((lsn, created)) = found.mark {
                (stream.marked, stream.created) = (lsn, created);
            }
        }
        self.forget_gone(&found.gone);
        if let Some(stream) = &mut self.stream {
            let there = found.schedules.into_iter().filter(|(sequence, _)| stream.index.contains(*sequence));
            for (sequence, (schedule, last, recorded)) in there {
                let due = schedule.times.next(last, now);
                stream.roles.schedule(sequence, Scheduled { schedule, last, due, recorded });
            }
        }
        for (state, lsn, acked) in found.consumers {
            self.restore_consumer(state, lsn, &acked, now);
        }
        self.renew_features();
    }

    /// Removes from the pages the messages that left with others.
    fn forget_gone(&mut self, gone: &GoneMessages) {
        self.forget_before(gone.below, None);
        for (subject, below) in &gone.below_of {
            self.forget_before(*below, Some(subject));
        }
        for (first, last) in gone.merged.iter() {
            let mut next = first;
            while let Some(sequence) = self.stream.as_ref().and_then(|stream| stream.index.next_from(next)) {
                if sequence > last {
                    break;
                }
                self.forget(sequence);
                next = sequence + 1;
            }
        }
    }

    fn restored(&mut self, entry: Entry) -> Entry {
        self.gauge.add(Entry::CHARGE);
        self.index(&entry);
        entry
    }

    fn index_found(&mut self, fact: &StreamEntry) {
        let Some(stream) = &mut self.stream else { return };
        stream.index.insert(fact.sequence, &fact.subject, fact.bytes);
        if stream.index.len() == 1 {
            stream.first_time = fact.time;
        }
        stream.last_time = stream.last_time.max(fact.time);
        if let Some(ms) = fact.properties.expiration_ms {
            stream.note_ttl(fact.sequence, fact.time, ms);
        }
        stream.roles.note(fact.sequence, &fact.properties);
        if let Some(value) = fact.count.as_ref().filter(|_| stream.settings.is_counter) {
            stream.note_count(&fact.subject, fact.sequence, value.clone());
        }
    }

    pub(super) fn restore_consumer(&mut self, state: ConsumerState, lsn: Lsn, acked: &[u64], now: Time) {
        self.add_stream_consumer(&state.name, state.settings, now);
        let Some(stream) = &mut self.stream else { return };
        let index = &stream.index;
        let Some(consumer) = stream.consumers.touch(state.name.as_bytes()) else { return };
        let acked: BTreeSet<u64> = acked.iter().copied().collect();
        let pending = state
            .pending
            .iter()
            .filter(|(sequence, ..)| index.contains(*sequence) && !acked.contains(sequence));
        let due = |deliveries| now.after(consumer.settings.wait_of(deliveries));
        let pending: Vec<(u64, Pending)> = pending
            .map(|(sequence, number, deliveries)| {
                (*sequence, Pending { number: *number, deliveries: *deliveries, due: due(*deliveries) })
            })
            .collect();
        consumer.created = state.created;
        consumer.restore(state.delivered, state.floor, pending.into_iter());
        consumer.next = state.next;
        consumer.restored_end = stream.visible_end;
        let is_left = |sequence: &u64| !acked.contains(sequence) && index.contains(*sequence);
        consumer.first_ones = state.first_ones.into_iter().filter(is_left).collect();
        let done = state.done.into_iter().chain(acked.iter().copied());
        consumer.done =
            done.filter(|sequence| *sequence >= state.next && index.contains(*sequence)).collect();
        let ahead = index.count_from(&consumer.settings.filter, consumer.next);
        consumer.unread =
            (ahead + consumer.first_ones.len() as u64).saturating_sub(consumer.done.len() as u64);
        consumer.recorded = lsn;
        consumer.is_changed = false;
    }
}
