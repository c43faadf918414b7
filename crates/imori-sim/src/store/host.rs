//! A store thread as host of the server's checkpointer and pager, with the bugs planted between the
//! two.

use std::io;

use imori_core::confirm::Lsn;
use imori_core::entries::{Entry, GonePage, JournalRead, PagePlace};
use imori_core::id::{DurableQueueId, QueueId};
use imori_core::memory::Gauge;
use imori_core::paging::PageDraft;
use imori_core::queue::Queue;
use imori_core::record::{Checkpoint, NewRecord, RecordKind};
use imori_core::room::Room;
use imori_core::time::Time;
use imori_server::{
    CheckpointHost, Checkpointer, PageHost, PageNews, Purpose, discard_pages, read_journal, write_drafts,
};
use imori_store::disk::is_out_of_resources;
use imori_store::manifest::{Manifest, ManifestMark};
use imori_store::segment::{Durability, NewPage, Page, PageError, PageFacts, PageRef};

use super::pending_dead_letters::without_rejections;
use super::thread::StoreThread;
use crate::machine::{Wait, written_streams};
use crate::planted::Bug;

impl CheckpointHost for StoreThread<'_> {
    fn checkpointer(&self) -> &Checkpointer {
        &self.shared.checkpointer
    }

    fn now(&self) -> Time {
        self.shared.clock.get()
    }

    fn pass(&self) {
        if self.shared.has(Bug::TurnsNotAwaited) {
            return;
        }
        let counts: Vec<u64> = self.shared.cells.iter().map(|cell| cell.turns.count()).collect();
        for (cell, count) in counts.into_iter().enumerate() {
            self.wait(Wait::Passed(cell, count));
        }
    }

    fn queues(&self) -> Vec<QueueId> {
        let queues = &self.shared.queues;
        let id = |slot| {
            let _held = self.lock_queue(slot);
            let place = queues.slot(slot)?;
            let place = place.borrow();
            place.value.as_ref().map(|_| QueueId { slot, generation: place.generation })
        };
        (0..queues.len()).filter_map(id).collect()
    }

    fn with_queue<R>(&self, id: QueueId, f: impl FnOnce(&mut Queue) -> R) -> Option<R> {
        let _held = self.lock_queue(id.slot);
        let slot = self.shared.queues.slot(id.slot)?;
        let mut slot = slot.borrow_mut();
        slot.of(id.generation).map(f)
    }

    fn live_files(&self) -> usize {
        self.shared.log.borrow().live_files()
    }

    fn is_space_low(&self) -> bool {
        self.shared.paging.is_space_low || self.shared.log.borrow().is_space_low
    }

    fn next_lsn(&self) -> Option<Lsn> {
        Some(self.shared.log.borrow().last().plus(1))
    }

    fn oldest_sealed(&self) -> Option<Lsn> {
        self.shared.log.borrow().oldest_sealed()
    }

    fn first_definition(&self) -> Option<Lsn> {
        let first = self.shared.log.borrow().definitions.first_waiting();
        first.filter(|_| !self.shared.has(Bug::FloorPastDefinitions))
    }

    fn with_room_for_ids<R>(&self, renew: impl FnOnce(usize) -> R) -> R {
        let allowance = self.shared.allow();
        renew(allowance.bytes())
    }

    fn append(&self, record: NewRecord) -> Lsn {
        self.pause();
        if self.shared.has(Bug::DedupUnrecorded) && record.kind == RecordKind::Seen {
            return self.shared.log.borrow().last();
        }
        let mut records = vec![record];
        if self.shared.has(Bug::RejectionUncounted) {
            records = records.into_iter().flat_map(|record| without_rejections(record).0).collect();
        }
        let records = written_streams(self.shared.bug, records);
        if records.is_empty() {
            return self.shared.log.borrow().last();
        }
        let appended = self.shared.log.borrow_mut().append(&records, false);
        self.shared
            .trace
            .note(&[appended.first.0], || format!("the checkpointer appends {:?}", appended.first));
        appended.first
    }

    fn append_checkpoint(&self, floor: Lsn, payload: &[u8]) -> Option<Lsn> {
        self.pause();
        let shared = self.shared;
        let mut log = shared.log.borrow_mut();
        let floor = match shared.bug {
            Some(Bug::FloorTooHigh) => log.last().plus(1),
            _ => floor,
        };
        let payload = altered(shared.bug, payload);
        let lsn = log.append_checkpoint(floor, &payload);
        shared.trace.note(&[floor.0, payload.len() as u64], || {
            format!(
                "the checkpointer appends {lsn:?}, a checkpoint from {floor:?}: {:?}",
                Checkpoint::decode(&payload)
            )
        });
        lsn
    }

    fn await_synced(&self, lsn: Lsn) -> bool {
        if self.shared.has(Bug::DiscardBeforeCheckpoint) {
            return true;
        }
        self.wait(Wait::Synced(lsn));
        self.shared.log.borrow().progress.synced >= lsn
    }

    fn segment_bytes_goal(&self) -> usize {
        self.shared.paging.segment_bytes_goal
    }

    fn is_out_of_space(&self) -> bool {
        self.shared.log.borrow().is_stalled()
    }

    fn exchange_bytes_max(&self) -> Option<usize> {
        let room = self.shared.log.borrow().room().exchange_bytes_max();
        Some(usize::try_from(room).unwrap_or(usize::MAX).min(self.shared.paging.exchange_bytes_max))
    }

    fn write_pages(
        &self,
        drafts: &[(QueueId, DurableQueueId, PageDraft)],
        purpose: Purpose,
    ) -> Option<Vec<PagePlace>> {
        let owned = drafts.iter().map(|(_, owner, draft)| (owner.0, draft));
        write_drafts(self, owned, Durability::Durable, purpose)
    }

    fn weigh(&self, id: QueueId) {
        self.tell(id, PageNews::Copied(id));
    }

    fn read_journal(&self, read: &JournalRead) -> Option<Vec<Entry>> {
        read_journal(self, read)
    }

    fn forget_below(&self, floor: Lsn) {
        let mut staying = self.shared.staying.borrow_mut();
        staying.iter_mut().for_each(|staying| staying.forget_below(imori_store::lsn::Lsn(floor.0)));
    }

    fn give_back_space(&self) {
        self.pause();
        // Space that is not given back now goes with its file later.
        let _ = self.shared.segments.punch_holes();
    }

    fn discard_pages(&self, pages: &[GonePage]) {
        discard_pages(self, pages);
    }

    fn manifest(&self) -> Manifest {
        self.pause();
        self.shared.segments.manifest()
    }

    fn write_manifest(&self, manifest: &Manifest) -> Option<ManifestMark> {
        self.pause();
        let manifest = altered_manifest(self.shared.bug, manifest);
        let written = self.shared.manifest_log.borrow_mut().write(&manifest);
        let words = [u64::from(manifest.next_segment), manifest.segments.len() as u64];
        self.shared.trace.note(&words, || format!("the manifest is written: {written:?} of {manifest:?}"));
        if let Some(error) = written.as_ref().err().filter(|error| !is_out_of_resources(error)) {
            self.fail(error);
        }
        self.pause();
        written.ok()
    }

    fn forget_manifests(&self) {
        self.pause();
        // The next start removes the files that cannot be removed now.
        let _ = self.shared.manifest_log.borrow_mut().forget_old();
    }
}

