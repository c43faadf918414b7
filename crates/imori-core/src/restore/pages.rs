//! The pages that a start finds, and the positions of journal messages among them.
//!
//! Bodies are not read. The record numbers of a page are read only if the journal may know something about
//! them. Then a message that is in both is restored once, and the settled messages of a page are known
//! exactly.

use std::collections::{BTreeMap, BTreeSet};

use foldhash::fast::FixedState;
use hashbrown::{HashMap, HashSet};

use super::settled::Settled;
use crate::confirm::Lsn;
use crate::delivery::{DeliveryCount, RecordRef};
use crate::entries::{Entry, GonePage, InJournal, PageFacts, PagePlace, Ranges, first_position};
use crate::id::DurableQueueId;
use crate::paging::{FoundDelayed, FoundPage, RestoredPart};
use crate::record::Checkpoint;

/// The pages of a restoration.
#[derive(Debug, Default)]
pub(crate) struct RestoredPages {
    pages: BTreeMap<PagePlace, RestoredPage>,
    settled: BTreeMap<PagePlace, Ranges>,
    doubtful_below: u32,
    /// Records in pages that were listed.
    listed: HashSet<RecordRef, FixedState>,
    /// Records in pages of delayed messages, and the page of each.
    delayed: HashMap<RecordRef, PagePlace, FixedState>,
    gone: Vec<GonePage>,
}

/// Number of unsettled messages in a page.
fn live(facts: &PageFacts, settled: Option<&Ranges>) -> u32 {
    let settled_len =
        settled.map_or(0, |settled| settled.iter().map(|(first, last)| last - first + 1).sum::<u64>());
    u32::try_from(u64::from(facts.count).saturating_sub(settled_len)).unwrap_or(0)
}

/// The pages of a queue: those of each priority in order, and those of delayed messages with their entries.
#[derive(Debug, Default)]
pub(crate) struct PagesOfQueue {
    pub(crate) ready: BTreeMap<u8, Vec<FoundPage>>,
    pub(crate) delayed: Vec<(FoundPage, Vec<FoundDelayed>)>,
}

#[derive(Debug)]
struct RestoredPage {
    facts: PageFacts,
    live: u32,
    settled: Ranges,
    /// The delayed messages in the page, if it has any.
    delayed: Vec<FoundDelayed>,
}

impl RestoredPages {
    pub(crate) fn checkpoint(&mut self, checkpoint: Checkpoint) {
        self.doubtful_below = checkpoint.doubtful_below;
        self.settled = checkpoint.settled.into_iter().collect();
    }

    /// Whether a page has unsettled messages, as far as the checkpoint knows.
    pub(crate) fn is_needed(&self, facts: &PageFacts) -> bool {
        live(facts, self.settled.get(&facts.place)) > 0
    }

    /// Adds a page. It counts as gone if it is not needed, or its queue does not exist (`is_there`).
    pub(crate) fn add(&mut self, facts: PageFacts, is_there: bool) {
        let place = facts.place;
        let settled = self.settled.remove(&place);
        let live = live(&facts, settled.as_ref());
        if is_there && live > 0 {
            let (settled, delayed) = (settled.unwrap_or_default(), Vec::new());
            self.pages.insert(place, RestoredPage { facts, live, settled, delayed });
        } else {
            self.gone.push(GonePage { place, is_durable: true });
        }
    }

    /// The pages that have to be read: those of delayed messages, which may be cancelled by their ids at any time, and
    /// those of streams, which have an index.
    pub(crate) fn places_to_read(&self, is_stream: impl Fn(DurableQueueId) -> bool) -> Vec<PagePlace> {
        let is_read = |page: &RestoredPage| page.facts.is_delayed() || is_stream(page.facts.queue);
        self.pages.iter().filter(|(_, page)| is_read(page)).map(|(place, _)| *place).collect()
    }

    /// Whether a checkpoint knows that a stream has removed this message of a page.
    pub(crate) fn is_settled(&self, place: PagePlace, sequence: u64) -> bool {
        self.pages.get(&place).is_some_and(|page| page.settled.contains(sequence))
    }

