//! The pages of a queue: entries that are on disk together, known here without their bodies.
//!
//! A page is needed until all of its entries are settled, whether they are on disk alone or also in memory.
//! While a page is settled in part, the settled records are kept as ranges.

use std::collections::BTreeSet;

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use crate::confirm::Lsn;
use crate::id::DurableQueueId;
use crate::time::Time;

use super::journal_page::{JournalPage, JournalRead};
use super::ranges::Ranges;

/// Number of pages up to which a queue packs none, because so few take little memory.
const PACK_FROM: usize = 4;

/// The lowest position of delayed messages; positions above hold due times. No record has such a number.
const DELAYED_FROM: u64 = 1 << 63;

/// The due time of a delayed message, and the sequence number that it got on arrival.
pub(crate) type DuePlace = (Time, u64);

/// The position of a delayed message in its page.
pub(crate) fn delayed_position(due: Time) -> u64 {
    DELAYED_FROM | due.0
}

/// The id of a page for one run of the broker; never used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PageId(std::num::NonZeroU32);

impl PageId {
    /// The page of this number, which is not 0.
    pub(crate) fn of(number: u32) -> Option<PageId> {
        std::num::NonZeroU32::new(number).map(PageId)
    }

    /// The number of the page.
    pub(crate) fn number(self) -> u32 {
        self.0.get()
    }
}

/// Where a page is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PagePlace {
    /// The number of the segment, which names its file.
    pub segment: u32,
    /// Its index in the segment.
    pub index: u32,
}

/// The source from which to read a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PageSource {
    /// A segment, which has the page as a whole.
    Segment(PagePlace),
    /// The journal, which has the messages as single records.
    Journal(JournalRead),
}

/// The facts about a page that the broker found at its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageFacts {
    /// The queue of the entries.
    pub queue: DurableQueueId,
    /// The priority of the entries.
    pub priority: u8,
    /// The location of the page.
    pub place: PagePlace,
    /// Number of entries.
    pub count: u32,
    /// The lowest record of the entries.
    pub first: Lsn,
    /// The highest record of the entries.
    pub last: Lsn,
    /// The lowest position of the entries; pages of a priority are ordered by it.
    pub first_position: u64,
    /// The highest position of the entries.
    pub last_position: u64,
}

impl PageFacts {
    /// Whether the messages were delayed when the page was written.
    #[must_use]
    pub fn is_delayed(&self) -> bool {
        self.first_position >= DELAYED_FROM
    }
}

/// A page that its queue no longer needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GonePage {
    /// The location of the page.
    pub place: PagePlace,
    /// The page's segment outlives the broker.
    pub is_durable: bool,
}

/// The state of a page: where it is, and which of its entries are still needed.
#[derive(Debug)]
pub(crate) struct Page {
    /// The location in a segment; `None` until the page is written, and while it is in the journal.
    pub(crate) place: Option<PagePlace>,
    /// The records of the page, while it is in the journal alone.
    pub(crate) in_journal: Option<JournalPage>,
    pub(crate) is_durable: bool,
    /// The page could not be written.
    pub(crate) is_failed: bool,
    /// Sequence numbers of entries that were taken out from between others.
    holes: Ranges,
    /// The entries may have been delivered before the restart.
    pub(crate) is_doubtful: bool,
    pub(crate) priority: u8,
    /// Number of entries that are not settled.
    live: u32,
    /// The sequence number of the first entry, if the entries were renumbered since the page was written.
    pub(crate) first_sequence: Option<u64>,
    /// The due time and sequence number of each delayed message, by rising sequence number. `None` for other pages.
    pub(crate) delayed: Option<Box<[DuePlace]>>,
    /// Records of the settled entries.
    settled: Ranges,
    /// The lowest and the highest number of a record in it, of a durable page.
    pub(crate) records: (Lsn, Lsn),
    /// Records of its entries that are in no memory, where it is being written or others of its entries are elsewhere.
    apart: Option<Box<[Lsn]>>,
}

/// The pages of a queue.
#[derive(Debug, Default)]
pub(crate) struct Pages {
    /// The pages that are not at rest; the others are packed in their lanes.
    all: HashMap<PageId, Page, FixedState>,
    /// Number of packed pages.
    packed: usize,
    /// Number of unpacked pages above which it is worth looking for pages to pack.
    pack_from: usize,
    last: u32,
    /// Pages that were found in the journal, in order; some may have left it.
    in_journal: Vec<PageId>,
    /// Durable pages that are no longer needed, and how many of these were not reported.
    gone: Vec<GonePage>,
    gone_untold: usize,
    /// Pages of this run alone that are no longer needed.
    transient_gone: Vec<GonePage>,
}

