//! Delayed messages on disk.
//!
//! When memory is short, the messages that are due last go to disk. Messages with records in old journal
//! files are copied. Due messages are read back. A page of delayed messages has no priority and no place
//! among ready messages: each entry has a due time. A message that became ready goes to a page of its
//! priority like any other; until then its former page is needed.

use std::collections::BTreeSet;

use super::draft::PageDraft;
use super::restore::FoundPage;
use crate::confirm::Lsn;
use crate::entries::{DuePlace, Entry, PageId, PageSource, Pages, Stub};
use crate::features::QueueFeatures;
use crate::limits::{PAGE_BYTES_GOAL, PAGED_BYTES_GOAL};
use crate::queue::{Effects, Queue};
use crate::time::Time;

/// A delayed message that a start found in a page.
#[derive(Debug, Clone)]
pub(crate) struct FoundDelayed {
    pub(crate) lsn: Lsn,
    pub(crate) due: Time,
    pub(crate) sequence: u64,
    pub(crate) body_bytes: u64,
    /// The message id that the publisher chose.
    pub(crate) name: Option<Box<[u8]>>,
}

impl Queue {
    /// Bytes of memory that delayed messages occupy.
    pub(crate) fn delayed_memory(&self) -> usize {
        self.delayed.as_ref().map_or(0, |delayed| delayed.memory())
    }

    /// Moves the messages that are due last out of memory, so that the rest occupies at most `share` bytes.
    /// Returns the pages to write for that.
    pub(crate) fn shelve_delayed(&mut self, share: usize) -> Vec<PageDraft> {
        let memory = self.delayed_memory();
        if memory <= share / 4 {
            return Vec::new();
        }
        let goal = PAGED_BYTES_GOAL.min(memory - share / 8);
        let page_bytes = PAGE_BYTES_GOAL.min(share / 16).max(1);
        let keeps = self.keeps_records();
        let drafts = self.with_delayed(|delayed, pages| {
            let (mut places, mut bytes) = (Vec::new(), 0);
            for (place, entry) in delayed.in_memory().rev() {
                // As much stays as is read ahead; otherwise it would be read again at once.
                if bytes >= goal || memory - bytes < entry.memory() + share / 8 {
                    break;
                }
                // A message that is being copied stays until that is done, which is soon.
                let page = entry.page.and_then(|page| pages.get(page));
                if page.is_some_and(|page| !page.is_failed && page.place.is_none()) {
                    break;
                }
                bytes += entry.memory();
                places.push(place);
            }
            let (mut durable, mut transient) = (Vec::new(), Vec::new());
            for place in places.into_iter().rev() {
                let Some(entry) = delayed.entry_mut(place) else { continue };
                match entry.page.filter(|page| pages.get(*page).is_some_and(|page| page.place.is_some())) {
                    Some(page) => drop(delayed.shelve(place, page)),
                    None if keeps && entry.envelope.lsn != Lsn::NONE => durable.push((place, entry.memory())),
                    None => transient.push((place, entry.memory())),
                }
            }
            let mut drafts = Vec::new();
            for (places, is_durable) in [(durable, true), (transient, false)] {
                for places in cut(&places, page_bytes) {
                    let mut draft = draft(pages, &places, is_durable, false);
                    for place in places {
                        let Some(entry) = delayed.entry_mut(place) else { continue };
                        let_failed_go(pages, entry);
                        draft.entries.extend(delayed.shelve(place, draft.id));
                    }
                    drafts.push(draft);
                }
            }
            drafts
        });
        drafts.unwrap_or_default()
    }

    /// Copies delayed messages with records up to `end` into pages if they are in none; about `bytes_max`
    /// bytes.
    pub(crate) fn spill_delayed(&mut self, end: Lsn, bytes_max: usize) -> Vec<PageDraft> {
        let drafts = self.with_delayed(|delayed, pages| {
            let (mut places, mut bytes) = (Vec::new(), 0);
            for (place, entry) in delayed.in_memory() {
                if bytes >= bytes_max {
                    break;
                }
                let page = entry.page.and_then(|page| pages.get(page));
                let is_needed = page.is_none_or(|page| page.is_failed || !page.is_durable);
                let lsn = entry.envelope.lsn;
                if is_needed && lsn != Lsn::NONE && lsn <= end {
                    bytes += entry.memory();
                    places.push((place, entry.memory()));
                }
            }
            let mut drafts = Vec::new();
            for places in cut(&places, PAGE_BYTES_GOAL) {
                let mut draft = draft(pages, &places, true, true);
                for place in places {
                    let Some(entry) = delayed.entry_mut(place) else { continue };
                    let_failed_go(pages, entry);
                    entry.page = Some(draft.id);
                    draft.entries.push(entry.clone());
                }
                drafts.push(draft);
            }
            drafts
        });
        drafts.unwrap_or_default()
    }

    /// Requests pages of delayed messages to be read.
    pub(crate) fn ask_delayed(&mut self, share: usize) -> Vec<(PageId, PageSource)> {
        let has_room = self.ready.memory() <= share;
        let asked = self.with_delayed(|delayed, pages| delayed.ask(share / 8, has_room, pages));
        asked.into_iter().flatten().map(|(id, place)| (id, PageSource::Segment(place))).collect()
    }

    /// Notes that a page was read, or could not be.
    pub(crate) fn delayed_answered(&mut self, id: PageId) {
        self.with_delayed(|delayed, _| delayed.answered(id));
    }

