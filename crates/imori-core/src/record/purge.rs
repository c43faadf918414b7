//! Messages of a queue that were purged, by the numbers of their records.
//!
//! `version u8, queue u64`, then ranges of numbers. A range may contain numbers of other queues' records, and contains
//! none of a message that the queue still has or gets later.

use super::fields::{Fields, RecordError};
use super::ranges::{push_ranges, ranges};
use super::{NewRecord, RecordKind};
use crate::confirm::Lsn;
use crate::delivery::PurgedRecords;
use crate::id::DurableQueueId;
use crate::limits::RECORD_ENTRIES_MAX;

const VERSION: u8 = 2;

/// Creates the records of a purge, as many as needed. The ranges of a queue rise and do not touch.
#[must_use]
pub fn purge_records(purged: &[PurgedRecords]) -> Vec<NewRecord> {
    let of_queues = purged.chunk_by(|one, other| one.queue == other.queue);
    let pieces = of_queues.flat_map(|of_queue| of_queue.chunks(RECORD_ENTRIES_MAX));
    pieces.map(|piece| NewRecord::new(RecordKind::Purge, encode_purge(piece))).collect()
}

/// Encodes ranges of one queue.
fn encode_purge(purged: &[PurgedRecords]) -> Vec<u8> {
    let mut out = vec![VERSION];
    out.extend_from_slice(&purged.first().map_or(0, |purged| purged.queue.0).to_le_bytes());
    push_ranges(&mut out, purged.len(), purged.iter().map(|purged| (purged.first.0, purged.last.0)));
    out
}

/// Decodes the purged messages.
///
/// # Errors
/// [`RecordError`].
pub fn decode_purge(payload: &[u8]) -> Result<Vec<PurgedRecords>, RecordError> {
    let mut fields = Fields::of(payload, VERSION)?;
    let queue = DurableQueueId(fields.u64()?);
    let purged = |(first, last)| PurgedRecords { queue, first: Lsn(first), last: Lsn(last) };
    Ok(ranges(&mut fields)?.into_iter().map(purged).collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::limits::RECORD_SLACK_BYTES;

    fn purged(queue: u64, first: u64, last: u64) -> PurgedRecords {
        PurgedRecords { queue: DurableQueueId(queue), first: Lsn(first), last: Lsn(last) }
    }

    #[test]
    fn no_prefix_is_what_was_written_and_another_version_is_refused() {
        let all = [purged(7, 3, 99), purged(7, 101, u64::MAX)];
        let [record] = &*purge_records(&all) else { panic!("it is one record") };
        assert_eq!(decode_purge(&record.payload), Ok(all.to_vec()));
        for len in 0..record.payload.len() {
            assert!(decode_purge(&record.payload[..len]).is_err(), "{len} bytes");
        }
        assert_eq!(decode_purge(&[1]), Err(RecordError::Version(1)));
    }

    #[test]
    fn many_ranges_are_in_several_records_that_each_fit_into_a_file() {
        let all: Vec<PurgedRecords> = (0..RECORD_ENTRIES_MAX as u64 + 5)
            .map(|index| purged(1 + index / 9_000, (index << 32) + 2, (index << 32) + (1 << 31)))
            .collect();
        let records = purge_records(&all);
        assert_eq!(records.len(), 2);
        assert!(records.iter().all(|record| record.payload.len() + RECORD_SLACK_BYTES < 1 << 19));
        let read = records.iter().flat_map(|record| decode_purge(&record.payload).expect("it was written"));
        assert_eq!(read.collect::<Vec<_>>(), all);
    }

    proptest! {
        #[test]
        fn decode_after_encode_is_identity(
            steps in proptest::collection::vec((2u64..1 << 40, 0u64..1 << 20), 1..40), queue: u64,
        ) {
            let mut end = 0;
            let ranges = steps.into_iter().map(|(gap, len)| {
                let first = end + gap;
                end = first + len;
                purged(queue, first, end)
            });
            let all: Vec<PurgedRecords> = ranges.collect();
            prop_assert_eq!(decode_purge(&encode_purge(&all)), Ok(all));
        }

        #[test]
        fn any_bytes_are_read(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
            let _ = decode_purge(&bytes);
        }
    }
}
