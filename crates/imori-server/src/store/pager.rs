//! The threads that write and read pages, and the channels that report results to the cells.

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
use imori_store::disk::{Disk, RealDisk, is_out_of_resources};
use imori_store::journal::Space;
use imori_store::manifest::{Manifest, ManifestLog, ManifestMark};
use imori_store::recovery::Messages;
use imori_store::segment::{
    DamagedPage, Durability, NewPage, Page, PageDamage, PageError, PageFacts, PageRef, Segments,
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

/// The pager's threads, their job queues and the channels to the cells.
pub(crate) struct Pager {
    shared: Arc<PageThreads>,
    write: Mutex<Option<Sender<Job>>>,
    read: Mutex<Option<Sender<Job>>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    mail: Box<[Mutex<Option<UnboundedReceiver<PageNews>>>]>,
}

/// State shared by both threads.
struct PageThreads {
    segments: Segments<RealDisk>,
    /// The checkpointer alone writes it.
    manifest_log: Mutex<ManifestLog<RealDisk>>,
    /// The messages that the start left in the journal.
    staying: RwLock<Messages<File>>,
    failure: Arc<Failure>,
    waiters: Arc<Waiters>,
    gauge: Gauge,
    cells: Box<[UnboundedSender<PageNews>]>,
    /// The broker is closing; records that are not in the journal yet are left to the next start.
    is_closing: AtomicBool,
    /// Disk space that segments must leave free.
    marks: OnceLock<Space>,
    failures_log: RateLimitedLog,
    damages: Arc<Damages>,
    names: OnceLock<QueueNames>,
}

/// Returns the name of a queue.
pub(crate) type QueueNames = Box<dyn Fn(QueueId) -> Option<String> + Send + Sync>;

impl Pager {
    /// Starts the threads for a broker with `cells` cells.
    pub(super) fn start(
        (segments, manifest_log, staying): (Segments<RealDisk>, ManifestLog<RealDisk>, Messages<File>),
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
        let manifest_log = Mutex::new(manifest_log);
        let shared = Arc::new(PageThreads {
            segments,
            manifest_log,
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

    /// Sets the disk space that segments must leave free; called once, before the first segment is written.
    pub(crate) fn leave(&self, marks: Space) {
        let _ = self.shared.marks.set(marks);
    }

    /// Sets the function that names queues; called once.
    pub(crate) fn name_queues(&self, names: QueueNames) {
        let _ = self.shared.names.set(names);
    }

    /// Disk space that segments may take now.
    pub(crate) fn room(&self) -> io::Result<Room> {
        self.shared.room()
    }

    /// The receiver of news for a cell; `None` once it has been taken.
    pub(crate) fn mail(&self, cell: u16) -> Option<UnboundedReceiver<PageNews>> {
        unpoisoned(self.mail.get(usize::from(cell))?.lock()).take()
    }

    /// Tells the writer to write pages, or to discard pages that only this run uses.
    pub(crate) fn write(&self, job: Job) {
        send(&self.write, job);
    }

    /// Tells the reader to read pages.
    pub(crate) fn read(&self, job: Job) {
        send(&self.read, job);
    }

    /// Ends the threads after the jobs already sent.
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

/// Sends a job, or drops it once the threads are ending.
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
            // The write will find out whether there is room.
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

    fn tell_lost(&self, queue: QueueId, page: PageRef) {
        let (index, name) = (page.index(), self.segments.file_name(page));
        let owner = self.names.get().and_then(|names| names(queue)).unwrap_or_default();
        let finding =
            format!("damage in front of `{name}`: page {index}, of the queue `{owner}`, is lost as a whole");
        self.damages.note([finding]);
    }

    fn fail(&self, error: &io::Error) {
        self.failure.tell("segments", error);
    }

    fn tell(&self, queue: QueueId, news: PageNews) {
        let cell = queue.slot as usize % self.cells.len();
        if let Some(cell) = self.cells.get(cell) {
            // A cell that has ended needs no news.
            let _ = cell.send(news);
        }
    }
}

impl Pager {
    /// Writes pages of several queues as one segment on the calling thread. Returns `None` if it cannot.
    pub(crate) fn write_now<'a>(
        &self,
        drafts: impl Iterator<Item = (u64, &'a PageDraft)>,
        purpose: Purpose,
    ) -> Option<Vec<PagePlace>> {
        write_drafts(&*self.shared, drafts, Durability::Durable, purpose)
    }

    /// Sends news of a queue to its cell.
    pub(crate) fn tell(&self, queue: QueueId, news: PageNews) {
        self.shared.tell(queue, news);
    }

    /// Discards pages that a durable checkpoint lists as gone, on the calling thread.
    pub(crate) fn discard_now(&self, pages: &[GonePage]) {
        discard_pages(&*self.shared, pages);
    }

    /// Returns the space of discarded pages in segments that are still in use to the file system, on the calling
    /// thread.
    pub(crate) fn punch_holes(&self) {
        match self.shared.segments.punch_holes() {
            Ok(0) => {}
            Ok(bytes) => debug!(bytes, "the space of pages is given back"),
            // The space is freed when the file is removed.
            Err(error) => {
                if let Some(before) = self.shared.failures_log.admit("give back", Instant::now()) {
                    warn!(%error, before, "the space of pages that went cannot be given back");
                }
            }
        }
    }

    /// Reads a page for the inspection of a queue, on the calling thread. Returns `None` if it cannot be read there
    /// now.
    pub(crate) fn peek(&self, queue: QueueId, source: &PageSource) -> Option<Vec<Entry>> {
        read(&*self.shared, queue, source)
    }

    /// Reads a page that is still in the journal, on the calling thread. Returns `None` unless all of it can be read.
    pub(crate) fn read_journal(&self, read: &JournalRead) -> Option<Vec<Entry>> {
        let entries = read_journal(&*self.shared, read);
        if entries.is_none() {
            self.shared.log_failure("messages that stay in the journal cannot be read there");
        }
        entries
    }

    /// Forgets messages left in the journal below `floor`, which a durable checkpoint no longer needs.
    pub(crate) fn forget_below(&self, floor: Lsn) {
        unpoisoned(self.shared.staying.write()).forget_below(imori_store::lsn::Lsn(floor.0));
    }

    /// The manifest of durable segments.
    pub(crate) fn manifest(&self) -> Manifest {
        self.shared.segments.manifest()
    }

    /// Writes the manifest, on this thread; nothing where the disk has no room. Any other error ends the broker.
    pub(crate) fn write_manifest(&self, manifest: &Manifest) -> Option<ManifestMark> {
        let written = unpoisoned(self.shared.manifest_log.lock()).write(manifest);
        let told = written.inspect_err(|error| {
            if let Some(before) = self.shared.failures_log.admit("manifest", Instant::now()) {
                warn!(%error, before, "the manifest of segments cannot be written; the checkpoint waits for it");
            }
            if !is_out_of_resources(error) {
                self.shared.failure.tell("segments", error);
            }
        });
        told.ok()
    }

    /// Removes manifests that no checkpoint needs any more, on this thread.
    pub(crate) fn forget_manifests(&self) {
        let forgotten = unpoisoned(self.shared.manifest_log.lock()).forget_old();
        // The next start does it.
        if let Err(error) = forgotten {
            debug!(%error, "a manifest that is needed no more cannot be removed");
        }
    }
}
