//! The facts of a page: a row of 128 bytes in the segment's table, and a copy before the page.
//!
//! The table serves an opening and reads; the copy finds a page whose row in the table is damaged. A row
//! names the place it belongs to, and its checksum covers that place and which of the two it is.

use crate::limits::PAGE_ALIGN_BYTES;
use crate::lsn::Lsn;
use crate::planted::Fault;
use crate::seal::Seal;

/// Bytes of a row.
pub const ROW_BYTES: usize = 128;

const FLAG_RISES: u8 = 1;
/// Bytes between the kind of the digest and the digest, which are 0.
const RESERVED_BYTES: usize = 7;
const SUM_AT: usize = ROW_BYTES - 4;

/// The address of a page: segment and index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PageRef {
    segment: u32,
    index: u32,
}

impl PageRef {
    /// The address of the page with this index in this segment.
    #[must_use]
    pub fn new(segment: u32, index: u32) -> PageRef {
        PageRef { segment, index }
    }

    /// Number of the segment.
    #[must_use]
    pub fn segment(self) -> u32 {
        self.segment
    }

    /// Index in the segment, from 0.
    #[must_use]
    pub fn index(self) -> u32 {
        self.index
    }
}

/// The times of the messages of a page, in milliseconds as the owner counts them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PageTimes {
    /// The lowest.
    pub first: u64,
    /// The highest.
    pub last: u64,
}

/// A digest of the subjects in a page, by which a filtering reader can skip the page.
///
/// The store keeps it and does not interpret it. A reader that does not know the kind reads the page.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SubjectDigest {
    /// The kind of digest; 0 if there is none.
    pub kind: u8,
    /// The digest.
    pub bytes: [u8; SubjectDigest::BYTES],
}

impl SubjectDigest {
    /// Room for a digest, in bytes.
    pub const BYTES: usize = 32;

    /// No digest: the page may have any subject.
    pub const NONE: SubjectDigest = SubjectDigest { kind: 0, bytes: [0; SubjectDigest::BYTES] };
}

/// The facts of a page that are known without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageFacts {
    /// Owner of the entries.
    pub owner: u64,
    /// Priority of the entries.
    pub level: u8,
    /// Address of the page.
    pub page: PageRef,
    /// Number of entries.
    pub count: u32,
    /// Bytes of all payloads.
    pub bytes: u32,
    /// The lowest sequence.
    pub first_sequence: u64,
    /// The highest sequence.
    pub last_sequence: u64,
    /// The lowest LSN.
    pub first: Lsn,
    /// The highest LSN.
    pub last: Lsn,
    /// The lowest and the highest time, as the owner gave them.
    pub times: PageTimes,
    /// A digest of the subjects.
    pub subjects: SubjectDigest,
}

/// The two copies of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowPlacement {
    /// In the table of the segment.
    Table = 1,
    /// In front of its page.
    Page = 2,
}

/// The facts of a page, and the location of its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// The facts, as given to the owner of the page.
    pub facts: PageFacts,
    /// Number of pages in the segment, in case its header is lost.
    pub page_count: u16,
    /// Whether LSNs rise from entry to entry, so that neighbours bound the LSN of a lost entry.
    pub rises: bool,
    /// Offset in the file, a multiple of [`PAGE_ALIGN_BYTES`].
    pub offset: u64,
    /// Length in bytes with the row, without the alignment of the next page.
    pub len: u32,
}

