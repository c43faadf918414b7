//! The first 64 bytes of a segment; the table of its pages follows.

use std::fmt;

use crate::limits::SEGMENT_PAGES_MAX;
use crate::seal::StoreId;

/// The version of the whole segment format.
pub(crate) const VERSION: u32 = 2;

/// Bytes of the header.
pub(crate) const HEADER_BYTES: usize = 64;

const MAGIC: [u8; 8] = *b"imoriseg";
const SUM_AT: usize = HEADER_BYTES - 4;

/// The header of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SegmentHeader {
    /// The store that the segment belongs to.
    pub store: StoreId,
    /// Number of the segment.
    pub segment: u32,
    /// Number of pages, and of rows in the table.
    pub page_count: u32,
    /// Length of the file in bytes.
    pub file_bytes: u64,
}

/// Why bytes are not the header of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SegmentHeaderError {
    /// The checksum does not match.
    Damaged,
    /// The header verifies and has an unknown version.
    Version(u32),
}

impl fmt::Display for SegmentHeaderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SegmentHeaderError::Damaged => f.write_str("the segment header does not verify"),
            SegmentHeaderError::Version(version) => write!(f, "the segment header has version `{version}`"),
        }
    }
}

impl std::error::Error for SegmentHeaderError {}

impl SegmentHeader {
    /// Encodes the header.
    #[must_use]
    pub fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        let fields: [&[u8]; 6] = [
            &MAGIC,
            &VERSION.to_le_bytes(),
            &self.store.0,
            &self.segment.to_le_bytes(),
            &self.page_count.to_le_bytes(),
            &self.file_bytes.to_le_bytes(),
        ];
        let mut at = 0;
        for field in fields {
            bytes[at..at + field.len()].copy_from_slice(field);
            at += field.len();
        }
        // A plain checksum without the store's seal, so that another store's file is not mistaken for a damaged one.
        let sum = crc32c::crc32c(&bytes[..SUM_AT]);
        bytes[SUM_AT..].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    /// Decodes a header from the start of a file.
    pub fn decode(bytes: &[u8]) -> Result<SegmentHeader, SegmentHeaderError> {
        let head = bytes.first_chunk::<HEADER_BYTES>().ok_or(SegmentHeaderError::Damaged)?;
        let (covered, sum) = head.split_at(SUM_AT);
        let (magic, rest) = take::<8>(covered)?;
        let (version, rest) = take::<4>(rest)?;
        let (store, rest) = take::<16>(rest)?;
        let (segment, rest) = take::<4>(rest)?;
        let (page_count, rest) = take::<4>(rest)?;
        let (file_bytes, _) = take::<8>(rest)?;
        let (sum, _) = take::<4>(sum)?;
        if magic != MAGIC || u32::from_le_bytes(sum) != crc32c::crc32c(covered) {
            return Err(SegmentHeaderError::Damaged);
        }
        let version = u32::from_le_bytes(version);
        if version != VERSION {
            return Err(SegmentHeaderError::Version(version));
        }
        let page_count = u32::from_le_bytes(page_count);
        if page_count as usize > SEGMENT_PAGES_MAX {
            return Err(SegmentHeaderError::Damaged);
        }
        let (segment, file_bytes) = (u32::from_le_bytes(segment), u64::from_le_bytes(file_bytes));
        Ok(SegmentHeader { store: StoreId(store), segment, page_count, file_bytes })
    }
}

fn take<const N: usize>(bytes: &[u8]) -> Result<([u8; N], &[u8]), SegmentHeaderError> {
    bytes.split_first_chunk().map(|(field, rest)| (*field, rest)).ok_or(SegmentHeaderError::Damaged)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SAMPLE: SegmentHeader =
        SegmentHeader { store: StoreId([7; 16]), segment: 3, page_count: 9, file_bytes: 8192 };

    #[test]
    fn the_format_is_this() {
        let bytes = SAMPLE.encode();
        assert_eq!(bytes[..12], *b"imoriseg\x02\0\0\0");
        assert_eq!(bytes[12..28], [7; 16]);
        assert_eq!(bytes[28..44], [3, 0, 0, 0, 9, 0, 0, 0, 0, 32, 0, 0, 0, 0, 0, 0]);
        assert!(bytes[44..SUM_AT].iter().all(|byte| *byte == 0));
        assert_eq!(SegmentHeader::decode(&bytes), Ok(SAMPLE));
    }

    #[test]
    fn no_prefix_and_no_flipped_bit_is_a_header() {
        let bytes = SAMPLE.encode();
        for len in 0..bytes.len() {
            assert_eq!(SegmentHeader::decode(&bytes[..len]), Err(SegmentHeaderError::Damaged), "{len} bytes");
        }
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes;
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(SegmentHeader::decode(&flipped), Err(SegmentHeaderError::Damaged), "bit {bit}");
        }
    }

    #[test]
    fn another_version_is_no_damage() {
        let mut bytes = SAMPLE.encode();
        bytes[8] = 1;
        let sum = crc32c::crc32c(&bytes[..SUM_AT]);
        bytes[SUM_AT..].copy_from_slice(&sum.to_le_bytes());
        assert_eq!(SegmentHeader::decode(&bytes), Err(SegmentHeaderError::Version(1)));
    }

    proptest! {
        #[test]
        fn decode_after_encode_is_identity(
            store: [u8; 16], segment: u32, page_count in 0..=SEGMENT_PAGES_MAX as u32, file_bytes: u64,
        ) {
            let header = SegmentHeader { store: StoreId(store), segment, page_count, file_bytes };
            prop_assert_eq!(SegmentHeader::decode(&header.encode()), Ok(header));
        }

        #[test]
        fn any_bytes_are_read(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            prop_assert_eq!(SegmentHeader::decode(&bytes), Err(SegmentHeaderError::Damaged));
        }
    }
}