    /// Notes messages of a page that a stream has removed.
    pub(crate) fn settle_in(&mut self, place: PagePlace, sequences: Vec<u64>) {
        if let Some(page) = self.pages.get_mut(&place) {
            let gone = sequences.into_iter().filter(|sequence| page.settled.insert(*sequence)).count();
            page.live = page.live.saturating_sub(u32::try_from(gone).unwrap_or(u32::MAX));
        }
        self.forget_if_gone(place);
    }

    /// The queue of a page.
    pub(crate) fn owner(&self, place: PagePlace) -> Option<DurableQueueId> {
        self.pages.get(&place).map(|page| page.facts.queue)
    }

    /// Adds the intact entries of a page of delayed messages. Has to come before any page is listed.
    pub(super) fn list_delayed(&mut self, place: PagePlace, found: Vec<FoundDelayed>, settled: &Settled) {
        let Some(page) = self.pages.get_mut(&place) else { return };
        let mut live = 0;
        for FoundDelayed { lsn, .. } in &found {
            let record_ref = RecordRef { queue: page.facts.queue, lsn: *lsn };
            if page.settled.contains(lsn.0) {
                continue;
            }
            if settled.has(&record_ref) || self.delayed.contains_key(&record_ref) {
                page.settled.insert(lsn.0);
                continue;
            }
            self.delayed.insert(record_ref, place);
            live += 1;
        }
        (page.live, page.delayed) = (live, found);
        self.forget_if_gone(place);
    }

    /// The pages to read record numbers of: the journal may have these records too, or facts about them. Pages that were
    /// purged as a whole are gone.
    pub(super) fn needing_lists(
        &mut self,
        floor: Lsn,
        settled: &Settled,
        counted: impl Iterator<Item = RecordRef>,
        is_stream: impl Fn(DurableQueueId) -> bool,
    ) -> Vec<PagePlace> {
        let is_purged = |page: &RestoredPage| !page.facts.is_delayed() && settled.covers(&page.facts);
        let purged = self.pages.extract_if(.., |_, page| is_purged(page));
        self.gone.extend(purged.map(|(place, _)| GonePage { place, is_durable: true }));
        let told = settled.each().chain(counted);
        let mut lsns: BTreeMap<DurableQueueId, BTreeSet<Lsn>> = BTreeMap::new();
        if !self.pages.is_empty() {
            // A message that has become ready may also be in a page of its priority.
            for RecordRef { queue, lsn } in told.chain(self.delayed.keys().copied()) {
                lsns.entry(queue).or_default().insert(lsn);
            }
        }
        let is_told = |facts: &PageFacts| {
            lsns.get(&facts.queue).is_some_and(|lsns| lsns.range(facts.first..=facts.last).next().is_some())
        };
        let pages = self
            .pages
            .values()
            .map(|page| page.facts)
            .filter(|facts| !facts.is_delayed() && !is_stream(facts.queue));
        let is_listed = |facts: &PageFacts| facts.last >= floor || is_told(facts) || settled.touches(facts);
        pages.filter(is_listed).map(|facts| facts.place).collect()
    }

    /// Adds the record numbers of a page's intact entries.
    pub(super) fn list(&mut self, place: PagePlace, lsns: &[Lsn], settled: &Settled) {
        let Some(page) = self.pages.get_mut(&place) else { return };
        let queue = page.facts.queue;
        let (mut live, mut moved) = (0, Vec::new());
        for lsn in lsns {
            let record_ref = RecordRef { queue, lsn: *lsn };
            let is_twice = !self.listed.insert(record_ref);
            if is_twice || settled.has(&record_ref) {
                page.settled.insert(lsn.0);
            }
            live += u32::from(!page.settled.contains(lsn.0));
            moved.extend(self.delayed.remove(&record_ref).map(|before| (before, *lsn)));
        }
        page.live = live;
        self.forget_if_gone(place);
        for (before, lsn) in moved {
            if let Some(page) = self.pages.get_mut(&before) {
                page.settled.insert(lsn.0);
                page.live = page.live.saturating_sub(1);
            }
            self.forget_if_gone(before);
        }
    }

    fn forget_if_gone(&mut self, place: PagePlace) {
        if self.pages.get(&place).is_some_and(|page| page.live == 0) {
            self.pages.remove(&place);
            self.gone.push(GonePage { place, is_durable: true });
        }
    }

