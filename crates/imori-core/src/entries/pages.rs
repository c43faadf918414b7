//! The pages of a queue: entries of one priority that stand on disk together, known here without their bodies.
//!
//! A page is needed until all of its entries are settled, whether they are on disk alone or in memory too. While a
//! page is settled in part, the numbers of the settled records are kept as ranges.

use std::collections::BTreeSet;

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use crate::confirm::Lsn;
use crate::id::DurableQueueId;
use crate::time::Time;

use super::journal_page::{JournalPage, JournalRead};
use super::ranges::Ranges;

/// The lowest position of delayed messages; positions above hold due times. No record has such a number.
const DELAYED_FROM: u64 = 1 << 63;

/// When a delayed message is due, and the sequence number that it got when it came.
pub(crate) type DuePlace = (Time, u64);

/// The position in its page of a delayed message.
pub(crate) fn delayed_position(due: Time) -> u64 {
    DELAYED_FROM | due.0
}

/// A page of a queue, for as long as the broker runs; never used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PageId(std::num::NonZeroU32);

/// Where a page is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PagePlace {
    /// The number of its segment.
    pub segment: u32,
    /// Its index there.
    pub index: u32,
}

/// Where a page can be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PageSource {
    /// In a segment.
    Segment(PagePlace),
    /// In the journal.
    Journal(JournalRead),
}

/// The facts about a page that the broker found at its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageFacts {
    /// Whose entries these are.
    pub queue: DurableQueueId,
    /// Their priority.
    pub priority: u8,
    /// Where it is.
    pub place: PagePlace,
    /// How many entries it has.
    pub count: u32,
    /// The lowest number of their records.
    pub first: Lsn,
    /// The highest.
    pub last: Lsn,
    /// The lowest position of an entry: pages of a priority follow each other in this order.
    pub first_position: u64,
    /// The highest.
    pub last_position: u64,
}

impl PageFacts {
    /// Tells whether its messages were not due when it was written.
    #[must_use]
    pub fn is_delayed(&self) -> bool {
        self.first_position >= DELAYED_FROM
    }
}

/// A page that nobody needs any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GonePage {
    /// Where it is.
    pub place: PagePlace,
    /// The page's segment outlives the broker.
    pub is_durable: bool,
}

/// A durable page whose messages were purged: all of them, as its records are in no other place of the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PurgedPage {
    /// Whose page it was.
    pub queue: DurableQueueId,
    /// Where it is.
    pub place: PagePlace,
    /// The highest number of a record in it.
    pub last: Lsn,
}

/// The state of a page: where it is, and which of its entries are still needed.
#[derive(Debug)]
pub(crate) struct Page {
    /// Where it is; none until it is written, and while it is in the journal.
    pub(crate) place: Option<PagePlace>,
    /// Its records, while these are all that there is of it.
    pub(crate) in_journal: Option<JournalPage>,
    pub(crate) is_durable: bool,
    /// The page could not be written.
    pub(crate) is_failed: bool,
    /// Numbers of entries that were taken out from between others.
    holes: Ranges,
    /// Nobody knows whether its entries were given out before the broker was away.
    pub(crate) is_doubtful: bool,
    pub(crate) priority: u8,
    /// Entries that are not settled.
    live: u32,
    /// The number of the first entry where they were numbered anew since the page was written.
    pub(crate) first_sequence: Option<u64>,
    /// The due time and sequence number of each delayed message, by rising sequence number. `None` for other pages.
    pub(crate) delayed: Option<Box<[DuePlace]>>,
    /// Records of those of its entries that are settled.
    settled: Ranges,
    /// The highest number of a record in it, of a durable page.
    last: Lsn,
    /// Records of its entries that are in no memory, where it is being written or others of its entries are elsewhere.
    apart: Option<Box<[Lsn]>>,
}

/// The pages of a queue.
#[derive(Debug, Default)]
pub(crate) struct Pages {
    all: HashMap<PageId, Page, FixedState>,
    last: u32,
    /// Pages that were found in the journal, in their order; some may have left it.
    in_journal: Vec<PageId>,
    /// Durable pages that nobody needs, and how many of them nobody was told of.
    gone: Vec<GonePage>,
    gone_untold: usize,
    /// Pages of this run alone that nobody needs.
    transient_gone: Vec<GonePage>,
    /// Durable pages that were purged, and that a start would need.
    purged: Vec<PurgedPage>,
}

