//! Jobs of the pager: writing, reading and discarding pages of queues too long for memory.
//!
//! The server runs these functions on threads, the simulator in its steps.

use std::io;

use imori_core::broker;
use imori_core::confirm::Lsn;
use imori_core::entries::{Entry, GonePage, JournalRead, PageId, PagePlace, PageSource};
use imori_core::id::{DurableQueueId, QueueId};
use imori_core::memory::Gauge;
use imori_core::paging::{PageDraft, PageWork};
use imori_core::record::{decode_journal_entry, decode_page_entry, encode_page};
use imori_core::world::World;
use imori_store::disk::is_out_of_resources;
use imori_store::limits::SEGMENT_PAGES_MAX;
use imori_store::segment::{
    Durability, NewPage, Page, PageDamage, PageEntry, PageError, PageFacts, PageRef, PageTimes, SubjectDigest,
};
use tracing::{debug, warn};

use super::page_facts::{page_ref, place_of};
use super::room::Purpose;

/// The result of a job, which a cell reports to the queue.
#[derive(Debug)]
pub enum PageNews {
    /// The page is on disk.
    Written(QueueId, PageDraft, PagePlace),
    /// The page could not be written.
    Failed(QueueId, PageDraft),
    /// The page was read, as far as it verifies.
    Read(QueueId, PageId, Vec<Entry>),
    /// The page could not be read at this source.
    Unreadable(QueueId, PageId, PageSource),
    /// Pages of messages that are also elsewhere were written or failed; the queue knows which, and its memory is
    /// checked again.
    Copied(QueueId),
}

/// A job for a queue.
#[derive(Debug)]
pub enum Job {
    /// Writes pages; durable ones under the queue's number in the store.
    Write(QueueId, Option<DurableQueueId>, Vec<PageDraft>),
    /// Reads pages.
    Read(QueueId, Vec<(PageId, PageSource)>),
    /// Discards pages that only this run uses.
    Discard(Vec<GonePage>),
}

/// A queue's request, by the thread that serves it.
#[derive(Debug)]
pub enum PageRequest {
    /// For the thread that writes pages.
    Writer(Job),
    /// For the thread that reads pages.
    Reader(Job),
    /// For the checkpointer: this many more pages would be freed by a checkpoint.
    Spared(usize),
    /// For the checkpointer: durable pages to discard after the next checkpoint, and a job that discards transient
    /// ones now.
    Gone(Vec<GonePage>, Option<Job>),
}

/// Access to segments and cells that the jobs need.
pub trait PageHost {
    /// The gauge that the messages of read pages are charged to.
    fn gauge(&self) -> &Gauge;

    /// Waits until all records through this one are durable; false if they may never be.
    fn await_records(&self, through: Lsn) -> bool;

    /// Whether the disk has room for a segment of `bytes`; logs it if not.
    fn has_room(&self, bytes: u64, purpose: Purpose) -> bool;

    /// Logs that a segment was not written, rate-limited.
    fn log_failure(&self, reason: &str);

    /// Writes pages as one segment.
    fn write_segment(&self, pages: &[NewPage], durability: Durability) -> io::Result<Vec<PageFacts>>;

    /// Reads a page.
    fn read_page(&self, page: PageRef) -> Result<Page, PageError>;

    /// Reads messages that stayed in the journal; passes each with its LSN and payload to `take`.
    fn read_journal(&self, lsns: &[Lsn], take: &mut dyn FnMut(Lsn, &[u8])) -> io::Result<()>;

    /// Discards a page.
    fn discard_page(&self, page: PageRef) -> io::Result<()>;

    /// Reports a page that verifies only in part.
    fn tell_damage(&self, _queue: QueueId, damage: &PageDamage) {
        warn!(%damage, "a page is damaged; what verifies is served");
    }

    /// Reports a page whose row and its copy are lost.
    fn tell_lost(&self, _queue: QueueId, _page: PageRef) {}

    /// Ends the broker, whose disk failed.
    fn fail(&self, error: &io::Error);

    /// Sends news to the queue's cell.
    fn tell(&self, queue: QueueId, news: PageNews);
}

