//! Records of messages that durable queues have settled, and of delivery counts.
//!
//! Settled: `version u8`, then for each queue `queue u64, count u32` and that many `lsn u64`. Counted:
//! `version u8`, then `queue u64, lsn u64, failures u32, flags u8` for each message. Version 1 had no flag
//! for rejected messages.

use super::fields::{Fields, RecordError};
use super::{NewRecord, RecordKind};
use crate::confirm::Lsn;
use crate::delivery::{DeliveryCount, RecordRef};
use crate::id::DurableQueueId;
use crate::limits::{RECORD_ENTRIES_MAX, RECORD_SLACK_BYTES};

const SETTLE_VERSION: u8 = 1;
const COUNT_VERSION: u8 = 2;

const REDELIVERED: u8 = 1;
const REJECTED: u8 = 1 << 1;

/// Encodes that queues have settled these messages.
#[must_use]
pub fn encode_settle(record_refs: &[RecordRef]) -> Vec<u8> {
    let mut out = vec![SETTLE_VERSION];
    for of_queue in record_refs.chunk_by(|a, b| a.queue == b.queue) {
        let Some(first) = of_queue.first() else { continue };
        out.extend_from_slice(&first.queue.0.to_le_bytes());
        let count = u32::try_from(of_queue.len()).expect("a turn settles fewer");
        out.extend_from_slice(&count.to_le_bytes());
        of_queue.iter().for_each(|record_ref| out.extend_from_slice(&record_ref.lsn.0.to_le_bytes()));
    }
    out
}

/// Creates the records of these settlements, as many as needed.
#[must_use]
pub fn settle_records(record_refs: &[RecordRef]) -> Vec<NewRecord> {
    let pieces = record_refs.chunks(RECORD_ENTRIES_MAX);
    pieces.map(|piece| NewRecord::new(RecordKind::Settle, encode_settle(piece))).collect()
}

/// The most bytes that [`settle_records`] takes in the journal for this many messages. Each takes a record
/// number and a queue number, which neighbours share.
#[must_use]
pub fn settles_bytes_max(count: usize) -> usize {
    20 * count + (1 + RECORD_SLACK_BYTES) * count.div_ceil(RECORD_ENTRIES_MAX)
}

/// The most bytes that [`count_records`] takes in the journal for `count` messages.
#[must_use]
pub fn counts_bytes_max(count: usize) -> usize {
    21 * count + (1 + RECORD_SLACK_BYTES) * count.div_ceil(RECORD_ENTRIES_MAX)
}

/// Creates the records of these delivery counts, as many as needed.
#[must_use]
pub fn count_records(counts: &[DeliveryCount]) -> Vec<NewRecord> {
    let pieces = counts.chunks(RECORD_ENTRIES_MAX);
    pieces.map(|piece| NewRecord::new(RecordKind::Count, encode_counts(piece))).collect()
}

/// Calls `visit` with each message that a queue has settled.
///
/// # Errors
/// [`RecordError`]; the messages before the fault were visited.
pub fn decode_settle(payload: &[u8], visit: &mut dyn FnMut(RecordRef)) -> Result<(), RecordError> {
    let mut fields = Fields::of(payload, SETTLE_VERSION)?;
    while !fields.is_empty() {
        let (queue, count) = (DurableQueueId(fields.u64()?), fields.u32()?);
        for _ in 0..count {
            visit(RecordRef { queue, lsn: Lsn(fields.u64()?) });
        }
    }
    Ok(())
}

/// Encodes delivery counts.
#[must_use]
pub fn encode_counts(counts: &[DeliveryCount]) -> Vec<u8> {
    let mut out = vec![COUNT_VERSION];
    for DeliveryCount { record_ref, failures, is_redelivered, is_rejected } in counts {
        out.extend_from_slice(&record_ref.queue.0.to_le_bytes());
        out.extend_from_slice(&record_ref.lsn.0.to_le_bytes());
        out.extend_from_slice(&failures.to_le_bytes());
        let flag = |is_set, flag| if is_set { flag } else { 0 };
        out.push(flag(*is_redelivered, REDELIVERED) | flag(*is_rejected, REJECTED));
    }
    out
}