impl Pages {
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether there are no pages, and no page is left to be reported as gone.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.is_empty() && self.gone_untold == 0 && self.transient_gone.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.all.len() + self.packed
    }

    /// Tells whether the number of unpacked pages makes it worth looking for pages at rest.
    pub(crate) fn may_be_packed(&self) -> bool {
        self.all.len() > self.pack_from.max(PACK_FROM)
    }

    /// Notes that all pages at rest are packed. The next search is worth it once there are more pages.
    pub(crate) fn note_packed(&mut self) {
        self.pack_from = self.all.len() + self.all.len() / 4 + PACK_FROM;
        if self.all.capacity() > 4 * self.pack_from {
            self.all.shrink_to(self.pack_from);
        }
    }

    /// Takes a page out that is packed from now on, if it is at rest.
    pub(crate) fn pack(&mut self, id: PageId, is_at_rest: impl FnOnce(&Page) -> bool) -> Option<Page> {
        self.all.get(&id).filter(|page| is_at_rest(page))?;
        self.packed += 1;
        self.all.remove(&id)
    }

    /// Puts a page back that was packed.
    pub(crate) fn unpack(&mut self, id: PageId, page: Page) {
        self.packed -= 1;
        self.all.insert(id, page);
    }

    /// Notes that a page goes that was packed.
    pub(crate) fn forget_packed(&mut self, page: &Page) -> Option<GonePage> {
        self.packed -= 1;
        page.place.map(|place| GonePage { place, is_durable: page.is_durable })
    }

    pub(crate) fn get(&self, id: PageId) -> Option<&Page> {
        self.all.get(&id)
    }

    pub(crate) fn get_mut(&mut self, id: PageId) -> Option<&mut Page> {
        self.all.get_mut(&id)
    }

    /// Begins a page of `count` entries that is about to be written.
    pub(crate) fn begin(&mut self, priority: u8, is_durable: bool, count: u32) -> PageId {
        self.add(Page {
            place: None,
            in_journal: None,
            is_durable,
            is_failed: false,
            holes: Ranges::default(),
            is_doubtful: false,
            priority,
            live: count,
            first_sequence: None,
            delayed: None,
            settled: Ranges::default(),
            records: (Lsn::NEVER, Lsn::NONE),
            apart: None,
        })
    }

    /// Begins a page of delayed messages that is about to be written.
    pub(crate) fn begin_delayed(&mut self, is_durable: bool, places: Vec<DuePlace>) -> PageId {
        let id = self.begin(0, is_durable, u32::try_from(places.len()).unwrap_or(u32::MAX));
        self.hold_delayed(id, places);
        id
    }

    /// Notes that the messages of a page are delayed, and when they are due.
    pub(crate) fn hold_delayed(&mut self, id: PageId, mut places: Vec<DuePlace>) {
        places.sort_unstable_by_key(|(_, sequence)| *sequence);
        if let Some(page) = self.all.get_mut(&id) {
            page.delayed = Some(places.into_boxed_slice());
        }
    }

    /// Adds a page that was found at the start.
    pub(crate) fn restore(
        &mut self,
        page: &PageFacts,
        live: u32,
        settled: Ranges,
        is_doubtful: bool,
    ) -> PageId {
        self.add(Page {
            place: Some(page.place),
            in_journal: None,
            is_durable: true,
            is_failed: false,
            holes: Ranges::default(),
            is_doubtful,
            priority: page.priority,
            live,
            first_sequence: None,
            delayed: None,
            settled,
            records: (page.first, page.last),
            apart: None,
        })
    }

    /// Adds a page that was found in the journal, and numbers its entries from `first_sequence` on.
    pub(crate) fn restore_in_journal(
        &mut self,
        priority: u8,
        page: JournalPage,
        first_sequence: u64,
        is_doubtful: bool,
    ) -> PageId {
        let live = u32::try_from(page.read.lsns.len()).unwrap_or(u32::MAX);
        let id = self.begin(priority, true, live);
        self.in_journal.push(id);
        if let Some(added) = self.all.get_mut(&id) {
            page.read.lsns.iter().for_each(|lsn| added.note_record(*lsn));
            added.in_journal = Some(page);
            added.first_sequence = Some(first_sequence);
            added.is_doubtful = is_doubtful;
        }
        id
    }

    /// Notes that the entries of a page in the journal are in memory now. Unless it is being written, the
    /// page ceases to exist.
    pub(crate) fn leave_journal(&mut self, id: PageId) {
        let page = self.all.get_mut(&id).and_then(|page| page.in_journal.as_mut());
        match page {
            Some(in_journal) if in_journal.is_moving => in_journal.is_read = true,
            _ => self.forget(id),
        }
    }

    /// The pages in the journal, those of each priority in order.
    pub(crate) fn in_journal(&mut self) -> Vec<PageId> {
        let Pages { all, in_journal, .. } = self;
        in_journal.retain(|id| all.get(id).is_some_and(|page| page.in_journal.is_some()));
        in_journal.clone()
    }

    /// Adds an entry to a page that is about to be written.
    pub(crate) fn grow(&mut self, id: PageId, lsn: Lsn) {
        if let Some(page) = self.all.get_mut(&id) {
            page.live += 1;
            page.note_record(lsn);
        }
    }

    /// Adds records to the list of those that a durable page has on disk alone. A page on disk needs no list if
    /// that is true of all its entries, because the page itself names them.
    pub(crate) fn set_apart(&mut self, id: PageId, lsns: impl ExactSizeIterator<Item = Lsn> + Clone) {
        let Some(page) = self.all.get_mut(&id).filter(|page| page.is_durable) else { return };
        lsns.clone().for_each(|lsn| page.note_record(lsn));
        let is_whole = page.place.is_some() && lsns.len() >= page.live as usize;
        page.apart = (!is_whole).then(|| {
            let before = page.apart.take().unwrap_or_default();
            before.into_iter().chain(lsns).collect()
        });
    }

    /// Takes the records of a page's entries that are not in memory, if there is a list of them. They are
    /// purged, so that no other part of the page has any.
    pub(crate) fn take_apart(&mut self, id: PageId) -> Option<Vec<Lsn>> {
        let apart = self.all.get_mut(&id)?.apart.as_mut()?;
        Some(std::mem::take(apart).into_vec())
    }

    /// Notes that some entries of a page are in memory again; others may not be.
    pub(crate) fn join(&mut self, id: PageId, lsns: impl Iterator<Item = Lsn>) {
        if let Some(apart) = self.all.get_mut(&id).and_then(|page| page.apart.as_mut()) {
            let joined: BTreeSet<Lsn> = lsns.collect();
            *apart = apart.iter().copied().filter(|lsn| !joined.contains(lsn)).collect();
        }
    }

    /// Forgets a durable page that is on disk alone, and returns its lowest and its highest record. Does nothing if the
    /// page has no location yet, or some of its entries are elsewhere.
    pub(crate) fn purge(&mut self, id: PageId) -> Option<(Lsn, Lsn)> {
        let page = self.all.get(&id).filter(|page| page.is_kept() && page.apart.is_none())?;
        let records = page.records;
        self.forget(id);
        Some(records)
    }

    fn add(&mut self, page: Page) -> PageId {
        // Four billion pages are a petabyte.
        self.last = self.last.saturating_add(1);
        let id = PageId(std::num::NonZeroU32::new(self.last).unwrap_or(std::num::NonZeroU32::MAX));
        self.all.insert(id, page);
        id
    }

    /// Notes that an entry of a page is settled.
    pub(crate) fn settle(&mut self, id: PageId, lsn: Lsn) {
        let Some(page) = self.all.get_mut(&id) else { return };
        // A page of this run alone needs no list of settled records.
        if page.is_durable {
            page.settled.insert(lsn.0);
        }
        self.let_go(id, 1);
    }

    /// Notes that the entry with this sequence number was taken out of the middle of its page. The rest
    /// can go to disk again, because the page has all of them.
    pub(crate) fn note_hole(&mut self, id: PageId, sequence: u64) {
        if let Some(page) = self.all.get_mut(&id) {
            page.holes.insert(sequence);
        }
    }

    /// Notes that `count` entries of a page are no longer needed.
    pub(crate) fn let_go(&mut self, id: PageId, count: u32) {
        let Some(page) = self.all.get_mut(&id) else { return };
        page.live = page.live.saturating_sub(count);
        // A page that is being written is forgotten afterwards.
        if page.live == 0 && (page.place.is_some() || page.in_journal.is_some() || page.is_failed) {
            self.forget(id);
        }
    }

    /// Notes that a page is on disk; `false` if it is no longer needed.
    pub(crate) fn written(&mut self, id: PageId, place: PagePlace, is_durable: bool) -> bool {
        match self.all.get_mut(&id) {
            Some(page) => {
                page.place = Some(place);
                page.apart = None;
                page.in_journal = None;
                let is_needed = page.live > 0;
                if !is_needed {
                    self.forget(id);
                }
                is_needed
            }
            None => {
                self.note_gone(GonePage { place, is_durable });
                false
            }
        }
    }

    /// Notes that a page could not be written.
    pub(crate) fn failed(&mut self, id: PageId) {
        if let Some(page) = self.all.get_mut(&id) {
            if let Some(in_journal) = page.in_journal.as_mut().filter(|in_journal| !in_journal.is_read) {
                in_journal.is_moving = false;
                return;
            }
            page.in_journal = None;
            page.is_failed = true;
            if page.live == 0 {
                self.forget(id);
            }
        }
    }

    pub(crate) fn forget(&mut self, id: PageId) {
        if let Some(Page { place: Some(place), is_durable, .. }) = self.all.remove(&id) {
            self.note_gone(GonePage { place, is_durable });
        }
        if self.all.is_empty() {
            self.all.shrink_to_fit();
        }
    }

    fn note_gone(&mut self, page: GonePage) {
        match page.is_durable {
            true => {
                self.gone.push(page);
                self.gone_untold += 1;
            }
            false => self.transient_gone.push(page),
        }
    }

    /// Takes the durable pages that went since the last call.
    pub(crate) fn take_gone(&mut self) -> Vec<GonePage> {
        self.gone_untold = 0;
        std::mem::take(&mut self.gone)
    }

    /// The number of durable pages that went since the last report.
    pub(crate) fn take_untold(&mut self) -> usize {
        std::mem::take(&mut self.gone_untold)
    }

    /// Takes the pages of this run alone that went since the last call.
    pub(crate) fn take_transient_gone(&mut self) -> Vec<GonePage> {
        std::mem::take(&mut self.transient_gone)
    }

    /// Forgets all pages, and returns those that are on disk.
    pub(crate) fn take_all(&mut self) -> Vec<GonePage> {
        let placed = |(_, page): (PageId, Page)| {
            page.place.map(|place| GonePage { place, is_durable: page.is_durable })
        };
        let mut all: Vec<GonePage> = std::mem::take(&mut self.all).into_iter().filter_map(placed).collect();
        all.append(&mut self.gone);
        all.append(&mut self.transient_gone);
        all
    }

    /// The durable pages that are settled in part, and their settled records.
    pub(crate) fn partly_settled(&self) -> impl Iterator<Item = (PagePlace, &Ranges)> {
        let pages = self.all.values().filter(|page| page.is_durable && !page.settled.is_empty());
        pages.filter_map(|page| Some((page.place?, &page.settled)))
    }
}