/// Sorts a queue's request by the thread that serves it. `owner` returns the queue's number in the store.
pub fn page_request(
    queue: QueueId,
    owner: impl FnOnce() -> Option<DurableQueueId>,
    work: PageWork,
) -> PageRequest {
    match work {
        PageWork::Write(drafts) => PageRequest::Writer(Job::Write(queue, owner(), drafts)),
        PageWork::Read(pages) => PageRequest::Reader(Job::Read(queue, pages)),
        PageWork::Spared(pages) => PageRequest::Spared(pages),
        PageWork::Gone(pages) => {
            let (durable, transient): (Vec<_>, Vec<_>) = pages.into_iter().partition(|page| page.is_durable);
            PageRequest::Gone(durable, (!transient.is_empty()).then_some(Job::Discard(transient)))
        }
    }
}

/// Runs a job.
pub fn do_job<H: PageHost>(host: &H, job: Job) {
    match job {
        Job::Write(queue, owner, drafts) => write(host, queue, owner, drafts),
        Job::Read(queue, pages) => {
            for (id, source) in pages {
                let news = match read(host, queue, &source) {
                    Some(entries) => PageNews::Read(queue, id, entries),
                    None => PageNews::Unreadable(queue, id, source),
                };
                host.tell(queue, news);
            }
        }
        Job::Discard(pages) => discard_pages(host, &pages),
    }
}

fn write<H: PageHost>(host: &H, queue: QueueId, owner: Option<DurableQueueId>, drafts: Vec<PageDraft>) {
    let (durable, transient): (Vec<_>, Vec<_>) = drafts.into_iter().partition(PageDraft::is_durable);
    for (drafts, durability) in [(durable, Durability::Durable), (transient, Durability::Transient)] {
        let mut drafts = drafts.into_iter().peekable();
        while drafts.peek().is_some() {
            let drafts: Vec<PageDraft> = drafts.by_ref().take(SEGMENT_PAGES_MAX).collect();
            write_one(host, queue, owner, drafts, durability);
        }
    }
}

fn write_one<H: PageHost>(
    host: &H,
    queue: QueueId,
    owner: Option<DurableQueueId>,
    drafts: Vec<PageDraft>,
    durability: Durability,
) {
    let owner = owner.map_or(0, |owner| owner.0);
    let owned = drafts.iter().map(|draft| (owner, draft));
    match write_drafts(host, owned, durability, Purpose::Memory) {
        Some(places) => {
            for (draft, place) in drafts.into_iter().zip(places) {
                host.tell(queue, PageNews::Written(queue, draft, place));
            }
        }
        None => drafts.into_iter().for_each(|draft| host.tell(queue, PageNews::Failed(queue, draft))),
    }
}

/// Reads a page as far as it verifies. Returns `None` if it cannot be read at `source`.
pub(super) fn read<H: PageHost>(host: &H, queue: QueueId, source: &PageSource) -> Option<Vec<Entry>> {
    match source {
        PageSource::Segment(place) => read_segment(host, queue, *place),
        PageSource::Journal(read) => read_journal(host, read),
    }
}

fn read_segment<H: PageHost>(host: &H, queue: QueueId, place: PagePlace) -> Option<Vec<Entry>> {
    let page = host.read_page(page_ref(place));
    let page = page.inspect_err(|error| {
        warn!(%error, "messages of a page wait for the next start");
        if let PageError::Lost(page) = error {
            host.tell_lost(queue, *page);
        }
    });
    let page = page.ok()?;
    page.damage.iter().for_each(|damage| host.tell_damage(queue, damage));
    let decode = |entry: PageEntry| {
        let lsn = Lsn(entry.lsn.0);
        decode_page_entry(lsn, &entry.payload, host.gauge())
            .inspect_err(|error| warn!(lsn = lsn.0, %error, "an entry of a page cannot be read"))
            .ok()
    };
    Some(page.entries.into_iter().filter_map(decode).collect())
}

/// Reads a page that is in the journal. Returns `None` unless all of it can be read.
pub fn read_journal<H: PageHost>(host: &H, read: &JournalRead) -> Option<Vec<Entry>> {
    let mut entries = Vec::with_capacity(read.lsns.len());
    let done = host.read_journal(&read.lsns, &mut |lsn, payload| {
        entries.push(decode_journal_entry(lsn, payload, host.gauge()));
    });
    let entries = done.map_err(|error| error.to_string()).and_then(|()| {
        entries.into_iter().collect::<Result<Vec<Entry>, _>>().map_err(|error| error.to_string())
    });
    // A page that was moved meanwhile is read at its new location.
    entries.inspect_err(|error| debug!(error, "a page cannot be read in the journal")).ok()
}

