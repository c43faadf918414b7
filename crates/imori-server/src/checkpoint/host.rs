//! The interface between the checkpointer and the broker.
//!
//! The server implements it with locks and clocks, the simulator with a scheduler that decides at each call who
//! continues.

use imori_core::confirm::Lsn;
use imori_core::entries::{Entry, GonePage, JournalRead, PagePlace};
use imori_core::id::{DurableQueueId, QueueId};
use imori_core::paging::PageDraft;
use imori_core::queue::Queue;
use imori_core::record::NewRecord;
use imori_core::time::Time;
use imori_store::manifest::{Manifest, ManifestMark};

use crate::store::{Checkpointer, Purpose};

/// The broker as seen by its checkpointer.
pub trait CheckpointHost {
    /// The checkpointer's own state.
    fn checkpointer(&self) -> &Checkpointer;

    /// The current time.
    fn now(&self) -> Time;

    /// Waits until every cell has ended its current turn.
    fn pass(&self);

    /// The ids of all queues.
    fn queues(&self) -> Vec<QueueId>;

    /// Runs `f` on a queue; `None` if it is gone.
    fn with_queue<R>(&self, id: QueueId, f: impl FnOnce(&mut Queue) -> R) -> Option<R>;

    /// Journal files that still hold needed records.
    fn live_files(&self) -> usize;

    /// Whether publishers wait for disk space.
    fn is_space_low(&self) -> bool;

    /// Whether the disk has no space for another journal file.
    fn is_out_of_space(&self) -> bool;

    /// LSN of the journal's next record; `None` before the journal runs.
    fn next_lsn(&self) -> Option<Lsn>;

    /// Highest LSN in the oldest sealed journal file.
    fn oldest_sealed(&self) -> Option<Lsn>;

    /// LSN of the oldest definition that only the journal has.
    fn first_definition(&self) -> Option<Lsn>;

    /// Appends a record to the journal and returns its LSN.
    fn append(&self, record: NewRecord) -> Lsn;

    /// Lends the journal bytes that may be used to record ids again, so that files can be freed.
    fn with_room_for_ids<R>(&self, renew: impl FnOnce(usize) -> R) -> R;

    /// Appends a checkpoint: once it is durable, no record below `floor` is needed. Returns its LSN, or `None` if it
    /// was not taken.
    fn append_checkpoint(&self, floor: Lsn, payload: &[u8]) -> Option<Lsn>;

    /// Waits until all records through `lsn` are durable; false if they may never be.
    fn await_synced(&self, lsn: Lsn) -> bool;

    /// Target size of a segment in bytes.
    fn segment_bytes_goal(&self) -> usize;

    /// The most bytes to copy so that the oldest journal file is freed; `None` if the free space is unknown.
    fn exchange_bytes_max(&self) -> Option<usize>;

    /// Writes pages of several queues as one segment; `None` if it cannot.
    fn write_pages(
        &self,
        drafts: &[(QueueId, DurableQueueId, PageDraft)],
        purpose: Purpose,
    ) -> Option<Vec<PagePlace>>;

    /// Asks the queue's cell to check the queue's memory again, after pages were copied.
    fn weigh(&self, id: QueueId);

    /// Reads a page that is in the journal. Returns `None` unless all of it can be read.
    fn read_journal(&self, read: &JournalRead) -> Option<Vec<Entry>>;

    /// Forgets journal content below `floor`, which a durable checkpoint no longer needs.
    fn forget_below(&self, floor: Lsn);

    /// Returns the space of discarded pages in segments that are still in use to the file system.
    fn give_back_space(&self);

    /// Discards pages that a durable checkpoint lists as gone.
    fn discard_pages(&self, pages: &[GonePage]);

    /// The manifest of durable segments.
    fn manifest(&self) -> Manifest;

    /// Writes the manifest; it is durable on return. Nothing where that is not possible.
    fn write_manifest(&self, manifest: &Manifest) -> Option<ManifestMark>;

    /// Removes manifests before the one that a durable checkpoint names.
    fn forget_manifests(&self);
}
