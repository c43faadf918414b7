//! The queue of appended records that are not in a batch yet. It assigns their numbers, but neither
//! encodes nor checks them.
//!
//! The intake never refuses a record because it is full: a received record has to go somewhere. The
//! owner watches `queued_bytes` and stops publishers above a mark. Settles and checkpoints, which
//! free space, continue.

use std::collections::VecDeque;
use std::fmt;

use bytes::Bytes;

use crate::limits::BLOCK_BYTES;
use crate::lsn::{Lsn, LsnRange};
use crate::records::batch;
use crate::records::record::{self, FLAG_IN_GROUP, Record, RecordType};

/// A record without a number yet.
#[derive(Debug, Clone)]
pub struct NewRecord {
    /// The kind of the record.
    pub kind: RecordType,
    /// The payload, which the journal does not interpret.
    pub payload: Bytes,
}

/// The reason why records are refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AppendError {
    /// No record was given.
    Nothing,
    /// The records are larger than a journal file.
    TooLarge {
        /// The bytes they would take.
        bytes: usize,
        /// The bytes that a file has room for.
        bytes_max: usize,
    },
    /// A write or sync failed; this journal releases nothing more.
    Poisoned,
}

impl fmt::Display for AppendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AppendError::Nothing => f.write_str("no record is given; append at least one"),
            AppendError::TooLarge { bytes, bytes_max } => write!(
                f,
                "records of `{bytes}` bytes do not fit into a journal file; send at most {bytes_max} bytes, \
                 or use larger files"
            ),
            AppendError::Poisoned => f.write_str("the disk failed; restart to recover what is on it"),
        }
    }
}

impl std::error::Error for AppendError {}

/// Records that fit into a file; their size was checked without holding a lock.
#[derive(Debug)]
pub struct Admitted<R> {
    records: R,
    is_group: bool,
    bytes: usize,
}

impl<R: AsRef<[NewRecord]> + IntoIterator<Item = NewRecord>> Admitted<R> {
    /// Independent records, for files of `file_bytes`.
    pub fn each(records: R, file_bytes: usize) -> Result<Admitted<R>, AppendError> {
        let sizes = records.as_ref().iter().map(encoded_bytes);
        let (bytes, largest) = sizes.fold((0, 0), |(all, largest), one| (all + one, one.max(largest)));
        admit(largest, file_bytes)?;
        Ok(Admitted { records, is_group: false, bytes })
    }

    /// An atomic group: after a crash all of its records are present or none.
    pub fn group(records: R, file_bytes: usize) -> Result<Admitted<R>, AppendError> {
        let inner: usize = records.as_ref().iter().map(encoded_bytes).sum();
        let ends = if inner > 0 { 2 * record::encoded_bytes(0) } else { 0 };
        admit(inner + ends, file_bytes)?;
        Ok(Admitted { records, is_group: true, bytes: inner + ends })
    }

    /// The encoded size of the records.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

/// A waiting record, and the first number it accounts for: a pad covers a range of lost numbers.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) first: Lsn,
    pub(crate) record: Record,
}

/// The end of the journal to which records are appended.
#[derive(Debug)]
pub struct Intake {
    next: Lsn,
    entries: VecDeque<Entry>,
    is_poisoned: bool,
}

impl Intake {
    /// An empty intake that gives the next record this number.
    pub(crate) fn new(next: Lsn) -> Intake {
        Intake { next, entries: VecDeque::new(), is_poisoned: false }
    }

    /// Appends records and returns their numbers, including those of a group's begin and end.
    pub fn append<R>(&mut self, admitted: Admitted<R>) -> Result<LsnRange, AppendError>
    where
        R: AsRef<[NewRecord]> + IntoIterator<Item = NewRecord>,
    {
        if self.is_poisoned {
            return Err(AppendError::Poisoned);
        }
        let first = self.next;
        let flags = if admitted.is_group { FLAG_IN_GROUP } else { 0 };
        if admitted.is_group {
            self.push(RecordType::GroupBegin, flags, Bytes::new());
        }
        for NewRecord { kind, payload } in admitted.records {
            self.push(kind, flags, payload);
        }
        if admitted.is_group {
            self.push(RecordType::GroupEnd, flags, Bytes::new());
        }
        Ok(LsnRange { first, last: Lsn(self.next.0 - 1) })
    }

