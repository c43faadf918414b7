//! The threads that write and read pages, and the mail by which cells tell queues of it.

use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, OnceLock, RwLock};
use std::thread::{Builder, JoinHandle};
use std::time::Instant;

use imori_core::confirm::Lsn;
use imori_core::entries::{Entry, GonePage, JournalRead, PagePlace, PageSource};
use imori_core::id::QueueId;
use imori_core::memory::Gauge;
use imori_core::paging::PageDraft;
use imori_store::disk::{Disk, RealDisk};
use imori_store::journal::Space;
use imori_store::recovery::Messages;
use imori_store::segment::{
    DamagedPage, Durability, Manifest, NewPage, Page, PageDamage, PageError, PageFacts, PageRef, Segments,
};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tracing::{debug, error, warn};

use super::Waiters;
use super::damages::Damages;
use super::failure::Failure;
use super::page_jobs::{Job, PageHost, PageNews, discard_pages, do_job, read, read_journal, write_drafts};
use super::rate_limited_log::RateLimitedLog;
use super::room::{Purpose, Room};
use crate::limits::{PAGER_LOOK_EVERY, PAGER_WAIT_MAX};
use crate::slots::unpoisoned;

/// The threads, and the mail to the cells.
pub(crate) struct Pager {
    shared: Arc<PageThreads>,
    write: Mutex<Option<Sender<Job>>>,
    read: Mutex<Option<Sender<Job>>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    mail: Box<[Mutex<Option<UnboundedReceiver<PageNews>>>]>,
}

/// The state that both threads share.
struct PageThreads {
    segments: Segments<RealDisk>,
    /// The messages that the start left in the journal.
    staying: RwLock<Messages<File>>,
    failure: Arc<Failure>,
    waiters: Arc<Waiters>,
    gauge: Gauge,
    cells: Box<[UnboundedSender<PageNews>]>,
    /// The broker closes: records that are not yet in the journal are left to the next start.
    is_closing: AtomicBool,
    /// The space of the disk that segments must leave.
    marks: OnceLock<Space>,
    failures_log: RateLimitedLog,
    damages: Arc<Damages>,
    names: OnceLock<QueueNames>,
}

/// The function that gives the name of a queue.
pub(crate) type QueueNames = Box<dyn Fn(QueueId) -> Option<String> + Send + Sync>;

impl Pager {
    /// Starts the threads, for this number of cells.
    pub(super) fn start(
        (segments, staying): (Segments<RealDisk>, Messages<File>),
        failure: Arc<Failure>,
        waiters: Arc<Waiters>,
        gauge: Gauge,
        damages: Arc<Damages>,
        cells: usize,
    ) -> io::Result<Pager> {
        let (senders, receivers): (Vec<_>, Vec<_>) = (0..cells.max(1)).map(|_| unbounded_channel()).unzip();
        let (cells, is_closing) = (senders.into_boxed_slice(), AtomicBool::new(false));
        let (marks, failures_log) = (OnceLock::new(), RateLimitedLog::default());
        let staying = RwLock::new(staying);
        let shared = Arc::new(PageThreads {
            segments,
            staying,
            failure,
            waiters,
            gauge,
            cells,
            is_closing,
            marks,
            failures_log,
            damages,
            names: OnceLock::new(),
        });
        let (write, to_write) = channel();
        let (read, to_read) = channel();
        let mut threads = Vec::new();
        for (name, jobs) in [("page-writer", to_write), ("page-reader", to_read)] {
            let shared = Arc::clone(&shared);
            threads.push(Builder::new().name(String::from(name)).spawn(move || shared.work(&jobs))?);
        }
        Ok(Pager {
            shared,
            write: Mutex::new(Some(write)),
            read: Mutex::new(Some(read)),
            threads: Mutex::new(threads),
            mail: receivers.into_iter().map(|receiver| Mutex::new(Some(receiver))).collect(),
        })
    }

    /// Sets the space of the disk that segments must leave; set once, before there are any.
    pub(crate) fn leave(&self, marks: Space) {
        let _ = self.shared.marks.set(marks);
    }

    /// Sets the function that gives the names of queues; set once.
    pub(crate) fn name_queues(&self, names: QueueNames) {
        let _ = self.shared.names.set(names);
    }

    /// Gives the space that segments may take now.
    pub(crate) fn room(&self) -> io::Result<Room> {
        self.shared.room()
    }

    /// Gives the news for a cell, which takes the receiver once.
    pub(crate) fn mail(&self, cell: u16) -> Option<UnboundedReceiver<PageNews>> {
        unpoisoned(self.mail.get(usize::from(cell))?.lock()).take()
    }

    /// Has pages written, or pages of this run alone given up.
    pub(crate) fn write(&self, job: Job) {
        send(&self.write, job);
    }

    /// Has pages read.
    pub(crate) fn read(&self, job: Job) {
        send(&self.read, job);
    }

