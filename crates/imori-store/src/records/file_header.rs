//! The header of a journal file, in its first 4 KiB.
//!
//! All fields are within the first 512 bytes, and the rest is zero. After a crash, a rewritten
//! header is therefore either the old one or the new one, never a mixture.

use std::fmt;

use crate::limits::BLOCK_BYTES;
use crate::lsn::Lsn;
use crate::seal::StoreId;

/// The format version of everything in a journal file.
pub const VERSION: u32 = 1;

const MAGIC: [u8; 8] = *b"imorijnl";
const USED_BYTES: usize = 56;

/// The header of a journal file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileHeader {
    /// The store that the file belongs to.
    pub store: StoreId,
    /// The shard of that store.
    pub shard: u32,
    /// A count of file uses: bytes with another generation are from an earlier use. Never 0.
    pub generation: u32,
    /// The number of the file's first record, once it has one.
    pub first: Option<Lsn>,
    /// The length of the file in bytes, because a truncated file does not show that by itself.
    pub file_bytes: u64,
}

/// The reason why a block is not a valid header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeaderError {
    /// The checksum does not match.
    Damaged,
    /// The header verifies but has an unknown version.
    Version(u32),
}

impl fmt::Display for HeaderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HeaderError::Damaged => f.write_str("the file header does not verify"),
            HeaderError::Version(version) => write!(f, "the file header has version `{version}`"),
        }
    }
}

impl FileHeader {
    /// Encodes the header as one block.
    #[must_use]
    pub fn encode(&self) -> [u8; BLOCK_BYTES] {
        let mut block = [0; BLOCK_BYTES];
        let first = self.first.map_or(0, |lsn| lsn.0);
        let fields: [&[u8]; 7] = [
            &MAGIC,
            &VERSION.to_le_bytes(),
            &self.shard.to_le_bytes(),
            &self.store.0,
            &self.generation.to_le_bytes(),
            &first.to_le_bytes(),
            &self.file_bytes.to_le_bytes(),
        ];
        let mut at = 0;
        for field in fields {
            block[at..at + field.len()].copy_from_slice(field);
            at += field.len();
        }
        let sum = sum(&block);
        block[at..USED_BYTES].copy_from_slice(&sum.to_le_bytes());
        block
    }

    /// Decodes the header at the start of a file.
    pub fn decode(bytes: &[u8]) -> Result<FileHeader, HeaderError> {
        let block = bytes.first_chunk::<BLOCK_BYTES>().ok_or(HeaderError::Damaged)?;
        let (magic, rest) = take::<8>(block)?;
        let (version, rest) = take::<4>(rest)?;
        let (shard, rest) = take::<4>(rest)?;
        let (store, rest) = take::<16>(rest)?;
        let (generation, rest) = take::<4>(rest)?;
        let (first, rest) = take::<8>(rest)?;
        let (file_bytes, rest) = take::<8>(rest)?;
        let (expected, _) = take::<4>(rest)?;
        if magic != MAGIC || u32::from_le_bytes(expected) != sum(block) {
            return Err(HeaderError::Damaged);
        }
        let version = u32::from_le_bytes(version);
        if version != VERSION {
            return Err(HeaderError::Version(version));
        }
        let first = u64::from_le_bytes(first);
        let generation = u32::from_le_bytes(generation);
        Ok(FileHeader {
            store: StoreId(store),
            shard: u32::from_le_bytes(shard),
            generation,
            first: (first > 0).then_some(Lsn(first)),
            file_bytes: u64::from_le_bytes(file_bytes),
        })
    }
}

/// The checksum of a block, excluding the checksum field.
fn sum(block: &[u8; BLOCK_BYTES]) -> u32 {
    let (fields, rest) = block.split_at(USED_BYTES - 4);
    let zeros = rest.split_at(4).1;
    crc32c::crc32c_append(crc32c::crc32c(fields), zeros)
}

fn take<const N: usize>(bytes: &[u8]) -> Result<([u8; N], &[u8]), HeaderError> {
    bytes.split_first_chunk().map(|(field, rest)| (*field, rest)).ok_or(HeaderError::Damaged)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SAMPLE: FileHeader = FileHeader {
        store: StoreId([7; 16]),
        shard: 3,
        generation: 9,
        first: Some(Lsn(1234)),
        file_bytes: 1 << 20,
    };

    #[test]
    fn decode_after_encode_is_identity() {
        for header in [SAMPLE, FileHeader { first: None, ..SAMPLE }] {
            assert_eq!(FileHeader::decode(&header.encode()), Ok(header));
        }
    }

    #[test]
    fn the_format_is_this() {
        let block = SAMPLE.encode();
        assert_eq!(block[..12], *b"imorijnl\x01\0\0\0");
        assert_eq!(block[12..16], [3, 0, 0, 0]);
        assert_eq!(block[16..32], [7; 16]);
        assert_eq!(block[32..44], [9, 0, 0, 0, 0xd2, 4, 0, 0, 0, 0, 0, 0]);
        assert_eq!(block[44..52], [0, 0, 0x10, 0, 0, 0, 0, 0]);
        assert!(block[USED_BYTES..].iter().all(|byte| *byte == 0));
    }

    #[test]
    fn no_prefix_and_no_flipped_bit_is_a_header() {
        let block = SAMPLE.encode();
        for len in 0..block.len() {
            assert_eq!(FileHeader::decode(&block[..len]), Err(HeaderError::Damaged), "{len} bytes");
        }
        for bit in 0..block.len() * 8 {
            let mut flipped = block;
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(FileHeader::decode(&flipped), Err(HeaderError::Damaged), "bit {bit}");
        }
    }

    #[test]
    fn another_version_is_no_damage() {
        let mut block = SAMPLE.encode();
        block[8] = 2;
        let sum = sum(&block);
        block[USED_BYTES - 4..USED_BYTES].copy_from_slice(&sum.to_le_bytes());
        assert_eq!(FileHeader::decode(&block), Err(HeaderError::Version(2)));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(bytes in proptest::collection::vec(any::<u8>(), 0..5000)) {
            prop_assert_eq!(FileHeader::decode(&bytes), Err(HeaderError::Damaged));
        }
    }
}