impl Pages {
    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Tells whether there are none, and nobody has to be told of any that went.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.all.is_empty() && self.gone_untold == 0 && self.transient_gone.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    pub(crate) fn get(&self, id: PageId) -> Option<&Page> {
        self.all.get(&id)
    }

    pub(crate) fn get_mut(&mut self, id: PageId) -> Option<&mut Page> {
        self.all.get_mut(&id)
    }

    /// A page of so many entries that is going to be written.
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
            last: Lsn::NONE,
            apart: None,
        })
    }

    /// A page of delayed messages that is going to be written.
    pub(crate) fn begin_delayed(&mut self, is_durable: bool, places: Vec<DuePlace>) -> PageId {
        let id = self.begin(0, is_durable, u32::try_from(places.len()).unwrap_or(u32::MAX));
        self.hold_delayed(id, places);
        id
    }

    /// Notes that the messages of a page are delayed ones, which belong there.
    pub(crate) fn hold_delayed(&mut self, id: PageId, mut places: Vec<DuePlace>) {
        places.sort_unstable_by_key(|(_, sequence)| *sequence);
        if let Some(page) = self.all.get_mut(&id) {
            page.delayed = Some(places.into_boxed_slice());
        }
    }

    /// A page that was found at the start.
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
            last: page.last,
            apart: None,
        })
    }

    /// A page that was found in the journal, and the number of its first entry.
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
            added.last = page.read.lsns.iter().copied().max().unwrap_or_default();
            added.in_journal = Some(page);
            added.first_sequence = Some(first_sequence);
            added.is_doubtful = is_doubtful;
        }
        id
    }

    /// Notes that the entries of a page that is in the journal are in memory now: it is a page no more, unless it is
    /// being written.
    pub(crate) fn leave_journal(&mut self, id: PageId) {
        let page = self.all.get_mut(&id).and_then(|page| page.in_journal.as_mut());
        match page {
            Some(in_journal) if in_journal.is_moving => in_journal.is_read = true,
            _ => self.forget(id),
        }
    }

    /// The pages that are in the journal, those of each priority in their order.
    pub(crate) fn in_journal(&mut self) -> Vec<PageId> {
        let Pages { all, in_journal, .. } = self;
        in_journal.retain(|id| all.get(id).is_some_and(|page| page.in_journal.is_some()));
        in_journal.clone()
    }

    /// Notes that a page that is going to be written has one more entry.
    pub(crate) fn grow(&mut self, id: PageId, lsn: Lsn) {
        if let Some(page) = self.all.get_mut(&id) {
            page.live += 1;
            page.last = page.last.max(lsn);
        }
    }

    /// Notes the records of entries of a durable page that are in no memory from now on, beside those that were in none
    /// before. All entries of a page that is on disk need no list: then the page says which they are.
    pub(crate) fn set_apart(&mut self, id: PageId, lsns: impl ExactSizeIterator<Item = Lsn> + Clone) {
        let Some(page) = self.all.get_mut(&id).filter(|page| page.is_durable) else { return };
        page.last = lsns.clone().fold(page.last, Lsn::max);
        let is_whole = page.place.is_some() && lsns.len() >= page.live as usize;
        page.apart = (!is_whole).then(|| {
            let before = page.apart.take().unwrap_or_default();
            before.into_iter().chain(lsns).collect()
        });
    }

    /// The records of a page's entries that are in no memory, where there is a list of them. They are purged, so that
    /// another part of the page has none.
    pub(crate) fn take_apart(&mut self, id: PageId) -> Option<Vec<Lsn>> {
        let apart = self.all.get_mut(&id)?.apart.as_mut()?;
        Some(std::mem::take(apart).into_vec())
    }

    /// Notes that entries of a page are in memory again, whose others may be in none.
    pub(crate) fn join(&mut self, id: PageId, lsns: impl Iterator<Item = Lsn>) {
        if let Some(apart) = self.all.get_mut(&id).and_then(|page| page.apart.as_mut()) {
            let joined: BTreeSet<Lsn> = lsns.collect();
            *apart = apart.iter().copied().filter(|lsn| !joined.contains(lsn)).collect();
        }
    }

    /// Forgets a durable page that was purged whole; nothing where it is not known where that is. What is known of its
    /// records stays on disk until the journal has none of them any more.
    pub(crate) fn purge(&mut self, queue: DurableQueueId, id: PageId) -> Option<PurgedPage> {
        let page = self.all.get(&id).filter(|page| page.is_durable && page.apart.is_none())?;
        let purged = PurgedPage { queue, place: page.place?, last: page.last };
        self.all.remove(&id);
        self.purged.push(purged);
        self.gone_untold += 1;
        Some(purged)
    }

    /// Takes back pages that were purged before the broker was away.
    pub(crate) fn restore_purged(&mut self, purged: Vec<PurgedPage>) {
        self.purged = purged;
    }

    /// The purged pages that nobody needs once the journal has no record below `floor` any more.
    pub(crate) fn take_purged(&mut self, floor: Lsn) -> Vec<GonePage> {
        let gone = self.purged.extract_if(.., |page| page.last < floor);
        gone.map(|page| GonePage { place: page.place, is_durable: true }).collect()
    }

    fn add(&mut self, page: Page) -> PageId {
        // Four milliards of pages are a petabyte.
        self.last = self.last.saturating_add(1);
        let id = PageId(std::num::NonZeroU32::new(self.last).unwrap_or(std::num::NonZeroU32::MAX));
        self.all.insert(id, page);
        id
    }

    /// Notes that an entry of a page is settled.
    pub(crate) fn settle(&mut self, id: PageId, lsn: Lsn) {
        let Some(page) = self.all.get_mut(&id) else { return };
        // What is on disk for this run alone needs no memory of what is settled.
        if page.is_durable {
            page.settled.insert(lsn.0);
        }
        self.let_go(id, 1);
    }

    /// Notes that the entry with this number was taken out from between others of its page. Those that are left can
    /// go to disk again, where the page has all of them.
    pub(crate) fn note_hole(&mut self, id: PageId, sequence: u64) {
        if let Some(page) = self.all.get_mut(&id) {
            page.holes.insert(sequence);
        }
    }

    /// Notes that so many entries of a page are not needed any more.
    pub(crate) fn let_go(&mut self, id: PageId, count: u32) {
        let Some(page) = self.all.get_mut(&id) else { return };
        page.live = page.live.saturating_sub(count);
        // What is being written is forgotten when that is done.
        if page.live == 0 && (page.place.is_some() || page.in_journal.is_some() || page.is_failed) {
            self.forget(id);
        }
    }

    /// Notes that a page is on disk; false where nobody needs it any more.
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

    /// The durable pages that went since the last call.
    pub(crate) fn take_gone(&mut self) -> Vec<GonePage> {
        self.gone_untold = 0;
        std::mem::take(&mut self.gone)
    }

    /// How many durable pages went since the last call of either.
    pub(crate) fn take_untold(&mut self) -> usize {
        std::mem::take(&mut self.gone_untold)
    }

    /// The pages of this run alone that went since the last call.
    pub(crate) fn take_transient_gone(&mut self) -> Vec<GonePage> {
        std::mem::take(&mut self.transient_gone)
    }

    /// Forgets all of them, and gives those that are on disk.
    pub(crate) fn take_all(&mut self) -> Vec<GonePage> {
        let placed = |(_, page): (PageId, Page)| {
            page.place.map(|place| GonePage { place, is_durable: page.is_durable })
        };
        let mut all: Vec<GonePage> = std::mem::take(&mut self.all).into_iter().filter_map(placed).collect();
        all.append(&mut self.gone);
        all.extend(self.take_purged(Lsn::NEVER));
        all.append(&mut self.transient_gone);
        all
    }

    /// The durable pages that are settled in part, and which of their records are.
    pub(crate) fn partly_settled(&self) -> impl Iterator<Item = (PagePlace, &Ranges)> {
        let pages = self.all.values().filter(|page| page.is_durable && !page.settled.is_empty());
        pages.filter_map(|page| Some((page.place?, &page.settled)))
    }
}

impl Page {
    /// Tells whether one of its entries is settled.
    pub(crate) fn is_settled(&self, lsn: Lsn) -> bool {
        self.settled.contains(lsn.0)
    }

    /// Records of those of its entries that are settled.
    pub(crate) fn settled(&self) -> &Ranges {
        &self.settled
    }

    /// Numbers of entries that were taken out from between others.
    pub(crate) fn holes(&self) -> &Ranges {
        &self.holes
    }

    /// Where it can be read; none while it is being written.
    pub(crate) fn source(&self) -> Option<PageSource> {
        let in_journal = self.in_journal.as_ref().filter(|in_journal| !in_journal.is_read);
        let in_journal = || Some(PageSource::Journal(in_journal?.read.clone()));
        self.place.map(PageSource::Segment).or_else(in_journal)
    }

    /// Tells whether its entries are on disk and outlive the broker.
    pub(crate) fn is_kept(&self) -> bool {
        self.is_durable && self.place.is_some()
    }
}