/// The checkpoint, altered by a planted bug.
fn altered(bug: Option<Bug>, payload: &[u8]) -> Vec<u8> {
    let Ok(mut checkpoint) = Checkpoint::decode(payload) else { return payload.to_vec() };
    if bug == Some(Bug::SettledForgotten) {
        checkpoint.settled.clear();
    }
    checkpoint.encode()
}

/// A manifest as a bug would have it.
fn altered_manifest(bug: Option<Bug>, manifest: &Manifest) -> Manifest {
    let mut manifest = manifest.clone();
    match bug {
        Some(Bug::SegmentsForgotten) => manifest.segments.clear(),
        Some(Bug::GoneForgotten) => manifest.segments.iter_mut().for_each(|entry| entry.gone.clear()),
        _ => {}
    }
    manifest
}

impl PageHost for StoreThread<'_> {
    fn gauge(&self) -> &Gauge {
        self.shared.memory.gauge()
    }

    fn await_records(&self, through: Lsn) -> bool {
        if self.shared.has(Bug::PageBeforeRecord) {
            return true;
        }
        self.wait(Wait::Records(through));
        self.shared.log.borrow().progress.synced >= through
    }

    fn has_room(&self, bytes: u64, purpose: Purpose) -> bool {
        self.shared.log.borrow().room().has(bytes, purpose)
    }

    fn log_failure(&self, reason: &str) {
        self.shared.trace.note(&[], || format!("a segment cannot be written: {reason}"));
    }

    fn write_segment(&self, pages: &[NewPage], durability: Durability) -> io::Result<Vec<PageFacts>> {
        self.pause();
        let uncopied = self.shared.has(Bug::PendingDeadLetterNotCopied).then(|| self.shared.uncopied(pages));
        let pages = uncopied.as_deref().unwrap_or(pages);
        let segments = &self.shared.segments;
        let entries =
            || pages.iter().map(|page| page.entries.iter().map(|entry| entry.lsn.0).collect::<Vec<_>>());
        self.shared.trace.note(&[pages.len() as u64], || {
            format!("a segment is begun, {durability:?}, of {:?}", entries().collect::<Vec<_>>())
        });
        let mut writing = segments.begin(pages, durability)?;
        loop {
            self.pause();
            if let Some(facts) = segments.step(&mut writing, pages)? {
                let first = facts.first().map(|facts| facts.page);
                self.shared.trace.note(&[facts.len() as u64], || format!("a segment is written: {first:?}"));
                self.pause();
                return Ok(facts);
            }
        }
    }

    fn read_page(&self, page: PageRef) -> Result<Page, PageError> {
        self.pause();
        let mut read = self.shared.segments.read(page)?;
        let words = [u64::from(page.segment()), u64::from(page.index()), read.entries.len() as u64];
        self.shared.trace.note(&words, || format!("{page:?} is read, {} entries", read.entries.len()));
        if self.shared.has(Bug::PageCutShort) {
            read.entries.pop();
        }
        self.pause();
        Ok(read)
    }

    fn read_journal(&self, lsns: &[Lsn], take: &mut dyn FnMut(Lsn, &[u8])) -> io::Result<()> {
        self.pause();
        let words: Vec<u64> = lsns.iter().map(|lsn| lsn.0).collect();
        self.shared.trace.note(&words, || format!("{lsns:?} are read in the journal"));
        let read = {
            let staying = self.shared.staying.borrow();
            let staying = staying.as_ref().expect("a start left them there");
            let cut = usize::from(self.shared.has(Bug::JournalPageCutShort));
            let lsns = lsns.iter().take(lsns.len() - cut);
            staying.read_records(lsns.map(|lsn| imori_store::lsn::Lsn(lsn.0)), |record| {
                take(Lsn(record.lsn.0), record.payload);
                Ok::<(), io::Error>(())
            })
        };
        self.pause();
        read.map_err(io::Error::other)
    }

    fn discard_page(&self, page: PageRef) -> io::Result<()> {
        self.pause();
        let words = [u64::from(page.segment()), u64::from(page.index())];
        self.shared.trace.note(&words, || format!("{page:?} is discarded"));
        self.shared.segments.discard(page)
    }

    fn fail(&self, _error: &io::Error) {
        self.shared.trace.note(&[], || String::from("the disk failed under a segment"));
        self.shared.log.borrow_mut().has_failed = true;
    }

    fn tell(&self, queue: QueueId, news: PageNews) {
        if self.shared.has(Bug::PageNewsLost) && self.shared.random.chance(1, 3) {
            return;
        }
        let cell = self.shared.cell(queue.slot as usize % self.shared.cells.len());
        cell.page_news.borrow_mut().push_back(news);
    }
}
