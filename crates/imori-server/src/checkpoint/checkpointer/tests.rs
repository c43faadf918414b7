//! The checkpointer with a journal that does not take every checkpoint.

use std::cell::{Cell, RefCell};

use imori_core::record::Checkpoint;

use super::*;

/// An empty journal, and what the checkpointer did with pages.
struct TestHost {
    checkpointer: Checkpointer,
    /// The journal takes no checkpoint, or the disk no manifest.
    refuses: Cell<Option<Refusal>>,
    manifests: RefCell<Vec<Manifest>>,
    checkpoints: RefCell<Vec<Checkpoint>>,
    discarded: RefCell<Vec<GonePage>>,
    segments: Manifest,
    now: Cell<Time>,
    /// Number of times that the journal was asked to take a checkpoint.
    asked: Cell<usize>,
}

impl TestHost {
    /// With a segment of this many pages.
    fn new(page_count: u32, refuses: Option<Refusal>) -> TestHost {
        let segment = imori_store::manifest::ManifestEntry { segment: 0, page_count, gone: Vec::new() };
        TestHost {
            checkpointer: Checkpointer::new(4, (0, Lsn::NONE), Vec::new()),
            refuses: Cell::new(refuses),
            manifests: RefCell::default(),
            checkpoints: RefCell::default(),
            discarded: RefCell::default(),
            segments: Manifest { next_segment: 1, segments: vec![segment], damage: None },
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
        if self.refuses.get() == Some(Refusal::Checkpoint) {
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

    fn write_manifest(&self, manifest: &Manifest) -> Option<ManifestMark> {
        if self.refuses.get() == Some(Refusal::Manifest) {
            return None;
        }
        self.manifests.borrow_mut().push(manifest.clone());
        let generation = u32::try_from(self.manifests.borrow().len()).expect("there are few");
        Some(ManifestMark { next_segment: manifest.next_segment, generation, end: 512, sum: 7 })
    }

    fn forget_manifests(&self) {}
}

/// The write that a host refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Refusal {
    Manifest,
    Checkpoint,
}

/// Every second page from `first` on.
fn every_second(first: u32, count: usize) -> Vec<GonePage> {
    let place = |index| PagePlace { segment: 0, index };
    (first..).step_by(2).take(count).map(|index| GonePage { place: place(index), is_durable: true }).collect()
}

#[test]
fn pages_of_a_checkpoint_that_is_refused_go_with_the_next_one() {
    for refusal in [Refusal::Manifest, Refusal::Checkpoint] {
        let host = TestHost::new(4096, Some(refusal));
        host.checkpointer.take_gone(every_second(0, CHECKPOINT_PAGES));
        host.keep();
        assert!(host.checkpoints.borrow().is_empty() && host.discarded.borrow().is_empty());
        // It is not tried again and again.
        assert_eq!(host.checkpointer.spared(), 0);
        host.refuses.set(None);
        host.checkpointer.take_gone(every_second(1, CHECKPOINT_PAGES));
        host.keep();
        let all: Vec<u32> = (0..2 * CHECKPOINT_PAGES as u32).collect();
        let manifests = host.manifests.borrow();
        assert_eq!(manifests.last().map(|last| &last.segments[0].gone), Some(&all));
        let generation = u32::try_from(manifests.len()).expect("there are few");
        let expected = ManifestPlace { generation, end: 512, sum: 7 };
        let checkpoints = host.checkpoints.borrow();
        assert_eq!(checkpoints.iter().map(|last| last.manifest).collect::<Vec<_>>(), [expected]);
        let mut discarded: Vec<u32> = host.discarded.borrow().iter().map(|page| page.place.index).collect();
        discarded.sort_unstable();
        assert_eq!(discarded, all);
        drop(checkpoints);
        host.keep();
        assert_eq!(host.checkpoints.borrow().len(), 1, "nothing is left to be said");
    }
}

#[test]
fn a_checkpoint_that_is_refused_is_made_again_after_a_pause() {
    let (host, mut pauses) = (TestHost::new(4096, Some(Refusal::Checkpoint)), Pauses::default());
    for (now, asked) in [(0, 1), (1, 1), (CHECKPOINT_AGAIN.as_millis() as u64 - 1, 1), (1000, 2), (1001, 2)] {
        host.now.set(Time(now * 1000));
        // Each round has a reason for a checkpoint.
        host.checkpointer.take_gone(every_second(0, CHECKPOINT_PAGES));
        checkpoint_once(&host, &mut pauses);
        assert_eq!(host.asked.get(), asked, "after {now} ms");
    }
}