/// Calls `visit` with each count.
///
/// # Errors
/// [`RecordError`]; the counts before the fault were visited.
pub fn decode_counts(payload: &[u8], visit: &mut dyn FnMut(DeliveryCount)) -> Result<(), RecordError> {
    let mut fields = Fields::of(payload, COUNT_VERSION)?;
    while !fields.is_empty() {
        let record_ref = RecordRef { queue: DurableQueueId(fields.u64()?), lsn: Lsn(fields.u64()?) };
        let (failures, flags) = (fields.u32()?, fields.u8()?);
        let (is_redelivered, is_rejected) = (flags & REDELIVERED != 0, flags & REJECTED != 0);
        visit(DeliveryCount { record_ref, failures, is_redelivered, is_rejected });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn record_ref(queue: u64, lsn: u64) -> RecordRef {
        RecordRef { queue: DurableQueueId(queue), lsn: Lsn(lsn) }
    }

    fn settled(payload: &[u8]) -> Result<Vec<RecordRef>, RecordError> {
        let mut record_refs = Vec::new();
        decode_settle(payload, &mut |record_ref| record_refs.push(record_ref)).map(|()| record_refs)
    }

    #[test]
    fn messages_of_a_queue_share_its_number() {
        let bytes = encode_settle(&[record_ref(7, 10), record_ref(7, 12), record_ref(9, 11)]);
        assert_eq!(bytes.len(), 1 + 2 * 12 + 3 * 8);
        assert_eq!(settled(&bytes), Ok(vec![record_ref(7, 10), record_ref(7, 12), record_ref(9, 11)]));
        for len in 1..bytes.len() {
            let is_whole = len == 1 || len == 1 + 12 + 2 * 8;
            assert_eq!(settled(&bytes[..len]).is_ok(), is_whole, "{len} bytes");
        }
    }

    #[test]
    fn what_is_too_much_for_one_record_is_in_several() {
        let many: Vec<RecordRef> =
            (0..2 * RECORD_ENTRIES_MAX as u64 + 5).map(|lsn| record_ref(lsn, lsn)).collect();
        let records = settle_records(&many);
        let bytes: usize = records.iter().map(|record| record.payload.len() + RECORD_SLACK_BYTES).sum();
        assert_eq!(bytes, settles_bytes_max(many.len()), "each is of another queue");
        let counts: Vec<DeliveryCount> = many
            .iter()
            .map(|record_ref| DeliveryCount {
                record_ref: *record_ref,
                failures: 3,
                is_redelivered: true,
                is_rejected: false,
            })
            .collect();
        let counted = count_records(&counts);
        let bytes: usize = counted.iter().map(|record| record.payload.len() + RECORD_SLACK_BYTES).sum();
        assert_eq!(bytes, counts_bytes_max(counts.len()));
        assert!(
            records.iter().chain(&counted).all(|record| record.payload.len() < 1 << 19),
            "it fits a file"
        );
        let read = records.iter().flat_map(|record| settled(&record.payload).expect("it was written"));
        assert_eq!(read.collect::<Vec<_>>(), many);
        let mut known = Vec::new();
        counted.iter().for_each(|record| {
            decode_counts(&record.payload, &mut |count| known.push(count)).expect("it was written");
        });
        assert_eq!(known, counts);
        assert!(settle_records(&[]).is_empty());
    }

    #[test]
    fn another_version_is_refused() {
        assert_eq!(settled(&[2]), Err(RecordError::Version(2)));
        assert_eq!(settled(&[]), Err(RecordError::Truncated));
        assert_eq!(decode_counts(&[1], &mut |_| ()), Err(RecordError::Version(1)));
    }

    proptest! {
        #[test]
        fn decode_after_encode_is_identity(
            pairs in proptest::collection::vec((0u64..3, any::<u64>(), any::<u32>(), any::<(bool, bool)>()), 0..50),
        ) {
            let record_refs: Vec<RecordRef> = pairs.iter().map(|(queue, lsn, ..)| record_ref(*queue, *lsn)).collect();
            prop_assert_eq!(settled(&encode_settle(&record_refs)), Ok(record_refs));
            let counts: Vec<DeliveryCount> = pairs
                .iter()
                .map(|(queue, lsn, failures, (is_redelivered, is_rejected))| DeliveryCount {
                    record_ref: record_ref(*queue, *lsn),
                    failures: *failures,
                    is_redelivered: *is_redelivered,
                    is_rejected: *is_rejected,
                })
                .collect();
            let mut read = Vec::new();
            prop_assert_eq!(decode_counts(&encode_counts(&counts), &mut |count| read.push(count)), Ok(()));
            prop_assert_eq!(read, counts);
        }

        #[test]
        fn any_bytes_are_read(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            let _ = settled(&bytes);
            let _ = decode_counts(&bytes, &mut |_| ());
        }
    }
}
