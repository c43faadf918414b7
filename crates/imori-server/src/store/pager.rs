//! The threads that write and read pages, and what queues are told of it, each on a cell.

use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::{Builder, JoinHandle};
use std::time::Instant;

use bytes::Bytes;
use imori_core::broker;
use imori_core::id::{DurableQueueId, QueueId};
use imori_core::memory::Gauge;
use imori_core::queue::{Entry, GonePage, PageDraft, PageId, PagePlace, PageWork};
use imori_core::record::{decode_page_entry, encode_page};
use imori_core::world::World;
use imori_store::disk::{Disk, RealDisk, is_scarce};
use imori_store::limits::SEGMENT_PAGES_MAX;
use imori_store::segment::{Census, Durability, NewPage, PageEntry, PageRef, Segments};
use imori_store::space::Space;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tracing::{debug, error, warn};

use super::failure::Failure;
use super::room::{Purpose, Room};
use super::seldom::Seldom;
use crate::slots::unpoisoned;

/// What came of what a queue asked for.
pub(crate) enum PageNews {
    /// A page is on disk.
    Written(QueueId, PageDraft, PagePlace),
    /// A page could not be written.
    Failed(QueueId, PageDraft),
    /// A page was read, as far as it verifies.
    Read(QueueId, PageId, Vec<Entry>),
    /// A page could not be read.
    Unreadable(QueueId, PageId),
}

/// The threads, and who is told.
pub(crate) struct Pager {
    desk: Arc<Desk>,
    write: Mutex<Option<Sender<Job>>>,
    read: Mutex<Option<Sender<Job>>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    mail: Box<[Mutex<Option<UnboundedReceiver<PageNews>>>]>,
}

/// What both threads have.
struct Desk {
    segments: Segments<RealDisk>,
    failure: Arc<Failure>,
    gauge: Gauge,
    cells: Box<[UnboundedSender<PageNews>]>,
    /// What of the disk is not for segments.
    marks: OnceLock<Space>,
    complaints: Seldom,
}

enum Job {
    Write(QueueId, Option<DurableQueueId>, Vec<PageDraft>),
    Read(QueueId, Vec<(PageId, PagePlace)>),
    Discard(Vec<GonePage>),
}

impl Pager {
    /// Starts the threads, for so many cells.
    pub(super) fn start(
        segments: Segments<RealDisk>,
        failure: Arc<Failure>,
        gauge: Gauge,
        cells: usize,
    ) -> io::Result<Pager> {
        let (senders, receivers): (Vec<_>, Vec<_>) = (0..cells.max(1)).map(|_| unbounded_channel()).unzip();
        let cells = senders.into_boxed_slice();
        let (marks, complaints) = (OnceLock::new(), Seldom::default());
        let desk = Arc::new(Desk { segments, failure, gauge, cells, marks, complaints });
        let (write, to_write) = channel();
        let (read, to_read) = channel();
        let mut threads = Vec::new();
        for (name, jobs) in [("page-writer", to_write), ("page-reader", to_read)] {
            let desk = Arc::clone(&desk);
            threads.push(Builder::new().name(String::from(name)).spawn(move || desk.work(&jobs))?);
        }
        Ok(Pager {
            desk,
            write: Mutex::new(Some(write)),
            read: Mutex::new(Some(read)),
            threads: Mutex::new(threads),
            mail: receivers.into_iter().map(|receiver| Mutex::new(Some(receiver))).collect(),
        })
    }

    /// Says what of the disk is not for segments; said once, before there are any.
    pub(crate) fn leave(&self, marks: Space) {
        let _ = self.desk.marks.set(marks);
    }

    /// What there is for segments now.
    pub(crate) fn room(&self) -> io::Result<Room> {
        self.desk.room()
    }

    /// What a cell is told, which asks for it once.
    pub(crate) fn mail(&self, cell: u16) -> Option<UnboundedReceiver<PageNews>> {
        unpoisoned(self.mail.get(usize::from(cell))?.lock()).take()
    }

