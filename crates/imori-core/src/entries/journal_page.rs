//! Messages that are in the journal alone, and the pages that a start makes of them.

use super::position::restored_position;
use crate::confirm::Lsn;

/// A message that is in the journal alone.
#[derive(Debug, Clone, Copy)]
pub(crate) struct InJournal {
    pub(crate) lsn: Lsn,
    /// The journal file that has it.
    pub(crate) file: u32,
    pub(crate) priority: u8,
    /// Estimated bytes of memory that it will occupy.
    pub(crate) memory: usize,
    pub(crate) body_bytes: u64,
}

/// The records to read for a page in the journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalRead {
    /// The records, in the order of their messages.
    pub lsns: Box<[Lsn]>,
}

/// A page whose messages are read from their journal records, because no segment has it.
#[derive(Debug, Clone)]
pub(crate) struct JournalPage {
    pub(crate) read: JournalRead,
    /// All of its positions are above `after` and below `end`.
    after: u64,
    end: u64,
    /// The page is being written into a segment.
    pub(crate) is_moving: bool,
    /// The page was read while it moved. Its entries are in memory, and also in the segment once that is written.
    pub(crate) is_read: bool,
}

impl JournalPage {
    /// The positions of its messages.
    pub(crate) fn positions(&self) -> impl Iterator<Item = u64> {
        let mut before = self.after;
        self.read.lsns.iter().map(move |lsn| {
            before = restored_position(*lsn, before, self.end);
            before
        })
    }
}

/// Consecutive messages that become a page in the journal.
#[derive(Debug, Default)]
pub(crate) struct Gathered {
    pub(crate) lsns: Vec<Lsn>,
    file: u32,
    pub(crate) memory: usize,
    pub(crate) body_bytes: u64,
    after: u64,
    end: u64,
}

impl Gathered {
    /// Adds a message; returns its position.
    pub(crate) fn push(&mut self, message: InJournal, after: u64, end: u64) -> u64 {
        if self.lsns.is_empty() {
            (self.after, self.file) = (after, message.file);
        }
        self.end = end;
        self.lsns.push(message.lsn);
        self.memory += message.memory;
        self.body_bytes += message.body_bytes;
        restored_position(message.lsn, after, end)
    }

    /// Whether one more message belongs to the page. All messages of a page are equally doubtful. All are in
    /// one file of the journal, so that freeing this file writes nothing of another.
    pub(crate) fn takes(&self, message: &InJournal, page_bytes: usize, doubtful_below: Lsn) -> bool {
        let is_doubtful = |lsn: Lsn| lsn < doubtful_below;
        let is_alike =
            |first: &Lsn| is_doubtful(*first) == is_doubtful(message.lsn) && self.file == message.file;
        self.lsns.first().is_none_or(is_alike) && self.memory < page_bytes
    }

    /// Makes a page of the messages.
    pub(crate) fn into_page(self) -> JournalPage {
        let read = JournalRead { lsns: self.lsns.into_boxed_slice() };
        JournalPage { read, after: self.after, end: self.end, is_moving: false, is_read: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(lsn: u64, file: u32) -> InJournal {
        InJournal { lsn: Lsn(lsn), file, priority: 0, memory: 100, body_bytes: 10 }
    }

    #[test]
    fn a_page_is_of_one_file_and_of_what_is_as_doubtful_and_not_too_long() {
        // Records in the page, 100 bytes each; the next record and its file; bytes of a page; the record
        // below which all are doubtful; whether the page takes the next.
        for (there, comes, file, page_bytes, doubtful_below, expected) in [
            (&[][..], 5, 1, 1, 0, true),
            (&[4], 5, 0, 101, 0, true),
            (&[4], 5, 0, 100, 0, false),
            (&[4], 5, 0, 99, 0, false),
            (&[4, 5], 6, 0, 201, 0, true),
            (&[4, 5], 6, 0, 200, 0, false),
            (&[4], 5, 1, 999, 0, false),
            (&[4], 5, 0, 999, 4, true),
            (&[4], 5, 0, 999, 5, false),
            (&[4], 5, 0, 999, 6, true),
            // At most one of file and doubt is alike.
            (&[4], 5, 1, 999, 6, false),
            (&[4], 5, 1, 999, 5, false),
        ] {
            let mut gathered = Gathered::default();
            for lsn in there {
                gathered.push(message(*lsn, 0), 0, u64::MAX);
            }
            let takes = gathered.takes(&message(comes, file), page_bytes, Lsn(doubtful_below));
            assert_eq!(takes, expected, "{comes} of file {file} behind {there:?}, below {doubtful_below}");
        }
    }

    #[test]
    fn a_page_knows_what_all_of_it_takes_and_where_each_stands() {
        let mut gathered = Gathered::default();
        // The second message came late, and the last stands before a page of earlier ones.
        let mut after = 700;
        let mut given = Vec::new();
        for (lsn, end) in [(5, u64::MAX), (4, u64::MAX), (9, 2_000)] {
            after = gathered.push(message(lsn, 3), after, end);
            given.push(after);
        }
        assert_eq!((gathered.memory, gathered.body_bytes), (300, 30));
        assert_eq!(given, [5 << 8, (5 << 8) + 1, 1_999]);
        let page = gathered.into_page();
        // Read again, each message stands before the page behind.
        assert_eq!(page.positions().collect::<Vec<_>>(), given);
        assert_eq!(page.read.lsns, [Lsn(5), Lsn(4), Lsn(9)].into());
    }
}