    /// The LSN of the next record.
    #[must_use]
    pub fn next_lsn(&self) -> Lsn {
        self.next
    }

    /// Whether records wait.
    pub(crate) fn has_records(&self) -> bool {
        !self.entries.is_empty()
    }

    /// Refuses all records from now on, and drops the waiting ones.
    pub fn poison(&mut self) {
        self.is_poisoned = true;
        self.entries.clear();
    }

    /// Swaps all waiting records for an empty queue.
    pub(crate) fn hand_over(&mut self, empty: &mut VecDeque<Entry>) {
        debug_assert!(empty.is_empty(), "what was handed over before is taken first");
        std::mem::swap(&mut self.entries, empty);
    }

    fn push(&mut self, kind: RecordType, flags: u8, payload: Bytes) {
        let lsn = self.next;
        self.next = lsn.next();
        self.entries.push_back(Entry { first: lsn, record: Record { lsn, kind, flags, payload } });
    }
}

fn admit(unit_bytes: usize, file_bytes: usize) -> Result<(), AppendError> {
    let bytes_max = file_bytes - BLOCK_BYTES - batch::HEADER_BYTES;
    match unit_bytes {
        0 => Err(AppendError::Nothing),
        bytes if bytes > bytes_max => Err(AppendError::TooLarge { bytes, bytes_max }),
        _ => Ok(()),
    }
}

fn encoded_bytes(record: &NewRecord) -> usize {
    record::encoded_bytes(record.payload.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE_BYTES: usize = 4 * BLOCK_BYTES;

    fn records(lens: &[usize]) -> Vec<NewRecord> {
        let one = |len: &usize| NewRecord { kind: RecordType::Message, payload: vec![7; *len].into() };
        lens.iter().map(one).collect()
    }

    #[test]
    fn what_does_not_fit_into_a_file_is_refused() {
        let bytes_max = FILE_BYTES - BLOCK_BYTES - batch::HEADER_BYTES;
        let largest = bytes_max / 8 * 8 - 24;
        for (lens, is_each, is_group) in [
            (vec![], false, false),
            (vec![0], true, true),
            (vec![largest], true, false),
            (vec![largest - 48], true, true),
            (vec![largest + 8], false, false),
            (vec![6000, 6000], true, true),
            (vec![6000, 6300], true, false),
        ] {
            assert_eq!(Admitted::each(records(&lens), FILE_BYTES).is_ok(), is_each, "{lens:?}");
            assert_eq!(Admitted::group(records(&lens), FILE_BYTES).is_ok(), is_group, "{lens:?}");
        }
    }

    #[test]
    fn numbers_follow_each_other_and_a_group_has_two_more() {
        let mut intake = Intake::new(Lsn(5));
        let each = Admitted::each(records(&[1, 2]), FILE_BYTES).expect("they fit");
        assert_eq!(intake.append(each), Ok(LsnRange { first: Lsn(5), last: Lsn(6) }));
        let group = Admitted::group(records(&[1, 2]), FILE_BYTES).expect("they fit");
        assert_eq!(group.bytes(), 4 * 24);
        assert_eq!(intake.append(group), Ok(LsnRange { first: Lsn(7), last: Lsn(10) }));
        let mut taken = VecDeque::new();
        intake.hand_over(&mut taken);
        let kinds: Vec<u8> = taken.iter().map(|entry| entry.record.kind as u8).collect();
        assert_eq!(kinds, [1, 1, 5, 1, 1, 6]);
        intake.poison();
        let each = Admitted::each(records(&[1]), FILE_BYTES).expect("it fits");
        assert_eq!(intake.append(each), Err(AppendError::Poisoned));
    }
}