#[cfg(test)]
impl Pages {
    /// Bytes of memory that the pages take that are not packed.
    pub(crate) fn memory_used(&self) -> usize {
        // A byte for each place of the table besides.
        self.all.capacity() * 8 / 7 * (size_of::<(PageId, Page)>() + 1)
    }
}

impl Page {
    /// A page at rest: all of its entries are needed, and are on disk alone.
    pub(crate) fn at_rest(
        place: PagePlace,
        (is_durable, is_doubtful, priority): (bool, bool, u8),
        live: u32,
        first_sequence: Option<u64>,
        records: (Lsn, Lsn),
    ) -> Page {
        Page {
            place: Some(place),
            in_journal: None,
            is_durable,
            is_failed: false,
            holes: Ranges::default(),
            is_doubtful,
            priority,
            live,
            first_sequence,
            delayed: None,
            settled: Ranges::default(),
            records,
            apart: None,
        }
    }

    /// Number of entries, if [`Page::at_rest`] could restore the page without loss; else `None`.
    pub(crate) fn len_at_rest(&self) -> Option<u32> {
        let is_on_disk = self.place.is_some() && self.in_journal.is_none() && !self.is_failed;
        let has_more = self.delayed.is_some() || self.apart.is_some();
        let is_plain = is_on_disk && !has_more && self.settled.is_empty() && self.holes.is_empty();
        is_plain.then_some(self.live)
    }

    /// Notes the record of one of its entries.
    fn note_record(&mut self, lsn: Lsn) {
        let (first, last) = self.records;
        self.records = (first.min(lsn), last.max(lsn));
    }

    /// Tells whether one of its entries is settled.
    pub(crate) fn is_settled(&self, lsn: Lsn) -> bool {
        self.settled.contains(lsn.0)
    }

    /// Records of the settled entries.
    pub(crate) fn settled(&self) -> &Ranges {
        &self.settled
    }

    /// Sequence numbers of entries that were taken out from between others.
    pub(crate) fn holes(&self) -> &Ranges {
        &self.holes
    }

    /// The source to read the page from; `None` while it is being written.
    pub(crate) fn source(&self) -> Option<PageSource> {
        let in_journal = self.in_journal.as_ref().filter(|in_journal| !in_journal.is_read);
        let in_journal = || Some(PageSource::Journal(in_journal?.read.clone()));
        self.place.map(PageSource::Segment).or_else(in_journal)
    }

    /// Whether the entries are on disk and outlive the broker.
    pub(crate) fn is_kept(&self) -> bool {
        self.is_durable && self.place.is_some()
    }
}
