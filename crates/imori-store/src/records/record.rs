//! A record: a header, the payload, and zeros up to a multiple of 8, all little endian.
//!
//! The header is `len u32, crc32c u32, type u8, flags u8, generation u32, lsn u64`. The checksum
//! covers the length and everything behind the checksum, so that bytes of an earlier use of a file,
//! with another generation or number, do not verify.

use bytes::Bytes;

use crate::lsn::Lsn;
use crate::planted::Fault;
use crate::seal::Seal;

/// The size in bytes of the record header.
pub const HEADER_BYTES: usize = 22;

/// The alignment of records in bytes.
pub const ALIGN_BYTES: usize = 8;

/// Set on every record of an atomic group, including its begin and end.
pub const FLAG_IN_GROUP: u8 = 1;

/// The kind of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordType {
    /// The body of a message, once for all its queues.
    Message = 1,
    /// The queues that received a message.
    Enqueue = 2,
    /// The settlement of messages.
    Settle = 3,
    /// A delivery count of a message returned to its queue.
    Count = 4,
    /// The begin of an atomic group.
    GroupBegin = 5,
    /// The end of an atomic group.
    GroupEnd = 6,
    /// A checkpoint. The payload starts with the floor, a `u64`, below which no record is needed.
    Checkpoint = 7,
    /// The removal of the beginning of a stream.
    Stream = 8,
    /// Padding: fills a batch, or accounts for numbers that are known to be lost.
    Pad = 9,
    /// A declaration, a binding or a deletion.
    Definition = 10,
    /// Message ids accepted by a queue, recorded again so that older records can be freed.
    Seen = 11,
    /// The purge of pages.
    Purge = 12,
    /// The annotations that consumers have added to a message.
    Annotations = 13,
}

impl RecordType {
    fn from_byte(byte: u8) -> Option<RecordType> {
        const ALL: [RecordType; 13] = [
            RecordType::Message,
            RecordType::Enqueue,
            RecordType::Settle,
            RecordType::Count,
            RecordType::GroupBegin,
            RecordType::GroupEnd,
            RecordType::Checkpoint,
            RecordType::Stream,
            RecordType::Pad,
            RecordType::Definition,
            RecordType::Seen,
            RecordType::Purge,
            RecordType::Annotations,
        ];
        ALL.into_iter().find(|kind| *kind as u8 == byte)
    }
}

/// A record that owns its payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// The number of the record.
    pub lsn: Lsn,
    /// The kind of the record.
    pub kind: RecordType,
    /// [`FLAG_IN_GROUP`] or 0.
    pub flags: u8,
    /// The payload, which the journal does not interpret.
    pub payload: Bytes,
}

impl Record {
    /// Whether the record belongs to an atomic group.
    #[must_use]
    pub fn is_in_group(&self) -> bool {
        self.flags & FLAG_IN_GROUP != 0
    }

    /// The floor, below which no record is needed, if this is a checkpoint.
    #[must_use]
    pub fn floor(&self) -> Option<Lsn> {
        floor(self.lsn, self.kind, &self.payload)
    }
}

/// The floor of a record with this number, if it is a checkpoint.
pub(crate) fn floor(lsn: Lsn, kind: RecordType, payload: &[u8]) -> Option<Lsn> {
    let floor = payload.first_chunk().filter(|_| kind == RecordType::Checkpoint)?;
    // A checkpoint must not free itself, because its content would be lost.
    Some(Lsn(u64::from_le_bytes(*floor)).min(lsn))
}

/// A record in the buffer it was read into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordView<'a> {
    /// The number of the record.
    pub lsn: Lsn,
    /// The kind of the record.
    pub kind: RecordType,
    /// [`FLAG_IN_GROUP`] or 0.
    pub flags: u8,
    /// The generation of the file that the record was written for.
    pub generation: u32,
    /// The payload, which the journal does not interpret.
    pub payload: &'a [u8],
}

impl RecordView<'_> {
    /// Copies the record into memory of its own.
    #[must_use]
    pub fn to_record(&self) -> Record {
        let payload = Bytes::copy_from_slice(self.payload);
        Record { lsn: self.lsn, kind: self.kind, flags: self.flags, payload }
    }
}

