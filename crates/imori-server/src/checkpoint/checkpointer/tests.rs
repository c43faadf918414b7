//! The checkpointer with a journal that does not take every checkpoint.

use std::cell::{Cell, RefCell};

use imori_core::record::Checkpoint;

use super::*;

/// An empty journal, and what the checkpointer did with pages.
struct TestHost {
    checkpointer: Checkpointer,
    payload_bytes_max: Cell<usize>,
    checkpoints: RefCell<Vec<Checkpoint>>,
    discarded: RefCell<Vec<GonePage>>,
    segments: Manifest,
    now: Cell<Time>,
    /// How often the journal was asked to take a checkpoint.
    asked: Cell<usize>,
}

impl TestHost {
    /// A host with one segment of `page_count` pages, and room for a checkpoint of this size.
    fn new(page_count: u32, payload_bytes_max: usize) -> TestHost {
        let segment = imori_store::segment::ManifestEntry { segment: 0, page_count, gone: Vec::new() };
        TestHost {
            checkpointer: Checkpointer::new(4, (0, Lsn::NONE), Vec::new()),
            payload_bytes_max: Cell::new(payload_bytes_max),
            checkpoints: RefCell::default(),
            discarded: RefCell::default(),
            segments: Manifest { next_segment: 1, segments: vec![segment] },
            now: Cell::default(),
            asked: Cell::default(),
        }
    }

    fn keep(&self) {
        checkpoint_once(self, &mut Pauses::default());
    }
}

impl CheckpointHost for TestHost {
    fn checkpointer(&self) -> &Checkpointer {
        &self.checkpointer
    }

    fn now(&self) -> Time {
        self.now.get()
    }

    fn pass(&self) {}

    fn queues(&self) -> Vec<QueueId> {
        Vec::new()
    }

    fn with_queue<R>(&self, _: QueueId, _: impl FnOnce(&mut Queue) -> R) -> Option<R> {
        None
    }

    fn live_files(&self) -> usize {
        1
    }

    fn is_space_low(&self) -> bool {
        false
    }

    fn is_out_of_space(&self) -> bool {
        false
    }

    fn next_lsn(&self) -> Option<Lsn> {
        Some(Lsn(1))
    }

    fn oldest_sealed(&self) -> Option<Lsn> {
        None
    }

    fn first_definition(&self) -> Option<Lsn> {
        None
    }

    fn append(&self, _: NewRecord) -> Lsn {
        Lsn(1)
    }

    fn with_room_for_ids<R>(&self, renew: impl FnOnce(usize) -> R) -> R {
        renew(usize::MAX)
    }

    fn append_checkpoint(&self, _: Lsn, payload: &[u8]) -> Option<Lsn> {
        self.asked.set(self.asked.get() + 1);
        if payload.len() > self.payload_bytes_max.get() {
            return None;
        }
        self.checkpoints.borrow_mut().push(Checkpoint::decode(payload).expect("the checkpointer wrote it"));
        Some(Lsn(1))
    }

    fn await_synced(&self, _: Lsn) -> bool {
        true
    }

    fn segment_bytes_goal(&self) -> usize {
        usize::MAX
    }

    fn exchange_bytes_max(&self) -> Option<usize> {
        None
    }

    fn write_pages(&self, _: &[(QueueId, DurableQueueId, PageDraft)], _: Purpose) -> Option<Vec<PagePlace>> {
        None
    }

    fn read_journal(&self, _: &JournalRead) -> Option<Vec<Entry>> {
        None
    }

    fn weigh(&self, _id: QueueId) {}

    fn forget_below(&self, _: Lsn) {}

    fn give_back_space(&self) {}

    fn discard_pages(&self, pages: &[GonePage]) {
        self.discarded.borrow_mut().extend_from_slice(pages);
    }

    fn manifest(&self) -> Manifest {
        self.segments.clone()
    }
}

/// Every second page from `first` on.
fn every_second(first: u32, count: usize) -> Vec<GonePage> {
    let place = |index| PagePlace { segment: 0, index };
    (first..).step_by(2).take(count).map(|index| GonePage { place: place(index), is_durable: true }).collect()
}

#[test]
fn pages_of_a_checkpoint_that_does_not_fit_go_with_the_next_one() {
    let host = TestHost::new(4096, 100);
    host.checkpointer.take_gone(every_second(0, CHECKPOINT_PAGES));
    host.keep();
    assert!(host.checkpoints.borrow().is_empty() && host.discarded.borrow().is_empty());
    // The refused checkpoint is not retried at once.
    assert_eq!(host.checkpointer.spared(), 0);
    // Discarding the pages in between makes the ranges of gone pages shorter to encode.
    host.checkpointer.take_gone(every_second(1, CHECKPOINT_PAGES));
    host.keep();
    let all: Vec<u32> = (0..2 * CHECKPOINT_PAGES as u32).collect();
    assert_eq!(
        host.checkpoints.borrow().iter().map(|last| &last.segments[0].gone).collect::<Vec<_>>(),
        [&all]
    );
    let mut discarded: Vec<u32> = host.discarded.borrow().iter().map(|page| page.place.index).collect();
    discarded.sort_unstable();
    assert_eq!(discarded, all);
    host.keep();
    assert_eq!(host.checkpoints.borrow().len(), 1, "nothing is left to be said");
}

#[test]
fn a_checkpoint_that_does_not_fit_is_made_again_after_a_pause() {
    let (host, mut pauses) = (TestHost::new(4096, 0), Pauses::default());
    for (now, asked) in [(0, 1), (1, 1), (CHECKPOINT_AGAIN.as_millis() as u64 - 1, 1), (1000, 2), (1001, 2)] {
        host.now.set(Time(now * 1000));
        // Each round has a reason for a checkpoint.
        host.checkpointer.take_gone(every_second(0, CHECKPOINT_PAGES));
        checkpoint_once(&host, &mut pauses);
        assert_eq!(host.asked.get(), asked, "after {now} ms");
    }
}
