//! Pages that are in the journal: what a start found there and left where it was.
//!
//! Such a page is a list of records. It is read like any other when its queue comes to it, and what it held is in
//! memory then as if it had just come. Before the journal frees the first of its records the page is written into
//! a segment, and is a page like all others from then on.

use std::time::Duration;

use super::draft::PageDraft;
use super::entry::Entry;
use super::level::{PagePart, Part};
use super::pages::PageId;
use super::queue::Queue;
use crate::confirm::Lsn;
use crate::message::MessageView;
use crate::time::Time;

/// A message that waits in the journal.
#[derive(Debug, Clone, Copy)]
pub(crate) struct InJournal {
    pub(crate) lsn: Lsn,
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
    /// Gives all of its entries their positions.
    pub(super) fn put_in_place(&self, entries: &mut [Entry]) {
        let mut before = self.after;
        for entry in entries {
            before = position(entry.envelope.lsn, before, self.end);
            entry.position = before;
        }
    }
}

/// Messages that follow each other and that become such a page.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    lsns: Vec<Lsn>,
    memory: usize,
    body_bytes: u64,
    after: u64,
    end: u64,
}

/// The position of a restored message behind another, in front of a page that begins at `end`.
pub(super) fn position(lsn: Lsn, after: u64, end: u64) -> u64 {
    // Before the page that it stands before now, also if that has records of smaller numbers.
    super::paging::first_position(lsn).min(end.saturating_sub(1)).max(after + 1)
}

impl Gathered {
    /// Takes one more; gives its position.
    pub(super) fn push(&mut self, message: InJournal, after: u64, end: u64) -> u64 {
        if self.lsns.is_empty() {
            self.after = after;
        }
        self.end = end;
        self.lsns.push(message.lsn);
        self.memory += message.memory;
        self.body_bytes += message.body_bytes;
        position(message.lsn, after, end)
    }

    /// Tells whether one more belongs to it, of which as much is known as of the others.
    pub(super) fn takes(&self, lsn: Lsn, page_bytes: usize, doubtful_below: Lsn) -> bool {
        let is_alike =
            self.lsns.first().is_none_or(|first| (*first < doubtful_below) == (lsn < doubtful_below));
        is_alike && self.memory < page_bytes
    }
}

impl Queue {
    /// A message that it had before the broker was away and that stays in the journal, and before it those that
    /// were due when it came. It is not a delayed one.
    pub(crate) fn found_in_journal(
        &mut self,
        view: &MessageView<'_>,
        lsn: Lsn,
        came: Time,
    ) -> (Vec<Entry>, InJournal) {
        let before = self.due_before(came);
        self.need_record(lsn);
        let message = InJournal {
            lsn,
            priority: self.priority_of(view.head),
            memory: Entry::memory_of(view),
            body_bytes: view.body.len() as u64,
        };
        (before, message)
    }

    /// Makes a page of what was gathered, behind all that its priority has.
    pub(super) fn restore_gathered(&mut self, priority: u8, gathered: &mut Gathered, doubtful_below: Lsn) {
        let is_doubtful = gathered.lsns.first().is_some_and(|first| *first < doubtful_below);
        let Gathered { lsns, memory, body_bytes, after, end } = std::mem::take(gathered);
        let Ok(len @ 1..) = u32::try_from(lsns.len()) else { return };
        let first = self.next_sequence;
        self.next_sequence += u64::from(len);
        let read = JournalRead { lsns: lsns.into_boxed_slice(), message_ttl: self.settings().message_ttl };
        let page = JournalPage { read, after, end, is_moving: false, is_read: false };
        let id = self.pages.restore_in_journal(priority, page, first, is_doubtful);
        let part = PagePart { id, first: None, len, memory, body_bytes, is_asked: false };
        self.ready.restore(priority, Part::Page(part));
    }

    /// The pages that are in the journal and have records up to `through`, or not far above, to be read and
    /// written elsewhere; of about so many bytes. Each is answered for: by [`Queue::draft_of`], or by
    /// [`Queue::not_moved`].
    pub fn moving_pages(&mut self, through: Lsn, bytes_max: usize) -> Vec<(PageId, JournalRead)> {
        if !self.pages.has_in_journal() {
            return Vec::new();
        }
        let (_, end) = self.unspilled.through(through);
        let (mut moving, mut bytes) = (Vec::new(), 0);
        for id in self.pages.in_journal() {
            if bytes >= bytes_max {
                break;
            }
            let Some(page) = self.pages.get_mut(id) else { continue };
            let Some(in_journal) = &mut page.in_journal else { continue };
            if in_journal.is_moving || in_journal.read.lsns.first().is_none_or(|first| *first > end) {
                continue;
            }
            in_journal.is_moving = true;
            moving.push((id, in_journal.read.clone()));
            bytes += self.ready.part(page.priority, id).map_or(0, |part| part.memory);
        }
        moving
    }

    /// Makes a draft of what was read of a page that is moving; nothing where nobody needs that any more.
    pub fn draft_of(&mut self, id: PageId, mut entries: Vec<Entry>) -> Option<PageDraft> {
        let page = self.pages.get(id)?;
        page.in_journal.as_ref()?.put_in_place(&mut entries);
        for (index, entry) in (0..).zip(&mut entries) {
            entry.envelope.sequence = page.first_sequence.unwrap_or(0) + index;
            entry.envelope.is_redelivered = page.is_doubtful;
        }
        let priority = page.priority;
        Some(PageDraft { id, priority, is_durable: true, is_copy: true, entries, dues: Vec::new() })
    }

    /// Notes that a page could not be read and moved; it stays where it is.
    pub fn not_moved(&mut self, id: PageId) {
        self.pages.failed(id);
    }
}