impl Row {
    /// Encodes the row for one of its two copies.
    #[must_use]
    pub fn encode(&self, seal: Seal, place: RowPlacement) -> [u8; ROW_BYTES] {
        let mut bytes = [0; ROW_BYTES];
        let facts = &self.facts;
        let offset = u32::try_from(self.offset / PAGE_ALIGN_BYTES as u64).expect("a segment has a limit");
        let fields: [&[u8]; 19] = [
            &facts.page.segment.to_le_bytes(),
            &facts.page.index.to_le_bytes(),
            &facts.owner.to_le_bytes(),
            &[facts.level],
            &[if self.rises { FLAG_RISES } else { 0 }],
            &self.page_count.to_le_bytes(),
            &facts.count.to_le_bytes(),
            &facts.bytes.to_le_bytes(),
            &self.len.to_le_bytes(),
            &offset.to_le_bytes(),
            &facts.first_sequence.to_le_bytes(),
            &facts.last_sequence.to_le_bytes(),
            &facts.first.0.to_le_bytes(),
            &facts.last.0.to_le_bytes(),
            &facts.times.first.to_le_bytes(),
            &facts.times.last.to_le_bytes(),
            &[facts.subjects.kind],
            &[0; RESERVED_BYTES],
            &facts.subjects.bytes,
        ];
        let mut at = 0;
        for field in fields {
            bytes[at..at + field.len()].copy_from_slice(field);
            at += field.len();
        }
        let sum = sum(seal, place, &bytes[..SUM_AT]);
        bytes[SUM_AT..].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    /// Decodes a row at the start of `bytes`, if it verifies as this copy.
    #[must_use]
    pub fn decode(bytes: &[u8], seal: Seal, place: RowPlacement) -> Option<Row> {
        let covered = bytes.get(..SUM_AT)?;
        let (expected, _) = take(bytes.get(SUM_AT..)?)?;
        let is_whole = u32::from_le_bytes(expected) == sum(seal, place, covered);
        if !is_whole && !seal.planted.has(Fault::TableWithoutChecksum) {
            return None;
        }
        let (segment, rest) = take::<4>(covered)?;
        let (index, rest) = take::<4>(rest)?;
        let (owner, rest) = take::<8>(rest)?;
        let ([level, flags], rest) = take::<2>(rest)?;
        let (page_count, rest) = take::<2>(rest)?;
        let (count, rest) = take::<4>(rest)?;
        let (bytes, rest) = take::<4>(rest)?;
        let (len, rest) = take::<4>(rest)?;
        let (offset, rest) = take::<4>(rest)?;
        let (first_sequence, rest) = take::<8>(rest)?;
        let (last_sequence, rest) = take::<8>(rest)?;
        let (first, rest) = take::<8>(rest)?;
        let (last, rest) = take::<8>(rest)?;
        let (first_time, rest) = take::<8>(rest)?;
        let (last_time, rest) = take::<8>(rest)?;
        let ([kind], rest) = take::<1>(rest)?;
        let (reserved, rest) = take::<RESERVED_BYTES>(rest)?;
        let (subjects, _) = take::<{ SubjectDigest::BYTES }>(rest)?;
        let page = PageRef::new(u32::from_le_bytes(segment), u32::from_le_bytes(index));
        let facts = PageFacts {
            owner: u64::from_le_bytes(owner),
            level,
            page,
            count: u32::from_le_bytes(count),
            bytes: u32::from_le_bytes(bytes),
            first_sequence: u64::from_le_bytes(first_sequence),
            last_sequence: u64::from_le_bytes(last_sequence),
            first: Lsn(u64::from_le_bytes(first)),
            last: Lsn(u64::from_le_bytes(last)),
            times: PageTimes { first: u64::from_le_bytes(first_time), last: u64::from_le_bytes(last_time) },
            subjects: SubjectDigest { kind, bytes: subjects },
        };
        let page_count = u16::from_le_bytes(page_count);
        let offset = u64::from(u32::from_le_bytes(offset)) * PAGE_ALIGN_BYTES as u64;
        let (rises, len) = (flags & FLAG_RISES != 0, u32::from_le_bytes(len));
        let is_known = flags & !FLAG_RISES == 0 && reserved == [0; RESERVED_BYTES];
        let is_known = is_known && page.index < u32::from(page_count);
        is_known.then_some(Row { facts, page_count, rises, offset, len })
    }

    /// Offset of the page's end, before the alignment of the next one.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.offset + u64::from(self.len)
    }
}

