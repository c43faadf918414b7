//! A batch: records made durable by one write and one sync, after a header, padded to 4 KiB blocks.
//!
//! The header is `magic u32, crc32c u32, generation u32, records u32, first u64, last u64, bytes
//! u32, 0 u32`. The batch accounts for the numbers `first` to `last`; those without a record are
//! known to be lost.

use super::record::{self, ALIGN_BYTES, HEADER_BYTES as RECORD_HEADER_BYTES, Record, RecordType, RecordView};
use crate::limits::BLOCK_BYTES;
use crate::lsn::{Lsn, LsnRange};
use crate::planted::Fault;
use crate::seal::Seal;

/// The size in bytes of the batch header.
pub const HEADER_BYTES: usize = 40;

const MAGIC: [u8; 4] = *b"imba";

/// The header of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchHeader {
    /// The generation of the file that the batch was written for.
    pub generation: u32,
    /// The LSNs that the batch accounts for.
    pub lsns: LsnRange,
    /// The length in bytes, including this header and the pad.
    pub batch_bytes: usize,
    /// The number of records, not counting the pad.
    pub record_count: u32,
}

/// The reason why bytes are not a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BatchError {
    /// No batch header verifies here.
    Header,
    /// The header verifies but belongs to another use of the file.
    Generation(u32),
    /// The header verifies, but not all of the announced records do.
    Records(BatchHeader),
}

/// The length in bytes of a batch with records of `record_bytes` in total.
#[must_use]
pub fn batch_bytes(record_bytes: usize) -> usize {
    (HEADER_BYTES + record_bytes).next_multiple_of(BLOCK_BYTES)
}

/// Appends a batch that accounts for `lsns` to `out`, which must be aligned.
pub fn push<'a>(
    out: &mut Vec<u8>,
    seal: Seal,
    generation: u32,
    lsns: LsnRange,
    records: impl Iterator<Item = &'a Record>,
) {
    let start = out.len();
    out.resize(start + HEADER_BYTES, 0);
    let mut count = 0u32;
    for Record { lsn, kind, flags, payload } in records {
        count += 1;
        let view = RecordView { lsn: *lsn, kind: *kind, flags: *flags, generation, payload };
        record::push(out, seal, &view);
    }
    let all = batch_bytes(out.len() - start - HEADER_BYTES);
    let rest = all - (out.len() - start);
    if let Some(len) = rest.checked_sub(RECORD_HEADER_BYTES) {
        let zeros = [0; BLOCK_BYTES];
        let payload = zeros.get(..len).expect("a pad is shorter than a block");
        record::push(
            out,
            seal,
            &RecordView { lsn: lsns.last, kind: RecordType::Pad, flags: 0, generation, payload },
        );
    }
    out.resize(start + all, 0);
    let bytes = u32::try_from(all).expect("a journal file is smaller than 4 GiB");
    let mut head = [0; HEADER_BYTES];
    head[..4].copy_from_slice(&MAGIC);
    head[8..12].copy_from_slice(&generation.to_le_bytes());
    head[12..16].copy_from_slice(&count.to_le_bytes());
    head[16..24].copy_from_slice(&lsns.first.0.to_le_bytes());
    head[24..32].copy_from_slice(&lsns.last.0.to_le_bytes());
    head[32..36].copy_from_slice(&bytes.to_le_bytes());
    let sum = seal.sum(&[&head[..4], &head[8..]]);
    head[4..8].copy_from_slice(&sum.to_le_bytes());
    out[start..start + HEADER_BYTES].copy_from_slice(&head);
}

/// Decodes a batch header; `None` if it does not verify.
#[must_use]
pub fn decode_header(bytes: &[u8], seal: Seal) -> Option<BatchHeader> {
    let head = bytes.first_chunk::<HEADER_BYTES>()?;
    let word = |at: usize| head.get(at..)?.first_chunk().map(|field| u32::from_le_bytes(*field));
    let long = |at: usize| head.get(at..)?.first_chunk().map(|field| u64::from_le_bytes(*field));
    if !head.starts_with(&MAGIC) || word(4)? != seal.sum(&[head.get(..4)?, head.get(8..)?]) {
        return None;
    }
    let lsns = LsnRange { first: Lsn(long(16)?), last: Lsn(long(24)?) };
    let (batch_bytes, record_count) = (usize::try_from(word(32)?).ok()?, word(12)?);
    let is_sound = lsns.first >= Lsn::FIRST
        && lsns
            .last
            .0
            .checked_sub(lsns.first.0)
            .is_some_and(|more| u64::from(record_count) <= more.saturating_add(1))
        && record_count > 0
        && batch_bytes > 0
        && batch_bytes.is_multiple_of(BLOCK_BYTES);
    is_sound.then_some(BatchHeader { generation: word(8)?, lsns, batch_bytes, record_count })
}

