//! Visits every piece of a journal file for an operator.
//!
//! It judges nothing: whether a record is needed, or damage matters, depends on all files together.

use std::io;
use std::ops::Range;

use crate::disk::{self, Disk, DiskFile as _};
use crate::limits::{BLOCK_BYTES, FILE_BYTES_MAX};
use crate::lsn::LsnRange;
use crate::records::batch::{self, BatchError};
use crate::records::record::{self, ALIGN_BYTES, HEADER_BYTES, RecordType, RecordView};
use crate::records::{FileHeader, HeaderError, journal_file};
use crate::seal::{Seal, StoreId};

/// One piece of a journal file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JournalPiece<'a> {
    /// A file header that does not verify, or has another version.
    Header(HeaderError),
    /// A file header of another store; its records are not read.
    Foreign,
    /// A record that verifies.
    Record {
        /// The record.
        record: RecordView<'a>,
        /// Whether no batch around the record verifies.
        is_alone: bool,
    },
    /// A batch of which the header verifies, but not all records do.
    Broken {
        /// The numbers of the batch.
        lsns: LsnRange,
        /// The length of the batch in bytes.
        bytes: usize,
    },
    /// Bytes of a broken batch in which no record verifies.
    Unverified {
        /// The number of bytes.
        bytes: usize,
    },
}

/// The names of all journal files, including those set aside.
pub fn files<D: Disk>(disk: &D) -> io::Result<Vec<String>> {
    let mut names = disk.list()?;
    names.retain(|name| journal_file::parse_name(name).is_some() && !journal_file::is_unfinished(name));
    Ok(names)
}

/// Reads a whole file; any journal file fits into memory.
pub fn read<D: Disk>(disk: &D, name: &str) -> io::Result<Vec<u8>> {
    let file = disk.open(name)?;
    match file.size()? {
        size if size <= FILE_BYTES_MAX => disk::read_all(&file),
        size => {
            Err(io::Error::other(format!("`{name}` has {size} bytes, more than a journal file can have")))
        }
    }
}

/// Passes each piece and its offset to `visit`, in file order, until it returns an error.
pub fn walk<E>(
    bytes: &[u8],
    store: StoreId,
    visit: &mut impl FnMut(u64, JournalPiece<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let seal = Seal::new(store);
    let generation = match FileHeader::decode(bytes) {
        Ok(header) if header.store != store => return visit(0, JournalPiece::Foreign),
        Ok(header) => Some(header.generation),
        Err(error) => {
            visit(0, JournalPiece::Header(error))?;
            latest_generation(bytes, seal)
        }
    };
    let Some(generation) = generation else { return Ok(()) };
    let search = Search { bytes, seal, generation };
    // Bytes in no verified batch are searched for records, up to the next whole or broken batch.
    let (mut at, mut unverified, mut broken_until) = (BLOCK_BYTES, None, 0);
    while let Some(rest) = bytes.get(at..).filter(|rest| rest.len() >= BLOCK_BYTES) {
        let begin = unverified.unwrap_or(at);
        match batch::decode(rest, seal, generation) {
            Ok((header, records)) => {
                search.run(begin..at, broken_until, visit)?;
                let mut offset = at + batch::HEADER_BYTES;
                for record in records {
                    visit(offset as u64, JournalPiece::Record { record, is_alone: false })?;
                    offset += record::encoded_bytes(record.payload.len());
                }
                unverified = None;
                at += header.batch_bytes;
                continue;
            }
            Err(BatchError::Records(header)) => {
                search.run(begin..at, broken_until, visit)?;
                visit(at as u64, JournalPiece::Broken { lsns: header.lsns, bytes: header.batch_bytes })?;
                (unverified, broken_until) = (Some(at + batch::HEADER_BYTES), at + header.batch_bytes);
            }
            Err(BatchError::Header | BatchError::Generation(_)) => unverified = Some(begin),
        }
        at += BLOCK_BYTES;
    }
    search.run(unverified.unwrap_or(at)..bytes.len(), broken_until, visit)
}

/// The search for records outside of verified batches.
struct Search<'a> {
    bytes: &'a [u8],
    seal: Seal,
    generation: u32,
}