/// The reason why bytes are not a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordError {
    /// The bytes end before the record does.
    Truncated,
    /// The checksum does not match.
    Checksum,
    /// The checksum matches, but the type, flags or number is invalid.
    Unknown,
}

/// The encoded length in bytes of a record with a payload of `len` bytes.
#[must_use]
pub fn encoded_bytes(len: usize) -> usize {
    (HEADER_BYTES + len).next_multiple_of(ALIGN_BYTES)
}

/// Appends a record to `out`, which must be aligned; the payload must be below 4 GiB.
pub fn push(out: &mut Vec<u8>, seal: Seal, record: &RecordView<'_>) {
    let start = out.len();
    let len =
        u32::try_from(record.payload.len()).expect("a journal file is smaller than 4 GiB").to_le_bytes();
    let mut covered = [0; HEADER_BYTES - 8];
    covered[0] = record.kind as u8;
    covered[1] = record.flags;
    covered[2..6].copy_from_slice(&record.generation.to_le_bytes());
    covered[6..].copy_from_slice(&record.lsn.0.to_le_bytes());
    let sum = sum(seal, &len, &covered, record.payload);
    let mut head = [0; HEADER_BYTES];
    head[..4].copy_from_slice(&len);
    head[4..8].copy_from_slice(&sum.to_le_bytes());
    head[8..].copy_from_slice(&covered);
    out.extend_from_slice(&head);
    out.extend_from_slice(record.payload);
    out.resize(start + encoded_bytes(record.payload.len()), 0);
}

/// Decodes the record at the start of `bytes`; also returns its encoded length.
pub fn decode(bytes: &[u8], seal: Seal) -> Result<(RecordView<'_>, usize), RecordError> {
    let (len, behind) = bytes.split_first_chunk::<4>().ok_or(RecordError::Truncated)?;
    let (expected, behind) = behind.split_first_chunk::<4>().ok_or(RecordError::Truncated)?;
    let (covered, rest) = behind.split_first_chunk().ok_or(RecordError::Truncated)?;
    let payload_bytes = usize::try_from(u32::from_le_bytes(*len)).map_err(|_| RecordError::Truncated)?;
    let payload = rest.get(..payload_bytes).ok_or(RecordError::Truncated)?;
    if u32::from_le_bytes(*expected) != sum(seal, len, covered, payload) {
        return Err(RecordError::Checksum);
    }
    let ([kind, flags], behind) = covered.split_first_chunk::<2>().ok_or(RecordError::Truncated)?;
    let (generation, lsn) = behind.split_first_chunk::<4>().ok_or(RecordError::Truncated)?;
    let lsn = Lsn(u64::from_le_bytes(*lsn.first_chunk().ok_or(RecordError::Truncated)?));
    let kind = RecordType::from_byte(*kind).ok_or(RecordError::Unknown)?;
    if *flags & !FLAG_IN_GROUP != 0 || lsn < Lsn::FIRST {
        return Err(RecordError::Unknown);
    }
    let generation = u32::from_le_bytes(*generation);
    let consumed = encoded_bytes(payload_bytes).min(bytes.len());
    Ok((RecordView { lsn, kind, flags: *flags, generation, payload }, consumed))
}