    /// Takes the readable entries of a page of delayed messages into memory; returns how many are lost.
    pub(crate) fn delayed_read(
        &mut self,
        id: PageId,
        entries: Vec<Entry>,
        now: Time,
        effects: &mut Effects,
    ) -> u32 {
        let places = self.places_of(id);
        let mut failed = Vec::new();
        for mut entry in entries {
            let found = places.binary_search_by_key(&entry.envelope.sequence, |(_, sequence)| *sequence);
            let Some(place) = found.ok().and_then(|at| places.get(at).copied()) else { continue };
            if let Some(count) = self.counts.get(&entry.envelope.lsn) {
                count.apply_to(&mut entry.envelope);
            }
            entry.page = Some(id);
            let death_reason = self.death_reason(&entry.envelope);
            let taken = self.with_delayed(|delayed, _| {
                if delayed.is_shelved(place, id) {
                    delayed.unshelve(place, entry);
                }
                death_reason.and_then(|reason| Some((delayed.take(place)?, reason)))
            });
            failed.extend(taken.flatten());
        }
        for (entry, reason) in failed {
            self.gauge.add(Entry::CHARGE);
            self.die(entry, reason, now, effects);
        }
        let lost = self.forget_shelved(id, &places);
        if lost > 0 {
            self.pages.let_go(id, lost);
        }
        self.move_due(now, effects);
        lost
    }

    /// Notes that a page of delayed messages cannot be read in this run; its messages stay on disk for the
    /// next.
    pub(crate) fn delayed_withheld(&mut self, id: PageId) -> u32 {
        let places = self.places_of(id);
        self.forget_shelved(id, &places)
    }

    /// Takes back delayed messages that could not be written; returns those that were taken out meanwhile.
    pub(crate) fn unshelve_failed(&mut self, draft: PageDraft) -> Vec<Entry> {
        let PageDraft { id, entries, dues, .. } = draft;
        let mut gone = Vec::new();
        for (due, entry) in dues.into_iter().zip(entries) {
            let place = (due, entry.envelope.sequence);
            let is_there = self.delayed.as_ref().is_some_and(|delayed| delayed.is_shelved(place, id));
            if is_there {
                self.with_delayed(|delayed, _| delayed.unshelve(place, entry));
            } else {
                gone.push(entry);
            }
        }
        gone
    }

    /// Restores a page of delayed messages after a restart. `found` has its messages, or is empty if the page
    /// could not be read.
    pub(crate) fn restore_delayed(&mut self, page: FoundPage, found: Vec<FoundDelayed>, now: Time) {
        let FoundPage { facts, live, settled, is_doubtful } = page;
        let id = self.pages.restore(&facts, live, settled, is_doubtful);
        if live == 0 {
            self.pages.forget(id);
            return;
        }
        self.pages.hold_delayed(id, found.iter().map(|found| (found.due, found.sequence)).collect());
        self.features.add(QueueFeatures::DELAYED);
        self.delayed.get_or_insert_default();
        self.with_delayed(|delayed, pages| {
            for FoundDelayed { lsn, due, sequence, body_bytes, name } in found {
                if pages.get(id).is_none_or(|page| page.is_settled(lsn)) {
                    continue;
                }
                // A message that is due now or later cannot have been delivered.
                let is_redelivered = is_doubtful && due < now;
                let stub = Stub { page: id, lsn, body_bytes, is_redelivered };
                delayed.restore((due, sequence), stub, name.as_deref());
            }
        });
    }

    /// Numbers new messages above this sequence number, because a message that was found has it.
    pub(crate) fn number_above(&mut self, sequence: u64) {
        self.next_sequence = self.next_sequence.max(sequence.saturating_add(1));
    }

    fn places_of(&self, id: PageId) -> Vec<DuePlace> {
        let places = self.pages.get(id).and_then(|page| page.delayed.as_deref());
        places.unwrap_or_default().to_vec()
    }

    /// Forgets the messages that are in this page alone; returns how many there were.
    fn forget_shelved(&mut self, id: PageId, places: &[DuePlace]) -> u32 {
        let forgotten = self.with_delayed(|delayed, _| {
            let of_page = places.iter().filter(|place| delayed.is_shelved(**place, id));
            let of_page: BTreeSet<DuePlace> = of_page.copied().collect();
            if !of_page.is_empty() {
                delayed.forget(&of_page);
            }
            of_page.len()
        });
        u32::try_from(forgotten.unwrap_or(0)).unwrap_or(u32::MAX)
    }
}

/// Groups messages, given with their bytes, into pages of about `page_bytes`.
fn cut(places: &[(DuePlace, usize)], page_bytes: usize) -> Vec<Vec<DuePlace>> {
    let (mut pages, mut bytes) = (Vec::<Vec<DuePlace>>::new(), page_bytes);
    for (place, memory) in places {
        if bytes >= page_bytes {
            pages.push(Vec::new());
            bytes = 0;
        }
        bytes += memory;
        if let Some(page) = pages.last_mut() {
            page.push(*place);
        }
    }
    pages
}

fn draft(pages: &mut Pages, places: &[DuePlace], is_durable: bool, is_copy: bool) -> PageDraft {
    let id = pages.begin_delayed(is_durable, places.to_vec());
    let dues = places.iter().map(|(due, _)| *due).collect();
    PageDraft { id, priority: 0, is_durable, is_copy, entries: Vec::new(), dues, is_of_stream: false }
}

fn let_failed_go(pages: &mut Pages, entry: &mut Entry) {
    if let Some(failed) = entry.page.take() {
        pages.let_go(failed, 1);
    }
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod steps;