/// Writes pages as one segment. Returns `None` if the disk has no room; any other error ends the broker.
///
/// A durable page waits for the records of its messages. A crash that kept the page but lost these records would let
/// their LSNs be assigned again, and the page's entries would be taken for other messages. A group of records that
/// moves or commits messages would survive in part.
pub fn write_drafts<'a, H: PageHost>(
    host: &H,
    drafts: impl Iterator<Item = (u64, &'a PageDraft)>,
    durability: Durability,
    purpose: Purpose,
) -> Option<Vec<PagePlace>> {
    let drafts: Vec<(u64, &PageDraft)> = drafts.collect();
    let bytes = drafts.iter().map(|(_, draft)| draft.written_bytes() as u64).sum();
    // Checked before the wait for the journal, which would hold up jobs that give room back.
    if purpose == Purpose::Memory && !host.has_room(bytes, purpose) {
        return None;
    }
    let last = drafts.iter().map(|(_, draft)| draft.last_record()).max();
    if durability == Durability::Durable && !last.is_none_or(|last| host.await_records(last)) {
        host.log_failure("the journal does not go on");
        return None;
    }
    // Encoded after the wait, because the encoded pages take memory of their own.
    let pages: Vec<NewPage> = drafts.into_iter().map(|(owner, draft)| new_page(owner, draft)).collect();
    let bytes = pages.iter().map(NewPage::encoded_bytes).sum();
    if !host.has_room(bytes, purpose) {
        return None;
    }
    match host.write_segment(&pages, durability) {
        Ok(facts) => Some(facts.iter().map(|facts| place_of(facts.page)).collect()),
        Err(error) => {
            host.log_failure(&error.to_string());
            if !is_out_of_resources(&error) {
                host.fail(&error);
            }
            None
        }
    }
}

fn new_page(owner: u64, draft: &PageDraft) -> NewPage {
    let entries = encode_page(draft).into_iter().map(|entry| PageEntry {
        lsn: imori_store::lsn::Lsn(entry.lsn.0),
        sequence: entry.position,
        payload: entry.payload,
    });
    let (first, last) = draft.times();
    // A time of the core is in microseconds.
    let times = PageTimes { first: first.0 / 1000, last: last.0 / 1000 };
    let subjects = draft.subjects().map_or(SubjectDigest::NONE, |digest| SubjectDigest {
        kind: imori_core::index::SubjectDigest::KIND,
        bytes: digest.bytes(),
    });
    NewPage { owner, level: draft.priority(), times, subjects, entries: entries.collect() }
}

/// Discards pages.
pub fn discard_pages<H: PageHost>(host: &H, pages: &[GonePage]) {
    for page in pages {
        if let Err(error) = host.discard_page(page_ref(page.place)) {
            warn!(%error, segment = page.place.segment, "a segment cannot be removed; the next start does it");
        }
    }
}