impl Search<'_> {
    /// Reports the records in a gap, and unverified bytes before `broken_until`.
    fn run<E>(
        &self,
        piece: Range<usize>,
        broken_until: usize,
        visit: &mut impl FnMut(u64, JournalPiece<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mark = self.generation.to_le_bytes();
        let Range { start: mut at, end } = piece;
        let mut gap = at;
        while let Some(rest) = self.bytes.get(at..end).filter(|rest| rest.len() >= HEADER_BYTES) {
            // The generation rules out most positions before a checksum is computed.
            let is_candidate = rest.get(10..14) == Some(&mark);
            let Some(Ok((record, consumed))) = is_candidate.then(|| record::decode(rest, self.seal)) else {
                at += ALIGN_BYTES;
                continue;
            };
            self.gap(gap..at, broken_until, visit)?;
            // Padding carries no information.
            if record.kind != RecordType::Pad {
                visit(at as u64, JournalPiece::Record { record, is_alone: true })?;
            }
            at += consumed.next_multiple_of(ALIGN_BYTES);
            gap = at;
        }
        self.gap(gap..end, broken_until, visit)
    }

    fn gap<E>(
        &self,
        gap: Range<usize>,
        broken_until: usize,
        visit: &mut impl FnMut(u64, JournalPiece<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let end = gap.end.min(broken_until);
        match self.bytes.get(gap.start..end) {
            Some(unverified) if unverified.iter().any(|byte| *byte != 0) => {
                visit(gap.start as u64, JournalPiece::Unverified { bytes: unverified.len() })
            }
            _ => Ok(()),
        }
    }
}

fn latest_generation(bytes: &[u8], seal: Seal) -> Option<u32> {
    let blocks = bytes.as_chunks::<BLOCK_BYTES>().0;
    blocks.iter().filter_map(|block| batch::decode_header(block, seal)).map(|header| header.generation).max()
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::lsn::Lsn;
    use crate::records::Record;

    const STORE: StoreId = StoreId([3; 16]);
    const GENERATION: u32 = 6;

    /// A file with batches of one, three and one records, and nothing after them.
    fn file() -> Vec<u8> {
        let first = Some(Lsn(1));
        let file_bytes = 6 * BLOCK_BYTES as u64;
        let header = FileHeader { store: STORE, shard: 0, generation: GENERATION, first, file_bytes };
        let mut bytes = header.encode().to_vec();
        let mut next = 1;
        for count in [1, 3, 1] {
            let record = |number: u64| Record {
                lsn: Lsn(number),
                kind: RecordType::Message,
                flags: 0,
                payload: Bytes::from(vec![number as u8; 100]),
            };
            let records: Vec<Record> = (next..next + count).map(record).collect();
            let lsns = LsnRange { first: Lsn(next), last: Lsn(next + count - 1) };
            batch::push(&mut bytes, Seal::new(STORE), GENERATION, lsns, records.iter());
            next += count;
        }
        bytes.resize(bytes.len() + 2 * BLOCK_BYTES, 0);
        bytes
    }

    fn places(bytes: &[u8], store: StoreId) -> Vec<String> {
        let mut places = Vec::new();
        let mut note = |offset: u64, place: JournalPiece<'_>| {
            places.push(match place {
                JournalPiece::Header(error) => format!("{offset} {error}"),
                JournalPiece::Foreign => format!("{offset} foreign"),
                JournalPiece::Record { record, is_alone: false } => format!("{offset} {}", record.lsn),
                JournalPiece::Record { record, is_alone: true } => format!("{offset} {} alone", record.lsn),
                JournalPiece::Broken { lsns, bytes } => format!("{offset} broken {lsns} {bytes}"),
                JournalPiece::Unverified { bytes } => format!("{offset} unverified {bytes}"),
            });
            Ok::<(), ()>(())
        };
        walk(bytes, store, &mut note).expect("it has never enough");
        places
    }

    #[test]
    fn each_place_is_told() {
        let whole = ["4136 1", "8232 2", "8360 3", "8488 4", "12328 5"];
        for (hurt, expected) in [
            ((|_| ()) as fn(&mut Vec<u8>), whole.to_vec()),
            (
                |bytes| bytes[8360 + 50] ^= 1,
                vec![
                    "4136 1",
                    "8192 broken 2-4 4096",
                    "8232 2 alone",
                    "8360 unverified 128",
                    "8488 4 alone",
                    "12328 5",
                ],
            ),
            (
                |bytes| bytes[8192] ^= 1,
                vec!["4136 1", "8232 2 alone", "8360 3 alone", "8488 4 alone", "12328 5"],
            ),
            // Zeros mean nothing, and bytes behind a broken batch are from an earlier use of the
            // file.
            (
                |bytes| bytes[8360..8488].fill(0),
                vec!["4136 1", "8192 broken 2-4 4096", "8232 2 alone", "8488 4 alone", "12328 5"],
            ),
            (
                |bytes| {
                    bytes[12328 + 50] ^= 1;
                    bytes[16384..].fill(7);
                },
                [&whole[..4], &["12288 broken 5 4096", "12328 unverified 128"]].concat(),
            ),
            (|bytes| bytes.truncate(12328), whole[..4].to_vec()),
            (|bytes| bytes.truncate(8400), vec!["4136 1", "8232 2 alone"]),
            (|bytes| bytes[0] ^= 1, [&["0 the file header does not verify"], &whole[..]].concat()),
            (|bytes| bytes.clear(), vec!["0 the file header does not verify"]),
        ] {
            let mut bytes = file();
            hurt(&mut bytes);
            assert_eq!(places(&bytes, STORE), expected);
        }
        assert_eq!(places(&file(), StoreId([4; 16])), ["0 foreign"]);
    }

    #[test]
    fn any_bytes_are_walked() {
        let sample = file();
        for bit in 0..sample.len() * 8 {
            if bit % 7 == 0 {
                let mut bytes = sample.clone();
                bytes[bit / 8] ^= 1 << (bit % 8);
                let found = places(&bytes, STORE);
                assert!(found.len() >= 5, "bit {bit}: {found:?}");
            }
        }
    }
}
