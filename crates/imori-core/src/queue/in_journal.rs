//! Messages that wait in the journal alone, and the pages that a start makes of them.

use std::time::Duration;

use super::position::restored_position;
use crate::confirm::Lsn;

/// A message that waits in the journal.
#[derive(Debug, Clone, Copy)]
pub(crate) struct InJournal {
    pub(crate) lsn: Lsn,
    /// Which of the journal's files it is in.
    pub(crate) file: u32,
    pub(crate) priority: u8,
    /// Bytes of memory that it will take, or about so many.
    pub(crate) memory: usize,
    pub(crate) body_bytes: u64,
}

/// What is read of a page that is in the journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalRead {
    /// The records, in the order of their messages.
    pub lsns: Box<[Lsn]>,
    /// How long a message may wait in this queue.
    pub message_ttl: Option<Duration>,
}

/// A page that is in the journal.
#[derive(Debug, Clone)]
pub(super) struct JournalPage {
    pub(super) read: JournalRead,
    /// Each of its positions is above `after` and below `end`.
    after: u64,
    end: u64,
    /// It is being written into a segment.
    pub(super) is_moving: bool,
    /// It was read while it moved: its entries are in memory, and in that segment as soon as it is there.
    pub(super) is_read: bool,
}

impl JournalPage {
    /// The positions of its messages.
    pub(super) fn positions(&self) -> impl Iterator<Item = u64> {
        let mut before = self.after;
        self.read.lsns.iter().map(move |lsn| {
            before = restored_position(*lsn, before, self.end);
            before
        })
    }
}

/// Messages that follow each other and that become such a page.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    pub(super) lsns: Vec<Lsn>,
    file: u32,
    pub(super) memory: usize,
    pub(super) body_bytes: u64,
    after: u64,
    end: u64,
}

impl Gathered {
    /// Takes one more; gives its position.
    pub(super) fn push(&mut self, message: InJournal, after: u64, end: u64) -> u64 {
        if self.lsns.is_empty() {
            (self.after, self.file) = (after, message.file);
        }
        self.end = end;
        self.lsns.push(message.lsn);
        self.memory += message.memory;
        self.body_bytes += message.body_bytes;
        restored_position(message.lsn, after, end)
    }

    /// Tells whether one more belongs to it: of which as much is known as of the others, and which is in the same
    /// file, so that nothing of another has to be written for that to go.
    pub(super) fn takes(&self, message: &InJournal, page_bytes: usize, doubtful_below: Lsn) -> bool {
        let is_doubtful = |lsn: Lsn| lsn < doubtful_below;
        let is_alike =
            |first: &Lsn| is_doubtful(*first) == is_doubtful(message.lsn) && self.file == message.file;
        self.lsns.first().is_none_or(is_alike) && self.memory < page_bytes
    }

    /// Makes a page of them.
    pub(super) fn into_page(self, message_ttl: Option<Duration>) -> JournalPage {
        let read = JournalRead { lsns: self.lsns.into_boxed_slice(), message_ttl };
        JournalPage { read, after: self.after, end: self.end, is_moving: false, is_read: false }
    }
}