    /// Writes pages of a queue, durable ones under its name.
    pub(crate) fn write(&self, queue: QueueId, owner: Option<DurableQueueId>, drafts: Vec<PageDraft>) {
        send(&self.write, Job::Write(queue, owner, drafts));
    }

    /// Reads pages of a queue.
    pub(crate) fn read(&self, queue: QueueId, pages: Vec<(PageId, PagePlace)>) {
        send(&self.read, Job::Read(queue, pages));
    }

    /// Gives up pages of this run alone.
    pub(crate) fn discard(&self, pages: Vec<GonePage>) {
        send(&self.write, Job::Discard(pages));
    }

    /// Ends the threads when they have done what they were asked for.
    pub(crate) fn close(&self) {
        drop(unpoisoned(self.write.lock()).take());
        drop(unpoisoned(self.read.lock()).take());
        for thread in std::mem::take(&mut *unpoisoned(self.threads.lock())) {
            if thread.join().is_err() {
                error!("a thread of pages ended in a panic");
            }
        }
    }
}

/// Nobody asks any more once the threads end.
fn send(to: &Mutex<Option<Sender<Job>>>, job: Job) {
    if let Some(sender) = &*unpoisoned(to.lock()) {
        let _ = sender.send(job);
    }
}

impl Desk {
    fn work(&self, jobs: &Receiver<Job>) {
        while let Ok(job) = jobs.recv() {
            match job {
                Job::Write(queue, owner, drafts) => self.write(queue, owner, drafts),
                Job::Read(queue, pages) => {
                    for (id, place) in pages {
                        self.tell(queue, self.read(queue, id, place));
                    }
                }
                Job::Discard(pages) => discard(&self.segments, &pages),
            }
        }
    }

    fn write(&self, queue: QueueId, owner: Option<DurableQueueId>, drafts: Vec<PageDraft>) {
        let (durable, transient): (Vec<_>, Vec<_>) = drafts.into_iter().partition(PageDraft::is_durable);
        for (drafts, durability) in [(durable, Durability::Durable), (transient, Durability::Transient)] {
            let mut drafts = drafts.into_iter().peekable();
            while drafts.peek().is_some() {
                let drafts: Vec<PageDraft> = drafts.by_ref().take(SEGMENT_PAGES_MAX).collect();
                self.write_segment(queue, owner, drafts, durability);
            }
        }
    }

    fn write_segment(
        &self,
        queue: QueueId,
        owner: Option<DurableQueueId>,
        drafts: Vec<PageDraft>,
        durability: Durability,
    ) {
        let owner = owner.map_or(0, |owner| owner.0);
        let owned = drafts.iter().map(|draft| (owner, draft));
        match write_drafts(self, owned, durability, Purpose::Memory) {
            Some(places) => {
                for (draft, place) in drafts.into_iter().zip(places) {
                    self.tell(queue, PageNews::Written(queue, draft, place));
                }
            }
            None => drafts.into_iter().for_each(|draft| self.tell(queue, PageNews::Failed(queue, draft))),
        }
    }

    fn room(&self) -> io::Result<Room> {
        let free_bytes = self.failure.folder().segments().free_bytes()?;
        Ok(Room::new(free_bytes, self.marks.get().copied().unwrap_or(Space::new(0, 0))))
    }

    /// Says, not too often, that a segment was not written.
    fn complain(&self, reason: &str) {
        if let Some(before) = self.complaints.admit(reason, Instant::now()) {
            warn!(
                error = reason,
                before, "a segment cannot be written; its messages stay in memory and in the journal"
            );
        }
    }

    fn read(&self, queue: QueueId, id: PageId, place: PagePlace) -> PageNews {
        let page = match self.segments.read(page_ref(place)) {
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
            decode_page_entry(lsn, &entry.payload, &self.gauge)
                .inspect_err(|error| warn!(lsn = lsn.0, %error, "an entry of a page cannot be read"))
                .ok()
        };
        PageNews::Read(queue, id, page.entries.into_iter().filter_map(decode).collect())
    }