    /// Ends the threads when they have done what they were asked for.
    pub(crate) fn close(&self) {
        self.shared.is_closing.store(true, Ordering::SeqCst);
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

impl PageThreads {
    fn work(&self, jobs: &Receiver<Job>) {
        while let Ok(job) = jobs.recv() {
            do_job(self, job);
        }
    }

    fn room(&self) -> io::Result<Room> {
        let free_bytes = self.failure.folder().segments().free_bytes()?;
        Ok(Room::new(free_bytes, self.marks.get().copied().unwrap_or(Space::new(0, 0))))
    }
}

impl PageHost for PageThreads {
    fn gauge(&self) -> &Gauge {
        &self.gauge
    }

    fn await_records(&self, through: Lsn) -> bool {
        let begin = Instant::now();
        let is_hopeless = || {
            let is_over = self.failure.has_failed() || self.is_closing.load(Ordering::SeqCst);
            is_over || through == Lsn::NEVER || begin.elapsed() > PAGER_WAIT_MAX
        };
        self.waiters.await_synced(through, PAGER_LOOK_EVERY, is_hopeless)
    }

    fn has_room(&self, bytes: u64, purpose: Purpose) -> bool {
        match self.room() {
            Ok(room) if !room.has(bytes, purpose) => {
                self.log_failure("too little space is left on the disk; make space, or consume");
                false
            }
            Ok(_) => true,
            // Then the write tells whether there is any.
            Err(error) => {
                self.log_failure(&error.to_string());
                true
            }
        }
    }

    fn log_failure(&self, reason: &str) {
        if self.is_closing.load(Ordering::SeqCst) {
            return;
        }
        if let Some(before) = self.failures_log.admit(reason, Instant::now()) {
            warn!(
                error = reason,
                before, "a segment cannot be written; its messages stay in memory and in the journal"
            );
        }
    }

    fn write_segment(&self, pages: &[NewPage], durability: Durability) -> io::Result<Vec<PageFacts>> {
        self.segments.write(pages, durability)
    }

    fn read_page(&self, page: PageRef) -> Result<Page, PageError> {
        self.segments.read(page)
    }

    fn read_journal(&self, lsns: &[Lsn], take: &mut dyn FnMut(Lsn, &[u8])) -> io::Result<()> {
        let staying = unpoisoned(self.staying.read());
        let read = staying.read_records(lsns.iter().map(|lsn| imori_store::lsn::Lsn(lsn.0)), |record| {
            take(Lsn(record.lsn.0), record.payload);
            Ok::<(), io::Error>(())
        });
        read.map_err(io::Error::other)
    }

    fn discard_page(&self, page: PageRef) -> io::Result<()> {
        self.segments.discard(page)
    }

    fn tell_damage(&self, queue: QueueId, damage: &PageDamage) {
        let name = self.segments.file_name(damage.page);
        let owner_name = self.names.get().and_then(|names| names(queue));
        let damage = DamagedPage { name, owner: 0, owner_name, is_gone: false, damage: damage.clone() };
        warn!(%damage, "what verifies is served; `imori store dump` shows what there is");
        self.damages.note([damage.to_string()]);
    }

    fn fail(&self, error: &io::Error) {
        self.failure.tell("segments", error);
    }

    fn tell(&self, queue: QueueId, news: PageNews) {
        let cell = queue.slot as usize % self.cells.len();
        if let Some(cell) = self.cells.get(cell) {
            // A cell that has ended has no use for it.
            let _ = cell.send(news);
        }
    }
}

impl Pager {
    /// Writes pages of several queues as one segment, on this thread; nothing where that is not possible.
    pub(crate) fn write_now<'a>(
        &self,
        drafts: impl Iterator<Item = (u64, &'a PageDraft)>,
        purpose: Purpose,
    ) -> Option<Vec<PagePlace>> {
        write_drafts(&*self.shared, drafts, Durability::Durable, purpose)
    }

    /// Has a cell tell a queue.
    pub(crate) fn tell(&self, queue: QueueId, news: PageNews) {
        self.shared.tell(queue, news);
    }

    /// Gives up pages that a durable checkpoint names as gone, on this thread.
    pub(crate) fn discard_now(&self, pages: &[GonePage]) {
        discard_pages(&*self.shared, pages);
    }

    /// Gives the space of pages back that were discarded from segments that others keep, on this thread.
    pub(crate) fn punch_holes(&self) {
        match self.shared.segments.punch_holes() {
            Ok(0) => {}
            Ok(bytes) => debug!(bytes, "the space of pages is given back"),
            // It goes with the file one day.
            Err(error) => {
                if let Some(before) = self.shared.failures_log.admit("give back", Instant::now()) {
                    warn!(%error, before, "the space of pages that went cannot be given back");
                }
            }
        }
    }

    /// Reads a page for somebody who looks at a queue, on this thread; nothing where it cannot be read there now.
    pub(crate) fn peek(&self, queue: QueueId, source: &PageSource) -> Option<Vec<Entry>> {
        read(&*self.shared, queue, source)
    }

    /// Reads a page that is in the journal, on this thread; nothing where not all of it can be read.
    pub(crate) fn read_journal(&self, read: &JournalRead) -> Option<Vec<Entry>> {
        let entries = read_journal(&*self.shared, read);
        if entries.is_none() {
            self.shared.log_failure("messages that stay in the journal cannot be read there");
        }
        entries
    }

    /// Forgets what the start left in the journal, if a durable checkpoint says that it is all elsewhere.
    pub(crate) fn forget_below(&self, floor: Lsn) {
        unpoisoned(self.shared.staying.write()).forget_below(imori_store::lsn::Lsn(floor.0));
    }

    /// Which durable segments there are.
    pub(crate) fn manifest(&self) -> Manifest {
        self.shared.segments.manifest()
    }
}
