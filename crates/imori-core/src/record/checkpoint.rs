//! A checkpoint of pages: the segments, their free pages, and the settled records of pages that are settled
//! in part. It also says which messages may have been delivered before it.
//!
//! `version u8`, then numbers in the encoding of `ranges.rs`: `next_segment, doubtful_below,
//! doubtful_records_below`, the segments as `count` and that many `segment, page_count` and `gone` as ranges,
//! the pages as `count` and that many `segment, index` and settled records as ranges.
//!
//! All of this has to fit into one journal file: a segment takes about ten bytes, an isolated settled record
//! two.

use super::fields::{Fields, RecordError};
use super::ranges::{number, number_u32, push_number, push_ranges, push_set, ranges, set};
use crate::confirm::Lsn;
use crate::entries::{PagePlace, Ranges};

const VERSION: u8 = 2;

/// The pages that a checkpoint knows, and which deliveries are in doubt.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    /// Segments from this number on are newer than the checkpoint.
    pub next_segment: u32,
    /// Messages in segments below this one may have been delivered before they were written there.
    pub doubtful_below: u32,
    /// Messages with lower record numbers may have been delivered too: an unclean end followed them.
    pub doubtful_records_below: Lsn,
    /// The segments, by rising number.
    pub segments: Vec<SegmentState>,
    /// The settled records of pages that have unsettled ones.
    pub settled: Vec<(PagePlace, Ranges)>,
}

/// A segment at a checkpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentState {
    /// The number of the segment.
    pub segment: u32,
    /// Number of pages written to it.
    pub page_count: u32,
    /// Indices of the pages that are no longer needed.
    pub gone: Vec<u32>,
}

impl Checkpoint {
    /// Encodes the checkpoint.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![VERSION];
        push_number(&mut out, u64::from(self.next_segment));
        push_number(&mut out, u64::from(self.doubtful_below));
        push_number(&mut out, self.doubtful_records_below.0);
        push_number(&mut out, self.segments.len() as u64);
        for SegmentState { segment, page_count, gone } in &self.segments {
            push_number(&mut out, u64::from(*segment));
            push_number(&mut out, u64::from(*page_count));
            push_set(&mut out, gone);
        }
        push_number(&mut out, self.settled.len() as u64);
        for (place, ranges) in &self.settled {
            push_number(&mut out, u64::from(place.segment));
            push_number(&mut out, u64::from(place.index));
            push_ranges(&mut out, ranges.len(), ranges.iter());
        }
        out
    }

    /// Decodes a checkpoint; that of a store without pages may be empty.
    ///
    /// # Errors
    /// [`RecordError`].
    pub fn decode(payload: &[u8]) -> Result<Checkpoint, RecordError> {
        if payload.is_empty() {
            return Ok(Checkpoint::default());
        }
        let mut fields = Fields::of(payload, VERSION)?;
        let (next_segment, doubtful_below) = (number_u32(&mut fields)?, number_u32(&mut fields)?);
        let doubtful_records_below = Lsn(number(&mut fields)?);
        let mut segments = Vec::new();
        for _ in 0..number(&mut fields)? {
            let (segment, page_count) = (number_u32(&mut fields)?, number_u32(&mut fields)?);
            // A segment's table counts its pages in 16 bits.
            let end = u16::try_from(page_count).map_err(|_| RecordError::Unknown("number of pages"))?;
            segments.push(SegmentState { segment, page_count, gone: set(&mut fields, end)? });
        }
        let mut settled = Vec::new();
        for _ in 0..number(&mut fields)? {
            let place = PagePlace { segment: number_u32(&mut fields)?, index: number_u32(&mut fields)? };
            settled.push((place, ranges(&mut fields)?.into_iter().collect()));
        }
        Ok(Checkpoint { next_segment, doubtful_below, doubtful_records_below, segments, settled })
    }
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
        assert_eq!(Checkpoint::decode(&[1]), Err(RecordError::Version(1)));
    }
}