impl PageNews {
    /// Reports the news to its queue.
    pub fn tell<W: World>(self, world: &W) {
        match self {
            PageNews::Written(queue, draft, place) => broker::page_written(world, queue, draft, place),
            PageNews::Failed(queue, draft) => broker::page_failed(world, queue, draft),
            PageNews::Read(queue, page, entries) => {
                let lost = broker::page_read(world, queue, page, entries);
                if lost > 0 {
                    let queue = world.with_queue(queue, |queue| queue.name().to_string());
                    warn!(queue, lost, "messages of a damaged page are lost");
                }
            }
            PageNews::Unreadable(queue, page, source) => {
                let withheld = broker::page_unreadable(world, queue, page, &source);
                if withheld > 0 {
                    warn!(withheld, "messages of a page that cannot be read are withheld");
                }
            }
            PageNews::Copied(queue) => broker::pages_copied(world, queue),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};
    use std::sync::Arc;

    use imori_core::id::VhostId;
    use imori_core::message::{
        Address, AddressView, Message, MessageView, OriginId, Properties, Publication,
    };
    use imori_core::name::Name;
    use imori_core::queue::{Arrival, Effects, Queue, QueueSettings};
    use imori_core::time::Time;
    use imori_store::disk::sim_disk::SimDisk;
    use imori_store::manifest::Manifest;
    use imori_store::seal::StoreId;
    use imori_store::segment::{SegmentSettings, Segments};
    use imori_store::settings::OnDamage;

    use super::*;

    const QUEUE: QueueId = QueueId { slot: 0, generation: 0 };

    struct Host {
        gauge: Gauge,
        segments: Segments<SimDisk>,
        /// The journal gets no further than this.
        synced: Lsn,
        awaited: Cell<Lsn>,
        has_room: bool,
        told: RefCell<Vec<PageNews>>,
    }

    impl PageHost for Host {
        fn gauge(&self) -> &Gauge {
            &self.gauge
        }

        fn await_records(&self, through: Lsn) -> bool {
            self.awaited.set(through);
            through <= self.synced
        }

        fn has_room(&self, _bytes: u64, _purpose: Purpose) -> bool {
            self.has_room
        }

        fn log_failure(&self, _reason: &str) {}

        fn write_segment(&self, pages: &[NewPage], durability: Durability) -> io::Result<Vec<PageFacts>> {
            self.segments.write(pages, durability)
        }

        fn read_page(&self, page: PageRef) -> Result<Page, PageError> {
            self.segments.read(page)
        }

        fn read_journal(&self, _lsns: &[Lsn], _take: &mut dyn FnMut(Lsn, &[u8])) -> io::Result<()> {
            Ok(())
        }

        fn discard_page(&self, page: PageRef) -> io::Result<()> {
            self.segments.discard(page)
        }

        fn fail(&self, _error: &io::Error) {}

        fn tell(&self, _queue: QueueId, news: PageNews) {
            self.told.borrow_mut().push(news);
        }
    }

    /// Makes a queue of 20 messages with these records page out what exceeds its memory.
    fn paged(lsn: impl Fn(u64) -> Lsn, synced: Lsn, has_room: bool) -> (Host, usize) {
        let gauge = Gauge::default();
        let mut queue =
            Queue::new(VhostId(0), Name::from("q"), QueueSettings::default(), gauge.clone(), Time(0));
        queue.make_durable(DurableQueueId(1));
        let address = Arc::new(Address::new(b"", b"q"));
        let properties = Properties::new(OriginId::BROKER);
        for number in 1..=20 {
            let view = MessageView { properties: &properties, text: b"", body: b"body" };
            let message = Message::store(&view, None, &gauge);
            let address = &AddressView::new(&address);
            let arrival = Arrival { address, deaths: None, lsn: lsn(number), now: Time(0) };
            queue.enqueue(&Publication::of_stored(&message), &arrival, &mut Effects::default());
        }
        let disk = SimDisk::default();
        let settings = SegmentSettings::new(StoreId([1; 16]), OnDamage::Refuse);
        let (segments, ..) =
            Segments::open(disk.clone(), &settings, &Manifest::default()).expect("it is empty");
        let (awaited, told) = (Cell::new(Lsn::NONE), RefCell::default());
        let host = Host { gauge, segments, synced, awaited, has_room, told };
        for work in queue.page_work(Time(0), 2_000) {
            if let PageRequest::Writer(job) = page_request(QUEUE, || Some(DurableQueueId(1)), work) {
                do_job(&host, job);
            }
        }
        (host, disk.state().names().len())
    }

    #[test]
    fn a_durable_page_waits_for_the_records_of_its_messages() {
        let (host, files) = paged(Lsn, Lsn::NONE, true);
        assert_eq!(files, 0, "a page is on disk whose records are not");
        let told = host.told.borrow();
        assert!(!told.is_empty() && told.iter().all(|news| matches!(news, PageNews::Failed(..))));

        let (host, files) = paged(Lsn, host.awaited.get(), true);
        let told = host.told.borrow();
        assert!(files == 1 && told.iter().all(|news| matches!(news, PageNews::Written(..))), "{told:?}");
    }

    #[test]
    fn a_page_of_this_run_alone_waits_for_nothing() {
        let (host, files) = paged(|_| Lsn::NONE, Lsn::NONE, true);
        assert_eq!((files, host.awaited.get()), (1, Lsn::NONE));
        assert!(host.told.borrow().iter().all(|news| matches!(news, PageNews::Written(..))));
    }

    #[test]
    fn where_there_is_no_room_a_page_waits_for_nothing_either() {
        let (host, files) = paged(Lsn, Lsn(1_000), false);
        assert_eq!((files, host.awaited.get()), (0, Lsn::NONE));
        assert!(host.told.borrow().iter().all(|news| matches!(news, PageNews::Failed(..))));
    }
}
