//! The work that a queue asks of the disk, to be done outside the queue's lock.

use crate::confirm::Lsn;
use crate::delivery::{AnnotatedMessage, DeliveryCount};
use crate::entries::{Entry, GonePage, PageId, PagePlace, PageSource, Ranges};
use crate::time::Time;

/// A request of a queue to the disk.
#[derive(Debug)]
pub enum PageWork {
    /// These are to be written; each is answered for.
    Write(Vec<PageDraft>),
    /// These are to be read; each is answered for.
    Read(Vec<(PageId, PageSource)>),
    /// Nobody needs these any more. A durable one goes after a checkpoint that says so.
    Gone(Vec<GonePage>),
    /// Durable pages that became free, in number. A [`Tally`] names them, and a checkpoint would free them.
    Spared(usize),
}

/// Entries of one queue that are to be written together: of one priority, or delayed.
#[derive(Debug)]
pub struct PageDraft {
    pub(crate) id: PageId,
    pub(crate) priority: u8,
    pub(crate) is_durable: bool,
    /// The queue has them elsewhere too.
    pub(crate) is_copy: bool,
    pub(crate) entries: Vec<Entry>,
    /// When each is due, if they are delayed; else there are none.
    pub(crate) dues: Vec<Time>,
}

impl PageDraft {
    /// The page, as its queue knows it.
    #[must_use]
    pub fn id(&self) -> PageId {
        self.id
    }

    /// The priority of its entries; delayed ones say theirs themselves.
    #[must_use]
    pub fn priority(&self) -> u8 {
        self.priority
    }

    /// Tells whether the page has to outlive the broker.
    #[must_use]
    pub fn is_durable(&self) -> bool {
        self.is_durable
    }

    /// The highest number of a record of its messages.
    #[must_use]
    pub fn last_record(&self) -> Lsn {
        self.entries.iter().map(|entry| entry.envelope.lsn).max().unwrap_or(Lsn::NONE)
    }

    /// About how many bytes of memory it takes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.entries.iter().map(Entry::memory).sum()
    }

    /// About how many bytes it takes on disk.
    #[must_use]
    pub fn written_bytes(&self) -> usize {
        self.entries.iter().map(Entry::written_bytes).sum()
    }
}

/// The facts about a queue that a checkpoint has to keep.
#[derive(Debug, Default)]
pub struct Tally {
    /// The first record that the queue needs; `None` where it needs no record at all.
    pub floor: Option<Lsn>,
    /// The pages that are settled in part, and which of their records are.
    pub settled: Vec<(PagePlace, Ranges)>,
    /// Durable pages that went since the last one.
    pub gone: Vec<GonePage>,
    /// Delivery counts of messages whose records may go.
    pub counts: Vec<DeliveryCount>,
    /// Annotations of messages whose records of them may go.
    pub annotations: Vec<AnnotatedMessage>,
}
