//! Pages of a queue that were purged.
//!
//! `version u8, queue u64`, then `segment u32, index u32, last u64` for each page. The last record number
//! tells a page from an earlier one at the same location.

use super::fields::{Fields, RecordError};
use super::{NewRecord, RecordKind};
use crate::confirm::Lsn;
use crate::entries::{PagePlace, PurgedPage};
use crate::id::DurableQueueId;
use crate::limits::RECORD_ENTRIES_MAX;

const VERSION: u8 = 1;

/// Creates the records of a purge, as many as needed.
#[must_use]
pub fn purge_records(pages: &[PurgedPage]) -> Vec<NewRecord> {
    let of_queues = pages.chunk_by(|one, other| one.queue == other.queue);
    let pieces = of_queues.flat_map(|of_queue| of_queue.chunks(RECORD_ENTRIES_MAX));
    pieces.map(|piece| NewRecord::new(RecordKind::Purge, encode_purge(piece))).collect()
}

/// Encodes the purged pages of one queue.
fn encode_purge(pages: &[PurgedPage]) -> Vec<u8> {
    let mut out = vec![VERSION];
    out.extend_from_slice(&pages.first().map_or(0, |page| page.queue.0).to_le_bytes());
    for PurgedPage { place, last, .. } in pages {
        out.extend_from_slice(&place.segment.to_le_bytes());
        out.extend_from_slice(&place.index.to_le_bytes());
        out.extend_from_slice(&last.0.to_le_bytes());
    }
    out
}

/// Decodes the purged pages.
///
/// # Errors
/// [`RecordError`].
pub fn decode_purge(payload: &[u8]) -> Result<Vec<PurgedPage>, RecordError> {
    let mut fields = Fields::of(payload, VERSION)?;
    let queue = DurableQueueId(fields.u64()?);
    let mut pages = Vec::new();
    while !fields.is_empty() {
        let place = PagePlace { segment: fields.u32()?, index: fields.u32()? };
        pages.push(PurgedPage { queue, place, last: Lsn(fields.u64()?) });
    }
    Ok(pages)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::limits::RECORD_SLACK_BYTES;

    fn page(queue: u64, segment: u32, index: u32, last: u64) -> PurgedPage {
        PurgedPage { queue: DurableQueueId(queue), place: PagePlace { segment, index }, last: Lsn(last) }
    }

    #[test]
    fn no_prefix_is_what_was_written_and_another_version_is_refused() {
        let pages = [page(7, 1, 2, 99), page(7, 3, 0, u64::MAX)];
        let [record] = &*purge_records(&pages) else { panic!("it is one record") };
        assert_eq!(decode_purge(&record.payload), Ok(pages.to_vec()));
        for len in 0..record.payload.len() {
            let is_whole = len == 9 || len == 9 + 16;
            assert_eq!(decode_purge(&record.payload[..len]).is_ok(), is_whole, "{len} bytes");
        }
        assert_eq!(decode_purge(&[2]), Err(RecordError::Version(2)));
    }

    #[test]
    fn many_pages_are_in_several_records_that_each_fit_into_a_file() {
        let pages: Vec<PurgedPage> = (0..RECORD_ENTRIES_MAX as u32 + 5)
            .map(|index| page(1 + u64::from(index / 9_000), 1, index, 5))
            .collect();
        let records = purge_records(&pages);
        assert_eq!(records.len(), 2);
        assert!(records.iter().all(|record| record.payload.len() + RECORD_SLACK_BYTES < 1 << 19));
        let read = records.iter().flat_map(|record| decode_purge(&record.payload).expect("it was written"));
        assert_eq!(read.collect::<Vec<_>>(), pages);
    }

    proptest! {
        #[test]
        fn decode_after_encode_is_identity(
            rows in proptest::collection::vec((any::<u32>(), any::<u32>(), any::<u64>()), 1..40), queue: u64,
        ) {
            let pages: Vec<PurgedPage> =
                rows.into_iter().map(|(segment, index, last)| page(queue, segment, index, last)).collect();
            prop_assert_eq!(decode_purge(&encode_purge(&pages)), Ok(pages));
        }

        #[test]
        fn any_bytes_are_read(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
            let _ = decode_purge(&bytes);
        }
    }
}
