//! What a checkpoint says of pages: which segments there are, which of their pages are gone, and of those that
//! are settled in part what is settled; and of which messages nobody knows whether they were given out.
//!
//! `version u8, next_segment u32, doubtful_below u32`, in version 2 `doubtful_records_below u64`, the segments as
//! `count u32` and so many times `segment u32, page_count u32, gone count u32` and `gone u32`, the pages as `count u32`
//! and so many times `segment u32, index u32, ranges count u32` and `first u64, last u64`.

use super::fields::{Fields, RecordError};
use crate::confirm::Lsn;
use crate::queue::{PagePlace, Ranges};

const VERSION: u8 = 2;
/// Nothing is said of records in the journal.
const OLD_VERSION: u8 = 1;

/// What a checkpoint says of pages.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    /// Segments of this number and above are newer than the checkpoint.
    pub next_segment: u32,
    /// Nobody knows whether what is in segments below this one was given out before it was written there.
    pub doubtful_below: u32,
    /// Nor whether what has a record below this one was: an end that was not clean came after it.
    pub doubtful_records_below: Lsn,
    /// By rising number.
    pub segments: Vec<SegmentState>,
    /// Records that are settled of pages that are needed for others.
    pub settled: Vec<(PagePlace, Ranges)>,
}

/// A segment at a checkpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentState {
    /// Its number.
    pub segment: u32,
    /// How many pages were written to it.
    pub page_count: u32,
    /// The indexes of those that nobody needs.
    pub gone: Vec<u32>,
}

impl Checkpoint {
    /// Writes it.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![VERSION];
        push(&mut out, self.next_segment);
        push(&mut out, self.doubtful_below);
        out.extend_from_slice(&self.doubtful_records_below.0.to_le_bytes());
        push_len(&mut out, self.segments.len());
        for SegmentState { segment, page_count, gone } in &self.segments {
            push(&mut out, *segment);
            push(&mut out, *page_count);
            push_len(&mut out, gone.len());
            gone.iter().for_each(|index| push(&mut out, *index));
        }
        push_len(&mut out, self.settled.len());
        for (place, ranges) in &self.settled {
            push(&mut out, place.segment);
            push(&mut out, place.index);
            push_len(&mut out, ranges.len());
            for (first, last) in ranges.iter() {
                out.extend_from_slice(&first.to_le_bytes());
                out.extend_from_slice(&last.to_le_bytes());
            }
        }
        out
    }

    /// Reads it; that of a store without pages may be empty.
    ///
    /// # Errors
    /// [`RecordError`].
    pub fn decode(payload: &[u8]) -> Result<Checkpoint, RecordError> {
        if payload.is_empty() {
            return Ok(Checkpoint::default());
        }
        let is_old = payload.first() == Some(&OLD_VERSION);
        let mut fields = Fields::of(payload, if is_old { OLD_VERSION } else { VERSION })?;
        let (next_segment, doubtful_below) = (fields.u32()?, fields.u32()?);
        let doubtful_records_below = if is_old { Lsn::NONE } else { Lsn(fields.u64()?) };
        let mut segments = Vec::new();
        for _ in 0..fields.u32()? {
            let (segment, page_count) = (fields.u32()?, fields.u32()?);
            let mut gone = Vec::new();
            for _ in 0..fields.u32()? {
                gone.push(fields.u32()?);
            }
            segments.push(SegmentState { segment, page_count, gone });
        }
        let mut settled = Vec::new();
        for _ in 0..fields.u32()? {
            let place = PagePlace { segment: fields.u32()?, index: fields.u32()? };
            let mut ranges = Vec::new();
            for _ in 0..fields.u32()? {
                ranges.push((fields.u64()?, fields.u64()?));
            }
            settled.push((place, ranges.into_iter().collect()));
        }
        Ok(Checkpoint { next_segment, doubtful_below, doubtful_records_below, segments, settled })
    }
}

fn push(out: &mut Vec<u8>, number: u32) {
    out.extend_from_slice(&number.to_le_bytes());
}

fn push_len(out: &mut Vec<u8>, len: usize) {
    push(out, u32::try_from(len).expect("a checkpoint fits into a journal file"));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Checkpoint {
        Checkpoint {
            next_segment: 9,
            doubtful_below: 4,
            doubtful_records_below: Lsn(0x102),
            segments: vec![
                SegmentState { segment: 3, page_count: 5, gone: vec![0, 4] },
                SegmentState { segment: 8, page_count: 1, gone: Vec::new() },
            ],
            settled: vec![(
                PagePlace { segment: 3, index: 1 },
                [(5, 5), (7, u64::MAX)].into_iter().collect(),
            )],
        }
    }

    #[test]
    fn decode_after_encode_is_identity_and_no_prefix_is_one() {
        let bytes = sample().encode();
        assert_eq!(Checkpoint::decode(&bytes), Ok(sample()));
        for len in 1..bytes.len() {
            assert_eq!(Checkpoint::decode(&bytes[..len]), Err(RecordError::Truncated), "{len} bytes");
        }
        assert_eq!(Checkpoint::decode(&[]), Ok(Checkpoint::default()));
        assert_eq!(Checkpoint::decode(&[3]), Err(RecordError::Version(3)));
    }

    #[test]
    fn one_of_the_release_before_is_read() {
        let mut bytes = sample().encode();
        bytes.drain(1 + 4 + 4..1 + 4 + 4 + 8);
        bytes[0] = OLD_VERSION;
        assert_eq!(
            Checkpoint::decode(&bytes),
            Ok(Checkpoint { doubtful_records_below: Lsn::NONE, ..sample() })
        );
    }
}