    fn tell(&self, queue: QueueId, news: PageNews) {
        let cell = queue.slot as usize % self.cells.len();
        if let Some(cell) = self.cells.get(cell) {
            // A cell that has ended has no use for it.
            let _ = cell.send(news);
        }
    }
}

/// Writes pages as one segment; nothing where the disk has no room. Any other error ends the broker.
fn write_drafts<'a>(
    desk: &Desk,
    drafts: impl Iterator<Item = (u64, &'a PageDraft)>,
    durability: Durability,
    purpose: Purpose,
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
    let bytes = pages.iter().map(NewPage::encoded_bytes).sum();
    match desk.room() {
        Ok(room) if !room.has(bytes, purpose) => {
            desk.complain("too little space is left on the disk; make space, or consume");
            return None;
        }
        Ok(_) => {}
        // Then the write tells whether there is any.
        Err(error) => desk.complain(&error.to_string()),
    }
    match desk.segments.write(&pages, durability) {
        Ok(facts) => Some(facts.iter().map(|facts| place_of(facts.page)).collect()),
        Err(error) => {
            desk.complain(&error.to_string());
            if !is_scarce(&error) {
                desk.failure.tell("segments", &error);
            }
            None
        }
    }
}

fn discard(segments: &Segments<RealDisk>, pages: &[GonePage]) {
    for page in pages {
        if let Err(error) = segments.discard(page_ref(page.place)) {
            warn!(%error, segment = page.place.segment, "a segment cannot be removed; the next start does it");
        }
    }
}

pub(super) fn page_ref(place: PagePlace) -> PageRef {
    PageRef::new(place.segment, place.index)
}

pub(super) fn place_of(page: PageRef) -> PagePlace {
    PagePlace { segment: page.segment(), index: page.index() }
}

impl Pager {
    /// Writes pages of several queues as one segment, on this thread; nothing where that is not possible.
    pub(crate) fn write_now<'a>(
        &self,
        drafts: impl Iterator<Item = (u64, &'a PageDraft)>,
        purpose: Purpose,
    ) -> Option<Vec<PagePlace>> {
        write_drafts(&self.desk, drafts, Durability::Durable, purpose)
    }

    /// Gives up pages that a durable checkpoint names as gone, on this thread.
    pub(crate) fn discard_now(&self, pages: &[GonePage]) {
        discard(&self.desk.segments, pages);
    }

    /// Gives the space of pages back that were discarded from segments that others keep, on this thread.
    pub(crate) fn give_back(&self) {
        match self.desk.segments.give_back() {
            Ok(0) => {}
            Ok(bytes) => debug!(bytes, "the space of pages is given back"),
            // It goes with the file one day.
            Err(error) => {
                if let Some(before) = self.desk.complaints.admit("give back", Instant::now()) {
                    warn!(%error, before, "the space of pages that went cannot be given back");
                }
            }
        }
    }

    /// Which durable segments there are.
    pub(crate) fn census(&self) -> Census {
        self.desk.segments.census()
    }
}

impl PageNews {
    /// Tells the queue.
    pub(crate) fn tell<W: World>(self, world: &W) {
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

/// What a queue asks for, by who does it.
pub(crate) enum Asked {
    /// The threads here.
    Pager,
    /// The keeper: so many pages would go.
    Spared(usize),
    /// The keeper: these go after the next checkpoint.
    Gone(Vec<GonePage>),
}

impl Pager {
    /// Does what a queue asks for, but for what only a checkpoint allows.
    pub(crate) fn take(
        &self,
        queue: QueueId,
        owner: impl FnOnce() -> Option<DurableQueueId>,
        work: PageWork,
    ) -> Asked {
        match work {
            PageWork::Write(drafts) => self.write(queue, owner(), drafts),
            PageWork::Read(pages) => self.read(queue, pages),
            PageWork::Spared(pages) => return Asked::Spared(pages),
            PageWork::Gone(pages) => {
                let (durable, transient): (Vec<_>, Vec<_>) =
                    pages.into_iter().partition(|page| page.is_durable);
                if !transient.is_empty() {
                    self.discard(transient);
                }
                return Asked::Gone(durable);
            }
        }
        Asked::Pager
    }
}