fn sum(seal: Seal, place: RowPlacement, covered: &[u8]) -> u32 {
    seal.sum(&[&[place as u8], covered])
}

fn take<const N: usize>(bytes: &[u8]) -> Option<([u8; N], &[u8])> {
    bytes.split_first_chunk().map(|(field, rest)| (*field, rest))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::seal::StoreId;

    fn seal() -> Seal {
        Seal::new(StoreId([1; 16]))
    }

    fn sample() -> Row {
        let facts = PageFacts {
            owner: 1,
            level: 2,
            page: PageRef::new(3, 4),
            count: 5,
            bytes: 6,
            first_sequence: 7,
            last_sequence: 8,
            first: Lsn(9),
            last: Lsn(10),
            times: PageTimes { first: 14, last: 15 },
            subjects: SubjectDigest { kind: 16, bytes: [17; SubjectDigest::BYTES] },
        };
        Row { facts, page_count: 11, rises: true, offset: 12 * PAGE_ALIGN_BYTES as u64, len: 13 }
    }

    #[test]
    fn the_format_is_this() {
        let bytes = sample().encode(seal(), RowPlacement::Table);
        assert_eq!(bytes[..20], [3, 0, 0, 0, 4, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2, 1, 11, 0]);
        assert_eq!(bytes[20..36], [5, 0, 0, 0, 6, 0, 0, 0, 13, 0, 0, 0, 12, 0, 0, 0]);
        let [first, last] = [bytes[36..44].to_vec(), bytes[60..68].to_vec()];
        assert_eq!([first, last], [vec![7, 0, 0, 0, 0, 0, 0, 0], vec![10, 0, 0, 0, 0, 0, 0, 0]]);
        assert_eq!(bytes[68..84], [14, 0, 0, 0, 0, 0, 0, 0, 15, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(bytes[84..92], [16, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(bytes[92..SUM_AT], [17; 32]);
    }

    #[test]
    fn no_prefix_no_flipped_bit_and_no_other_place_is_a_row() {
        let bytes = sample().encode(seal(), RowPlacement::Table);
        assert_eq!(Row::decode(&bytes, seal(), RowPlacement::Page), None);
        assert_eq!(Row::decode(&bytes, Seal::new(StoreId([2; 16])), RowPlacement::Table), None);
        for len in 0..bytes.len() {
            assert_eq!(Row::decode(&bytes[..len], seal(), RowPlacement::Table), None, "{len} bytes");
        }
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes;
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Row::decode(&flipped, seal(), RowPlacement::Table), None, "bit {bit}");
        }
    }

    proptest! {
        #[test]
        fn decode_after_encode_is_identity(
            numbers: [u64; 7], small: [u32; 5], level: u8, rises: bool, is_page: bool, kind: u8, digest: [u8; 32],
        ) {
            let [owner, first_sequence, last_sequence, first, last, first_time, last_time] = numbers;
            let times = PageTimes { first: first_time, last: last_time };
            let subjects = SubjectDigest { kind, bytes: digest };
            let [segment, count, bytes, len, offset] = small;
            let (first, last, page) = (Lsn(first), Lsn(last), PageRef::new(segment, count % 9));
            let facts = PageFacts {
                owner, level, page, count, bytes, first_sequence, last_sequence, first, last, times, subjects,
            };
            let offset = u64::from(offset) * PAGE_ALIGN_BYTES as u64;
            let row = Row { facts, page_count: 9, rises, offset, len };
            let place = if is_page { RowPlacement::Page } else { RowPlacement::Table };
            prop_assert_eq!(Row::decode(&row.encode(seal(), place), seal(), place), Some(row));
        }

        #[test]
        fn any_bytes_are_read(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            prop_assert_eq!(Row::decode(&bytes, seal(), RowPlacement::Table), None);
        }
    }
}