    /// Whether a record is in a page.
    pub(crate) fn has(&self, record_ref: &RecordRef) -> bool {
        self.listed.contains(record_ref) || self.delayed.contains_key(record_ref)
    }

    /// The delivery counts of messages in pages, by queue.
    pub(crate) fn counts(
        &self,
        counts: &HashMap<RecordRef, DeliveryCount, FixedState>,
    ) -> BTreeMap<DurableQueueId, Vec<DeliveryCount>> {
        let mut of_queue: BTreeMap<DurableQueueId, Vec<DeliveryCount>> = BTreeMap::new();
        for count in counts.values().filter(|count| self.has(&count.record_ref)) {
            of_queue.entry(count.record_ref.queue).or_default().push(*count);
        }
        of_queue
    }

    /// Takes out the pages of all queues.
    pub(crate) fn take(&mut self, was_clean: bool) -> BTreeMap<DurableQueueId, PagesOfQueue> {
        let mut all: BTreeMap<DurableQueueId, PagesOfQueue> = BTreeMap::new();
        for (place, RestoredPage { facts, live, settled, delayed }) in std::mem::take(&mut self.pages) {
            let is_doubtful = !was_clean || place.segment < self.doubtful_below;
            let of_queue = all.entry(facts.queue).or_default();
            let page = FoundPage { facts, live, settled, is_doubtful };
            match facts.is_delayed() {
                true => of_queue.delayed.push((page, delayed)),
                false => of_queue.ready.entry(facts.priority).or_default().push(page),
            }
        }
        for pages in all.values_mut().flat_map(|of_queue| of_queue.ready.values_mut()) {
            pages.sort_by_key(|FoundPage { facts, .. }| {
                (facts.first_position, facts.last_position, facts.place)
            });
        }
        all
    }

    /// Takes the pages that are not needed; complete once all messages were added.
    pub(crate) fn take_gone(&mut self) -> Vec<GonePage> {
        std::mem::take(&mut self.gone)
    }
}

/// A message that is in the journal and in no page.
#[derive(Debug)]
pub(crate) enum Waiting {
    /// The message was taken into memory.
    Entry(Entry),
    /// The message stays in the journal.
    InJournal(InJournal),
}

impl Waiting {
    /// The message, if it was taken into memory.
    pub(crate) fn into_entry(self) -> Option<Entry> {
        match self {
            Waiting::Entry(entry) => Some(entry),
            Waiting::InJournal(_) => None,
        }
    }

    fn lsn(&self) -> Lsn {
        match self {
            Waiting::Entry(entry) => entry.envelope.lsn,
            Waiting::InJournal(message) => message.lsn,
        }
    }

    pub(crate) fn priority(&self) -> u8 {
        match self {
            Waiting::Entry(entry) => entry.envelope.priority,
            Waiting::InJournal(message) => message.priority,
        }
    }
}

impl From<Waiting> for RestoredPart {
    fn from(waiting: Waiting) -> RestoredPart {
        match waiting {
            Waiting::Entry(entry) => RestoredPart::Entry(entry),
            Waiting::InJournal(message) => RestoredPart::InJournal(message),
        }
    }
}

/// Puts messages, given by rising record number, between the pages of their queue and priority.
///
/// A message in no page was out for delivery when its neighbours were written, or arrived after them. Or it was settled
/// then, and the settlement was lost; it comes behind the page, marked as redelivered.
/// Positions rise, and a message's position is never below its own record. So a message with a record behind the
/// beginning of a page arrived after that whole page.
pub(crate) fn put_in_order(pages: Vec<FoundPage>, waiting: Vec<Waiting>) -> Vec<RestoredPart> {
    let mut found = Vec::with_capacity(pages.len() + waiting.len());
    let mut waiting = waiting.into_iter().peekable();
    for page in pages {
        let begin = page.facts.first_position;
        while let Some(waiting) = waiting.next_if(|waiting| first_position(waiting.lsn()) < begin) {
            found.push(waiting.into());
        }
        found.push(RestoredPart::Page(page));
    }
    found.extend(waiting.map(RestoredPart::from));
    found
}

#[cfg(test)]
mod tests;
