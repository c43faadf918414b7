//! What is done for queues that are longer than their memory: pages are written, read and given up, and the queues
//! told. The server's threads do it, and the simulator's steps.

use std::io;

use bytes::Bytes;
use imori_core::broker;
use imori_core::id::{DurableQueueId, QueueId};
use imori_core::memory::Gauge;
use imori_core::queue::{Entry, GonePage, PageDraft, PageId, PagePlace, PageWork};
use imori_core::record::{decode_page_entry, encode_page};
use imori_core::world::World;
use imori_store::disk::is_scarce;
use imori_store::segment::{Durability, NewPage, Page, PageEntry, PageError, PageFacts, PageRef};
use tracing::warn;

/// What came of what a queue asked for.
#[derive(Debug)]
pub enum PageNews {
    /// A page is on disk.
    Written(QueueId, PageDraft, PagePlace),
    /// A page could not be written.
    Failed(QueueId, PageDraft),
    /// A page was read, as far as it verifies.
    Read(QueueId, PageId, Vec<Entry>),
    /// A page could not be read.
    Unreadable(QueueId, PageId),
}

/// Something to do for a queue.
#[derive(Debug)]
pub enum Job {
    /// Writes pages, durable ones under the name of their queue.
    Write(QueueId, Option<DurableQueueId>, Vec<PageDraft>),
    /// Reads pages.
    Read(QueueId, Vec<(PageId, PagePlace)>),
    /// Gives up pages of this run alone.
    Discard(Vec<GonePage>),
}

/// What a queue asks for, by who does it.
#[derive(Debug)]
pub enum Asked {
    /// Whoever writes pages.
    Writer(Job),
    /// Whoever reads them.
    Reader(Job),
    /// The keeper: so many pages would go.
    Spared(usize),
    /// The keeper: the first go after the next checkpoint; the others, of this run alone, are a job.
    Gone(Vec<GonePage>, Option<Job>),
}

/// The segments as those have them who do such jobs.
pub trait PageHost {
    /// What the messages of pages that are read are charged to.
    fn gauge(&self) -> &Gauge;

    /// Writes pages as one segment.
    fn write_segment(&self, pages: &[NewPage], durability: Durability) -> io::Result<Vec<PageFacts>>;

    /// Reads a page.
    fn read_page(&self, page: PageRef) -> Result<Page, PageError>;

    /// Lets a page go.
    fn discard_page(&self, page: PageRef) -> io::Result<()>;

    /// Ends the broker, whose disk failed.
    fn fail(&self, error: &io::Error);

    /// Has a cell tell a queue.
    fn tell(&self, queue: QueueId, news: PageNews);
}

/// Sorts what a queue asks for by who does it; `owner` is what its store knows it by.
pub fn asked(queue: QueueId, owner: impl FnOnce() -> Option<DurableQueueId>, work: PageWork) -> Asked {
    match work {
        PageWork::Write(drafts) => Asked::Writer(Job::Write(queue, owner(), drafts)),
        PageWork::Read(pages) => Asked::Reader(Job::Read(queue, pages)),
        PageWork::Spared(pages) => Asked::Spared(pages),
        PageWork::Gone(pages) => {
            let (durable, transient): (Vec<_>, Vec<_>) = pages.into_iter().partition(|page| page.is_durable);
            Asked::Gone(durable, (!transient.is_empty()).then_some(Job::Discard(transient)))
        }
    }
}

/// Does a job.
pub fn do_job<H: PageHost>(host: &H, job: Job) {
    match job {
        Job::Write(queue, owner, drafts) => write(host, queue, owner, drafts),
        Job::Read(queue, pages) => {
            for (id, place) in pages {
                host.tell(queue, read(host, queue, id, place));
            }
        }
        Job::Discard(pages) => discard_pages(host, &pages),
    }
}

