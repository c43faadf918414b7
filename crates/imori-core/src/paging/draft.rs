//! Work that a queue requests from the pager, to be done outside the queue's lock.

use crate::confirm::Lsn;
use crate::delivery::{AnnotatedMessage, DeliveryCount};
use crate::entries::{Entry, GonePage, PageId, PagePlace, PageSource, Ranges};
use crate::index::SubjectDigest;
use crate::time::Time;

/// A request of a queue to the pager.
#[derive(Debug)]
pub enum PageWork {
    /// Write these pages, and answer for each.
    Write(Vec<PageDraft>),
    /// Read these pages, and answer for each.
    Read(Vec<(PageId, PageSource)>),
    /// Discard these pages. A durable page may go only after a checkpoint without it.
    Gone(Vec<GonePage>),
    /// Number of durable pages that became free. A [`Tally`] names them, and a checkpoint would free them.
    Spared(usize),
}

/// Entries of one queue to be written as one page: of one priority, or delayed.
#[derive(Debug)]
pub struct PageDraft {
    pub(crate) id: PageId,
    pub(crate) priority: u8,
    pub(crate) is_durable: bool,
    /// The queue also has the entries elsewhere.
    pub(crate) is_copy: bool,
    pub(crate) entries: Vec<Entry>,
    /// The due time of each entry, if they are delayed; otherwise empty.
    pub(crate) dues: Vec<Time>,
    /// The queue is a stream, whose readers may want certain subjects alone.
    pub(crate) is_of_stream: bool,
}

impl PageDraft {
    /// The id of the page in its queue.
    #[must_use]
    pub fn id(&self) -> PageId {
        self.id
    }

    /// The priority of the entries; a delayed entry has its own.
    #[must_use]
    pub fn priority(&self) -> u8 {
        self.priority
    }

    /// Whether the page has to outlive the broker.
    #[must_use]
    pub fn is_durable(&self) -> bool {
        self.is_durable
    }

    /// The highest record of the entries.
    #[must_use]
    pub fn last_record(&self) -> Lsn {
        self.entries.iter().map(|entry| entry.envelope.lsn).max().unwrap_or(Lsn::NONE)
    }

    /// The lowest and the highest time at which its messages came to the queue.
    #[must_use]
    pub fn times(&self) -> (Time, Time) {
        let times = || self.entries.iter().map(|entry| entry.envelope.since);
        (times().min().unwrap_or(Time(0)), times().max().unwrap_or(Time(0)))
    }

    /// The digest of the subjects, for a page of a stream.
    #[must_use]
    pub fn subjects(&self) -> Option<SubjectDigest> {
        let subjects = self.entries.iter().map(|entry| entry.envelope.address.subject.as_bytes());
        self.is_of_stream.then(|| SubjectDigest::of(subjects))
    }

    /// About how many bytes of memory it takes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.entries.iter().map(Entry::memory).sum()
    }

    /// Estimated bytes that the page takes on disk.
    #[must_use]
    pub fn written_bytes(&self) -> usize {
        self.entries.iter().map(Entry::written_bytes).sum()
    }
}

/// The facts about a queue that a checkpoint has to keep.
#[derive(Debug, Default)]
pub struct Tally {
    /// The lowest record that the queue needs; `None` if it needs none.
    pub floor: Option<Lsn>,
    /// The pages that are settled in part, with their settled records.
    pub settled: Vec<(PagePlace, Ranges)>,
    /// Durable pages that became free since the last tally.
    pub gone: Vec<GonePage>,
    /// Delivery counts of messages with records that may be freed.
    pub counts: Vec<DeliveryCount>,
    /// Annotations of messages with records that may be freed.
    pub annotations: Vec<AnnotatedMessage>,
}
