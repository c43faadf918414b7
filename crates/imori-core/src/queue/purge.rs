//! Purging: drops all ready messages of a queue. Unsettled and delayed messages stay.
//!
//! Messages with a record known here are recorded as settled. Of a page on disk only the lowest and the highest record
//! are known, so the range between them is recorded as purged, without the records of messages that stay. A message
//! whose record is in the range may not have reached the queue yet; it is recorded again when it does.

use super::leave::Effects;
use super::queue::Queue;
use crate::confirm::Lsn;
use crate::delivery::PurgedRecords;
use crate::entries::{PagePart, Part, Ranges, Ready};
use crate::index::{Filter, StreamPurge};
use crate::time::Time;

impl Queue {
    /// Drops all ready messages; returns how many there were.
    pub fn purge(&mut self, now: Time, effects: &mut Effects) -> usize {
        if self.stream.is_some() {
            let everything = StreamPurge { filter: Filter::all(), up_to: None, keep: 0 };
            return usize::try_from(self.purge_stream(&everything, effects)).unwrap_or(usize::MAX);
        }
        self.move_due(now, effects);
        let (purged, mut ranges) = (self.ready.len(), Vec::new());
        let mut ready = std::mem::replace(&mut self.ready, Ready::new(self.settings.priority_max));
        for level in ready.lanes_mut() {
            let released = std::mem::take(&mut level.released).into_values();
            let mut entries: Vec<_> = released.collect();
            for part in std::mem::take(&mut level.parts) {
                match part {
                    Part::Memory(run) => entries.extend(run.into_entries()),
                    Part::Page(part) => ranges.extend(self.purge_part(&part, effects)),
                    Part::Packed(mut packed) => {
                        for (page, part) in packed.take_front(usize::MAX) {
                            self.pages.unpack(part.id, page);
                            ranges.extend(self.purge_part(&part, effects));
                        }
                    }
                }
            }
            for entry in entries {
                self.leave(&entry);
                effects.settled.extend(self.record_ref(entry.envelope.lsn));
            }
        }
        self.note_purged(ranges, effects);
        if self.pages.is_empty() {
            // The counts were of messages in pages that were never read.
            self.counts.clear();
        }
        // Positions keep rising, because they order the pages.
        for (level, before) in self.ready.lanes_mut().zip(ready.lanes()) {
            level.position = before.position;
        }
        purged
    }

    /// Drops the messages of a part that is on disk. Returns the lowest and the highest record of a page of which nothing
    /// else is known.
    fn purge_part(&mut self, part: &PagePart, effects: &mut Effects) -> Option<(u64, u64)> {
        let page = self.pages.get(part.id)?;
        let in_journal = page.in_journal.as_ref().map(|in_journal| in_journal.read.lsns.clone());
        if let Some(lsns) = in_journal {
            for lsn in &lsns {
                self.live_records.remove(*lsn);
                self.counts.remove(lsn);
            }
            effects.settled.extend(lsns.iter().filter_map(|lsn| self.record_ref(*lsn)));
            self.pages.let_go(part.id, part.len);
            return None;
        }
        let (is_durable, is_placed) = (page.is_durable, page.place.is_some());
        if !is_durable {
            self.pages.let_go(part.id, part.len);
            return None;
        }
        let Some(lsns) = self.pages.take_apart(part.id) else {
            let records = self.pages.purge(part.id);
            if records.is_none() {
                self.pages.let_go(part.id, part.len);
            }
            return records.map(|(first, last)| (first.0, last.0));
        };
        for lsn in &lsns {
            self.counts.remove(lsn);
            if is_placed {
                self.pages.settle(part.id, *lsn);
            }
        }
        if !is_placed {
            self.pages.let_go(part.id, part.len);
        }
        effects.settled.extend(lsns.iter().filter_map(|lsn| self.record_ref(*lsn)));
        None
    }

    /// Notes that the messages with records in these ranges are gone, except those that stay.
    fn note_purged(&mut self, ranges: Vec<(u64, u64)>, effects: &mut Effects) {
        let Some(durability) = self.durability.filter(|_| !ranges.is_empty()) else { return };
        let unsettled = self.unsettled.values().map(|entry| entry.envelope.lsn);
        let delayed = self.delayed.iter().flat_map(|delayed| delayed.lsns());
        let stay = unsettled.chain(delayed).map(|lsn| lsn.0).collect();
        let ranges = Ranges::merged(ranges).without(stay);
        self.purged_through =
            ranges.last().map_or(self.purged_through, |last| self.purged_through.max(Lsn(last)));
        let queue = durability.id;
        let purged =
            ranges.iter().map(|(first, last)| PurgedRecords { queue, first: Lsn(first), last: Lsn(last) });
        effects.rare_mut().purged.extend(purged);
    }

    /// Whether a purge may have taken this record of a message that has not reached the queue yet.
    #[inline]
    pub(crate) fn may_be_purged(&self, lsn: Lsn) -> bool {
        lsn <= self.purged_through && lsn != Lsn::NONE
    }
}