fn write<H: PageHost>(host: &H, queue: QueueId, owner: Option<DurableQueueId>, drafts: Vec<PageDraft>) {
    let (durable, transient): (Vec<_>, Vec<_>) = drafts.into_iter().partition(PageDraft::is_durable);
    for (drafts, durability) in [(durable, Durability::Durable), (transient, Durability::Transient)] {
        if drafts.is_empty() {
            continue;
        }
        let owner = owner.map_or(0, |owner| owner.0);
        match write_drafts(host, drafts.iter().map(|draft| (owner, draft)), durability) {
            Some(places) => {
                for (draft, place) in drafts.into_iter().zip(places) {
                    host.tell(queue, PageNews::Written(queue, draft, place));
                }
            }
            None => drafts.into_iter().for_each(|draft| host.tell(queue, PageNews::Failed(queue, draft))),
        }
    }
}

fn read<H: PageHost>(host: &H, queue: QueueId, id: PageId, place: PagePlace) -> PageNews {
    let page = match host.read_page(page_ref(place)) {
        Ok(page) => page,
        Err(error) => {
            warn!(%error, "messages of a page wait for the next start");
            return PageNews::Unreadable(queue, id);
        }
    };
    if let Some(damage) = page.damage {
        let (segment, index) = (place.segment, place.index);
        warn!(segment, index, lost = damage.lost, records = ?damage.lsns, "a page is damaged; what verifies is served");
    }
    let decode = |entry: PageEntry| {
        let lsn = imori_core::confirm::Lsn(entry.lsn.0);
        decode_page_entry(lsn, &entry.payload, host.gauge())
            .inspect_err(|error| warn!(lsn = lsn.0, %error, "an entry of a page cannot be read"))
            .ok()
    };
    PageNews::Read(queue, id, page.entries.into_iter().filter_map(decode).collect())
}

/// Writes pages as one segment; nothing where the disk has no room. Any other error ends the broker.
pub fn write_drafts<'a, H: PageHost>(
    host: &H,
    drafts: impl Iterator<Item = (u64, &'a PageDraft)>,
    durability: Durability,
) -> Option<Vec<PagePlace>> {
    let pages: Vec<NewPage> = drafts
        .map(|(owner, draft)| NewPage {
            owner,
            level: draft.priority(),
            entries: encode_page(draft)
                .into_iter()
                .map(|entry| PageEntry {
                    lsn: imori_store::lsn::Lsn(entry.lsn.0),
                    sequence: entry.position,
                    payload: Bytes::from(entry.payload),
                })
                .collect(),
        })
        .collect();
    match host.write_segment(&pages, durability) {
        Ok(facts) => Some(facts.iter().map(|facts| place_of(facts.page)).collect()),
        Err(error) => {
            warn!(%error, "a segment cannot be written; its messages stay in memory and in the journal");
            if !is_scarce(&error) {
                host.fail(&error);
            }
            None
        }
    }
}

/// Lets pages go.
pub fn discard_pages<H: PageHost>(host: &H, pages: &[GonePage]) {
    for page in pages {
        if let Err(error) = host.discard_page(page_ref(page.place)) {
            warn!(%error, segment = page.place.segment, "a segment cannot be removed; the next start does it");
        }
    }
}

fn page_ref(place: PagePlace) -> PageRef {
    PageRef::new(place.segment, place.index)
}

fn place_of(page: PageRef) -> PagePlace {
    PagePlace { segment: page.segment(), index: page.index() }
}

impl PageNews {
    /// Tells the queue.
    pub fn tell<W: World>(self, world: &W) {
        match self {
            PageNews::Written(queue, draft, place) => broker::page_written(world, queue, draft, place),
            PageNews::Failed(queue, draft) => broker::page_failed(world, queue, draft),
            PageNews::Read(queue, page, entries) => {
                let lost = broker::page_read(world, queue, page, entries);
                if lost > 0 {
                    warn!(lost, "messages of a damaged page are lost");
                }
            }
            PageNews::Unreadable(queue, page) => {
                let withheld = broker::page_unreadable(world, queue, page);
                warn!(withheld, "messages of a page that cannot be read are withheld");
            }
        }
    }
}
