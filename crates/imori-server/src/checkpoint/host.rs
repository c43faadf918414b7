//! The interface between the checkpointer and the thread that runs it.
//!
//! The server implements it with locks and clocks, the simulator with a scheduler that decides at each call
//! who goes on.

use imori_core::confirm::Lsn;
use imori_core::entries::{Entry, GonePage, JournalRead, PagePlace};
use imori_core::id::{DurableQueueId, QueueId};
use imori_core::paging::PageDraft;
use imori_core::queue::Queue;
use imori_core::record::NewRecord;
use imori_core::time::Time;
use imori_store::segment::Manifest;

use crate::store::{Checkpointer, Purpose};

/// The broker as its checkpointer has it.
pub trait CheckpointHost {
    /// The checkpointer's own state: which pages and files would go.
    fn checkpointer(&self) -> &Checkpointer;

    /// The time.
    fn now(&self) -> Time;

    /// Waits until every cell has ended the turn that it is in.
    fn pass(&self);

    /// The queues that there are.
    fn queues(&self) -> Vec<QueueId>;

    /// Lends a queue, if it is there.
    fn with_queue<R>(&self, id: QueueId, f: impl FnOnce(&mut Queue) -> R) -> Option<R>;

    /// Journal files in which something is needed.
    fn live_files(&self) -> usize;

    /// Tells whether publishers wait for space on the disk.
    fn is_space_low(&self) -> bool;

    /// Tells whether there is no space for another journal file.
    fn is_out_of_space(&self) -> bool;

    /// The number of the journal's next record; none before it runs.
    fn next_lsn(&self) -> Option<Lsn>;

    /// The highest number in the oldest journal file that is not written to any more.
    fn oldest_sealed(&self) -> Option<Lsn>;

    /// The first definition that only the journal has.
    fn first_definition(&self) -> Option<Lsn>;

    /// Hands a record to the journal; gives its number.
    fn append(&self, record: NewRecord) -> Lsn;

    /// Lends the bytes of the journal that may be taken by ids which are recorded anew, so that files go.
    fn with_room_for_ids<R>(&self, renew: impl FnOnce(usize) -> R) -> R;

    /// Says that nothing below `floor` is needed once this is durable; gives its number.
    fn append_checkpoint(&self, floor: Lsn, payload: &[u8]) -> Option<Lsn>;

    /// Waits until all records up to this one are durable; false where that may never be.
    fn await_synced(&self, lsn: Lsn) -> bool;

    /// Bytes that it puts into one segment.
    fn segment_bytes_goal(&self) -> usize;

    /// Bytes that may be copied so that the oldest journal file goes; nothing where that is not known.
    fn exchange_bytes_max(&self) -> Option<usize>;

    /// Writes pages of several queues as one segment; nothing where that is not possible.
    fn write_pages(
        &self,
        drafts: &[(QueueId, DurableQueueId, PageDraft)],
        purpose: Purpose,
    ) -> Option<Vec<PagePlace>>;

    /// Has a cell weigh a queue again, of which pages were copied.
    fn weigh(&self, id: QueueId);

    /// Reads a page that is in the journal; nothing where not all of it can be read.
    fn read_journal(&self, read: &JournalRead) -> Option<Vec<Entry>>;

    /// Notes that a durable checkpoint says that nothing below `floor` is needed.
    fn forget_below(&self, floor: Lsn);

    /// Gives the space of pages back that were discarded from segments that others keep.
    fn give_back_space(&self);

    /// Gives up pages that a durable checkpoint names as gone.
    fn discard_pages(&self, pages: &[GonePage]);

    /// Which durable segments there are.
    fn manifest(&self) -> Manifest;
}
