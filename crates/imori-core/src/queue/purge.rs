//! Purging: drops all ready messages of a queue. Unsettled and delayed messages stay.
//!
//! Messages with a record known here are recorded as settled. The records of a page on disk are not known, so
//! the page is recorded as purged. A purged page stays on disk until the journal has none of its records, so
//! that the next start can tell which messages are gone.

use super::leave::Effects;
use super::queue::Queue;
use crate::confirm::Lsn;
use crate::entries::{GonePage, PagePart, Part, PurgedPage, Ready};
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
        let purged = self.ready.len();
        let mut ready = std::mem::replace(&mut self.ready, Ready::new(self.settings.priority_max));
        for level in ready.lanes_mut() {
            let released = std::mem::take(&mut level.released).into_values();
            let mut entries: Vec<_> = released.collect();
            for part in std::mem::take(&mut level.parts) {
                match part {
                    Part::Memory(run) => entries.extend(run.into_entries()),
                    Part::Page(part) => self.purge_part(&part, effects),
                    Part::Packed(mut packed) => {
                        for (page, part) in packed.take_front(usize::MAX) {
                            self.pages.unpack(part.id, page);
                            self.purge_part(&part, effects);
                        }
                    }
                }
            }
            for entry in entries {
                self.leave(&entry);
                effects.settled.extend(self.record_ref(entry.envelope.lsn));
            }
        }
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

    fn purge_part(&mut self, part: &PagePart, effects: &mut Effects) {
        let Some(page) = self.pages.get(part.id) else { return };
        let in_journal = page.in_journal.as_ref().map(|in_journal| in_journal.read.lsns.clone());
        if let Some(lsns) = in_journal {
            for lsn in &lsns {
                self.live_records.remove(*lsn);
                self.counts.remove(lsn);
            }
            effects.settled.extend(lsns.iter().filter_map(|lsn| self.record_ref(*lsn)));
            return self.pages.let_go(part.id, part.len);
        }
        let durability = self.durability.filter(|_| page.is_durable);
        let is_placed = page.place.is_some();
        match (durability, self.pages.take_apart(part.id)) {
            (Some(_), Some(lsns)) => {
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
            }
            (Some(durability), None) => match self.pages.purge(durability.id, part.id) {
                Some(purged) => effects.rare_mut().purged.push(purged),
                None => self.pages.let_go(part.id, part.len),
            },
            (None, _) => self.pages.let_go(part.id, part.len),
        }
    }

    /// Takes the purged pages that are obsolete once the journal has no record below `floor`.
    pub fn take_purged(&mut self, floor: Lsn) -> Vec<GonePage> {
        self.pages.take_purged(floor)
    }

    /// Restores the list of pages that were purged before the restart.
    pub(crate) fn restore_purged(&mut self, purged: Vec<PurgedPage>) {
        self.pages.restore_purged(purged);
    }
}