fn sum(seal: Seal, len: &[u8; 4], covered: &[u8; HEADER_BYTES - 8], payload: &[u8]) -> u32 {
    if seal.planted.has(Fault::ChecksumWithoutPayload) {
        return seal.sum(&[len, covered]);
    }
    if seal.planted.has(Fault::ChecksumWithoutLength) {
        return seal.sum(&[covered, payload]);
    }
    // One piece fewer per record, which is measurable when writing and reading.
    let mut head = [0; HEADER_BYTES - 4];
    let (start, end) = head.split_at_mut(4);
    start.copy_from_slice(len);
    end.copy_from_slice(covered);
    seal.sum(&[&head, payload])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::seal::StoreId;

    const SAMPLE: RecordView<'static> =
        RecordView { lsn: Lsn(77), kind: RecordType::Enqueue, flags: 1, generation: 5, payload: b"three" };

    fn seal() -> Seal {
        Seal::new(StoreId([1; 16]))
    }

    fn encoded(record: &RecordView<'_>) -> Vec<u8> {
        let mut out = Vec::new();
        push(&mut out, seal(), record);
        out
    }

    #[test]
    fn the_format_is_this() {
        let bytes = encoded(&SAMPLE);
        assert_eq!(bytes[..4], [5, 0, 0, 0]);
        assert_eq!(bytes[8..22], [2, 1, 5, 0, 0, 0, 77, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(bytes[22..], *b"three\0\0\0\0\0");
    }

    #[test]
    fn no_prefix_is_a_record() {
        let bytes = encoded(&SAMPLE);
        for len in 0..HEADER_BYTES + SAMPLE.payload.len() {
            assert_eq!(decode(&bytes[..len], seal()), Err(RecordError::Truncated), "{len} bytes");
        }
    }

    #[test]
    fn no_flipped_bit_changes_a_record() {
        let bytes = encoded(&SAMPLE);
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            match decode(&flipped, seal()) {
                Ok((record, _)) => assert!(record == SAMPLE && bit / 8 >= 27, "bit {bit}: {record:?}"),
                Err(error) => assert_ne!(error, RecordError::Unknown, "bit {bit}"),
            }
        }
    }

    /// When the checksum state is zero, further zeros do not change it, so only the length can
    /// tell.
    #[test]
    fn the_checksum_covers_the_length() {
        for (fault, is_caught) in [(None, true), (Some(Fault::ChecksumWithoutLength), false)] {
            let mut seal = seal();
            seal.planted.0 = fault;
            let head = |len: u32| {
                let mut bytes = encoded(&RecordView { payload: &[], ..SAMPLE });
                bytes.truncate(HEADER_BYTES);
                bytes[..4].copy_from_slice(&len.to_le_bytes());
                bytes
            };
            let mut bytes = head(4);
            let part = |bytes: &[u8], payload: &[u8]| {
                let (len, covered) = (bytes.first_chunk(), bytes[8..].first_chunk());
                sum(seal, len.expect("it is there"), covered.expect("it is there"), payload)
            };
            let state = !part(&bytes, &[]);
            bytes.extend(state.to_le_bytes());
            let sum = part(&bytes, &state.to_le_bytes());
            bytes[4..8].copy_from_slice(&sum.to_le_bytes());
            bytes.resize(64, 0);
            assert!(decode(&bytes, seal).is_ok());
            bytes[..4].copy_from_slice(&head(5)[..4]);
            assert_eq!(decode(&bytes, seal).is_err(), is_caught, "{fault:?}");
        }
    }

    #[test]
    fn a_record_whose_checksum_is_right_still_has_to_be_one_that_there_is() {
        let unknown = Err(RecordError::Unknown);
        for (what, at, byte, expected) in [
            ("it is as it was", 8, SAMPLE.kind as u8, Ok(())),
            ("an unknown type", 8, 99, unknown),
            ("an unknown flag", 9, 2, unknown),
            ("an unknown flag beside the known one", 9, 3, unknown),
            ("the number before the first", 14, 0, unknown),
        ] {
            let mut bytes = encoded(&SAMPLE);
            bytes[at] = byte;
            let covered = bytes[8..].first_chunk().expect("it is there");
            let sum = sum(seal(), &[5, 0, 0, 0], covered, SAMPLE.payload);
            bytes[4..8].copy_from_slice(&sum.to_le_bytes());
            assert_eq!(decode(&bytes, seal()).map(drop), expected, "{what}");
        }
    }

    #[test]
    fn another_store_reads_nothing() {
        let other = Seal::new(StoreId([2; 16]));
        assert_eq!(decode(&encoded(&SAMPLE), other), Err(RecordError::Checksum));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            prop_assert!(decode(&bytes, seal()).is_err());
        }

        #[test]
        fn decode_after_encode_is_identity(
            lsn in 1u64.., byte in 1u8..=13, flags in 0u8..=1, generation: u32,
            payload in proptest::collection::vec(any::<u8>(), 0..100),
        ) {
            let kind = RecordType::from_byte(byte).expect("there are thirteen");
            let record = RecordView { lsn: Lsn(lsn), kind, flags, generation, payload: &payload };
            let bytes = encoded(&record);
            prop_assert_eq!(decode(&bytes, seal()), Ok((record, bytes.len())));
        }
    }
}
