//! A checkpoint of pages: the segments, their pages that are gone, and the settled records of pages that are settled
//! in part. It also tells which messages may have been given out before it.
//!
//! `version u8`, then numbers of as many bytes as they need (`ranges.rs`): `next_segment, doubtful_below,
//! doubtful_records_below`, the segments as `count` and so many times `segment, page_count` and `gone` as ranges, the
//! pages as `count` and so many times `segment, index` and the settled records as ranges.
//!
//! All of this has to fit into one journal file. A segment takes about ten bytes. A settled record between two that
//! are not takes two.

use super::fields::{Fields, RecordError};
use super::ranges::{number, number_u32, push_number, push_ranges, push_set, ranges, set};
use crate::confirm::Lsn;
use crate::entries::{PagePlace, Ranges};

const VERSION: u8 = 2;

/// The pages that a checkpoint knows, and how sure it is of their deliveries.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    /// Segments of this number and above are newer than the checkpoint.
    pub next_segment: u32,
    /// Nobody knows whether what is in segments below this one was given out before it was written there.
    pub doubtful_below: u32,
    /// Messages with records below this one may have been given out too: an end that was not clean came after it.
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

    /// Reads it; that of a store without pages may be empty.
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
            // The table of a segment counts its pages in as many bits.
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
