//! The pages that a start finds, and where what the journal has goes among them.
//!
//! Bodies are not read. The numbers of the records of a page are, where the journal may tell something about them:
//! what is in both is taken once, and what is settled of a page is known exactly.

use std::collections::{BTreeMap, BTreeSet};

use foldhash::fast::FixedState;
use hashbrown::{HashMap, HashSet};

use crate::confirm::Lsn;
use crate::delivery::{Count, Holding};
use crate::id::DurableQueueId;
use crate::queue::{Entry, Found, FoundPage, GonePage, PageFacts, PagePlace, Ranges};
use crate::record::Checkpoint;

/// The pages of a restoration.
#[derive(Debug, Default)]
pub(crate) struct RestoredPages {
    pages: BTreeMap<PagePlace, RestoredPage>,
    settled: BTreeMap<PagePlace, Ranges>,
    doubtful_below: u32,
    /// Records that are in pages whose numbers were read.
    listed: HashSet<Holding, FixedState>,
    gone: Vec<GonePage>,
}

#[derive(Debug)]
struct RestoredPage {
    facts: PageFacts,
    live: u32,
    settled: Ranges,
}

impl RestoredPages {
    pub(crate) fn checkpoint(&mut self, checkpoint: Checkpoint) {
        self.doubtful_below = checkpoint.doubtful_below;
        self.settled = checkpoint.settled.into_iter().collect();
    }

    /// Takes a page; one whose queue is gone is gone too.
    pub(crate) fn add(&mut self, facts: PageFacts, is_there: bool) {
        let place = facts.place;
        let settled = self.settled.remove(&place).unwrap_or_default();
        let settled_len = settled.iter().map(|(first, last)| last - first + 1).sum::<u64>();
        let live = u64::from(facts.count).saturating_sub(settled_len);
        let live = if is_there { u32::try_from(live).unwrap_or(0) } else { 0 };
        match live {
            0 => self.gone.push(GonePage { place, is_durable: true }),
            _ => drop(self.pages.insert(place, RestoredPage { facts, live, settled })),
        }
    }

    /// The pages whose numbers have to be read: those with records that the journal may have too, and those of
    /// which it tells something.
    pub(crate) fn to_list(&self, floor: Lsn, told: impl Iterator<Item = Holding>) -> Vec<PagePlace> {
        let mut lsns: BTreeMap<DurableQueueId, BTreeSet<Lsn>> = BTreeMap::new();
        if !self.pages.is_empty() {
            for Holding { queue, lsn } in told {
                lsns.entry(queue).or_default().insert(lsn);
            }
        }
        let is_told = |facts: &PageFacts| {
            lsns.get(&facts.queue).is_some_and(|lsns| lsns.range(facts.first..=facts.last).next().is_some())
        };
        let pages = self.pages.values().map(|page| page.facts);
        pages.filter(|facts| facts.last >= floor || is_told(facts)).map(|facts| facts.place).collect()
    }

    /// Takes the numbers of those entries of a page that verify.
    pub(crate) fn list(&mut self, place: PagePlace, lsns: &[Lsn], settled: &HashSet<Holding, FixedState>) {
        let Some(page) = self.pages.get_mut(&place) else { return };
        let queue = page.facts.queue;
        let mut live = 0;
        for lsn in lsns {
            let holding = Holding { queue, lsn: *lsn };
            let is_twice = !self.listed.insert(holding);
            if is_twice || settled.contains(&holding) {
                page.settled.insert(lsn.0);
            }
            live += u32::from(!page.settled.contains(lsn.0));
        }
        page.live = live;
        if live == 0 {
            self.pages.remove(&place);
            self.gone.push(GonePage { place, is_durable: true });
        }
    }

    /// Tells whether a record is in a page.
    pub(crate) fn has(&self, holding: &Holding) -> bool {
        self.listed.contains(holding)
    }

    /// What is known of the deliveries of messages that are in pages.
    pub(crate) fn counts(
        &self,
        counts: &HashMap<Holding, Count, FixedState>,
    ) -> BTreeMap<DurableQueueId, Vec<Count>> {
        let mut of_queue: BTreeMap<DurableQueueId, Vec<Count>> = BTreeMap::new();
        for count in counts.values().filter(|count| self.has(&count.holding)) {
            of_queue.entry(count.holding.queue).or_default().push(*count);
        }
        of_queue
    }

    /// Takes out the pages of each queue and priority, in their order.
    pub(crate) fn take(&mut self, was_clean: bool) -> BTreeMap<DurableQueueId, BTreeMap<u8, Vec<FoundPage>>> {
        let mut all: BTreeMap<DurableQueueId, BTreeMap<u8, Vec<FoundPage>>> = BTreeMap::new();
        for (place, RestoredPage { facts, live, settled }) in std::mem::take(&mut self.pages) {
            let is_doubtful = !was_clean || place.segment < self.doubtful_below;
            let of_queue = all.entry(facts.queue).or_default();
            of_queue.entry(facts.priority).or_default().push(FoundPage { facts, live, settled, is_doubtful });
        }
        for pages in all.values_mut().flat_map(BTreeMap::values_mut) {
            pages.sort_by_key(|FoundPage { facts, .. }| {
                (facts.first_position, facts.last_position, facts.place)
            });
        }
        all
    }

    /// The pages that nobody needs.
    pub(crate) fn take_gone(&mut self) -> Vec<GonePage> {
        std::mem::take(&mut self.gone)
    }
}

/// Puts entries, which come by rising number, between the pages of their queue and priority.
///
/// An entry that is in no page was given out before its neighbours were written, or came after them. Where its
/// number is among those of a page, as cells overtake each other between journal and queue, the nearer end counts.
pub(crate) fn put_in_order(pages: Vec<FoundPage>, entries: Vec<Entry>) -> Vec<Found> {
    let mut found = Vec::with_capacity(pages.len() + entries.len());
    let mut entries = entries.into_iter().peekable();
    for page in pages {
        let middle = page.facts.first.0.midpoint(page.facts.last.0);
        while let Some(entry) = entries.next_if(|entry| entry.envelope.lsn.0 <= middle) {
            found.push(Found::Entry(entry));
        }
        found.push(Found::Page(page));
    }
    found.extend(entries.map(Found::Entry));
    found
}

#[cfg(test)]
mod tests;