/// Decodes a batch of this generation at the start of `bytes`; all its records must verify.
pub fn decode(
    bytes: &[u8],
    seal: Seal,
    generation: u32,
) -> Result<(BatchHeader, Vec<RecordView<'_>>), BatchError> {
    let header = decode_header(bytes, seal).ok_or(BatchError::Header)?;
    let is_of_now = |found: u32| found == generation || seal.planted.has(Fault::StaleGeneration);
    if !is_of_now(header.generation) {
        return Err(BatchError::Generation(header.generation));
    }
    let broken = BatchError::Records(header);
    let mut rest = bytes.get(HEADER_BYTES..header.batch_bytes).ok_or(broken)?;
    // Do not trust the announced count beyond what the bytes could hold.
    let count_max = rest.len() / RECORD_HEADER_BYTES.next_multiple_of(ALIGN_BYTES);
    let mut records: Vec<RecordView<'_>> = Vec::with_capacity(count_max.min(header.record_count as usize));
    for _ in 0..header.record_count {
        let (record, consumed) = record::decode(rest, seal).map_err(|_| broken)?;
        let is_next = records.last().map_or(record.lsn >= header.lsns.first, |last| record.lsn > last.lsn);
        if !is_of_now(record.generation) || !is_next || record.lsn > header.lsns.last {
            return Err(broken);
        }
        records.push(record);
        rest = rest.get(consumed..).unwrap_or_default();
    }
    Ok((header, records))
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use proptest::prelude::*;

    use super::*;
    use crate::seal::StoreId;

    fn seal() -> Seal {
        Seal::new(StoreId([1; 16]))
    }

    fn records(lens: &[usize]) -> Vec<Record> {
        let one = |(number, len): (usize, &usize)| Record {
            lsn: Lsn(10 + number as u64),
            kind: RecordType::Message,
            flags: 0,
            payload: Bytes::from(vec![number as u8; *len]),
        };
        lens.iter().enumerate().map(one).collect()
    }

    fn encoded(records: &[Record]) -> Vec<u8> {
        let mut out = Vec::new();
        let lsns = LsnRange { first: Lsn(10), last: Lsn(9 + records.len() as u64) };
        push(&mut out, seal(), 4, lsns, records.iter());
        out
    }

    fn read(bytes: &[u8]) -> Option<Vec<Record>> {
        let own = |view: &RecordView<'_>| Record {
            lsn: view.lsn,
            kind: view.kind,
            flags: view.flags,
            payload: Bytes::copy_from_slice(view.payload),
        };
        decode(bytes, seal(), 4).ok().map(|(_, views)| views.iter().map(own).collect())
    }

    #[test]
    fn a_batch_fills_its_blocks_whatever_is_left() {
        for len in 0..100 {
            let sample = records(&[3900 + len, 7]);
            let bytes = encoded(&sample);
            assert!(bytes.len().is_multiple_of(BLOCK_BYTES), "{len}");
            assert_eq!(read(&bytes), Some(sample), "{len}");
        }
    }

    #[test]
    fn a_batch_of_another_generation_is_none() {
        assert_eq!(decode(&encoded(&records(&[5])), seal(), 5).err(), Some(BatchError::Generation(4)));
    }

    #[test]
    fn no_prefix_is_a_batch() {
        let bytes = encoded(&records(&[100, 3, 5000]));
        for len in 0..bytes.len() {
            assert_eq!(read(&bytes[..len]), None, "{len} bytes");
        }
    }

    #[test]
    fn no_flipped_bit_changes_a_batch() {
        let sample = records(&[100, 3]);
        let bytes = encoded(&sample);
        let used = HEADER_BYTES + record::encoded_bytes(100) + RECORD_HEADER_BYTES + 3;
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            let is_same = read(&flipped).is_some_and(|found| found == sample);
            // Padding up to the alignment and to the block is not covered.
            let is_covered = bit / 8 < used && !(162..168).contains(&(bit / 8));
            assert_eq!(is_same, !is_covered, "bit {bit}");
        }
    }

    /// A batch with changed header fields and a matching header checksum.
    fn resealed(change: impl FnOnce(&mut [u8])) -> Vec<u8> {
        let mut bytes = encoded(&records(&[100, 3]));
        change(&mut bytes[..HEADER_BYTES]);
        let sum = seal().sum(&[&bytes[..4], &bytes[8..HEADER_BYTES]]);
        bytes[4..8].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    #[test]
    fn a_header_is_none_that_announces_what_no_batch_has() {
        for (what, at, field, is_sound) in [
            ("two records of two numbers", 12, vec![2], true),
            ("two of ten numbers, for others were lost", 24, vec![19], true),
            ("no record", 12, vec![0], false),
            ("more records than numbers", 12, vec![3], false),
            ("the number before the first", 16, vec![0], false),
            ("numbers that fall", 16, vec![12], false),
            ("no bytes", 32, vec![0, 0], false),
            ("bytes that end in a block", 32, vec![0, 17], false),
        ] {
            let bytes = resealed(|head| head[at..at + field.len()].copy_from_slice(&field));
            assert_eq!(decode_header(&bytes, seal()).is_some(), is_sound, "{what}");
        }
    }

    #[test]
    fn a_header_that_announces_milliards_of_records_takes_no_memory_for_them() {
        let bytes = resealed(|head| {
            head[12..16].copy_from_slice(&u32::MAX.to_le_bytes());
            head[24..32].copy_from_slice(&u64::MAX.to_le_bytes());
        });
        assert!(matches!(decode(&bytes, seal(), 4), Err(BatchError::Records(_))));
    }

    #[test]
    fn records_are_a_batch_if_each_is_of_its_use_of_the_file_and_their_numbers_rise_within_it() {
        for (lsns, generation, is_batch) in [
            ([10, 11], 4, true),
            ([10, 19], 4, true),
            ([12, 15], 4, true),
            ([9, 11], 4, false),
            ([10, 20], 4, false),
            ([11, 11], 4, false),
            ([11, 10], 4, false),
            ([10, 11], 3, false),
        ] {
            let mut bytes = encoded(&records(&[1, 1]));
            bytes.truncate(HEADER_BYTES);
            bytes[24] = 19;
            for (lsn, generation) in lsns.into_iter().zip([4, generation]) {
                let (kind, payload) = (RecordType::Message, b"one".as_slice());
                record::push(
                    &mut bytes,
                    seal(),
                    &RecordView { lsn: Lsn(lsn), kind, flags: 0, generation, payload },
                );
            }
            bytes.resize(BLOCK_BYTES, 0);
            let sum = seal().sum(&[&bytes[..4], &bytes[8..HEADER_BYTES]]);
            bytes[4..8].copy_from_slice(&sum.to_le_bytes());
            assert_eq!(decode(&bytes, seal(), 4).is_ok(), is_batch, "{lsns:?} of {generation}");
        }
    }

    #[test]
    fn what_is_left_of_a_block_is_one_pad_or_less_than_one() {
        for len in 3900..4100 {
            let bytes = encoded(&records(&[len]));
            let mut rest = &bytes[HEADER_BYTES + record::encoded_bytes(len)..];
            if rest.len() >= RECORD_HEADER_BYTES {
                let (pad, consumed) = record::decode(rest, seal()).expect("it is a record");
                assert_eq!((pad.kind, pad.lsn, pad.generation), (RecordType::Pad, Lsn(10), 4), "{len}");
                rest = &rest[consumed..];
            }
            assert!(
                rest.is_empty() || rest.len() < RECORD_HEADER_BYTES && rest.iter().all(|byte| *byte == 0)
            );
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(bytes in proptest::collection::vec(any::<u8>(), 0..9000)) {
            prop_assert_eq!(read(&bytes), None);
        }

        #[test]
        fn decode_after_encode_is_identity(lens in proptest::collection::vec(0usize..3000, 1..20)) {
            let sample = records(&lens);
            prop_assert_eq!(read(&encoded(&sample)), Some(sample));
        }
    }
}
