//! A checkpoint of pages: the place in the manifest that lists the segments, and the settled records of pages that are
//! settled in part. It also tells which messages may have been delivered before it.
//!
//! `version u8`, then numbers of as many bytes as they need (`ranges.rs`): `next_segment`, of the manifest `generation,
//! end, sum`, `doubtful_below, doubtful_records_below`, the pages as `count` and that many times `segment, index` and
//! the settled records as ranges.
//!
//! All of this has to fit into one journal file. A settled record between two that are not takes two bytes.

use super::fields::{Fields, RecordError};
use super::ranges::{number, number_u32, push_number, push_ranges, ranges};
use crate::confirm::Lsn;
use crate::entries::{PagePlace, Ranges};

const VERSION: u8 = 3;

/// The pages that a checkpoint knows, and which deliveries are in doubt.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    /// Segments from this number on are newer than the checkpoint.
    pub next_segment: u32,
    /// Where the list of the older ones ends.
    pub manifest: ManifestPlace,
    /// Messages in segments below this one may have been delivered before they were written there.
    pub doubtful_below: u32,
    /// Messages with lower record numbers may have been delivered too: an unclean end followed them.
    pub doubtful_records_below: Lsn,
    /// Records that are settled of pages that are needed for others.
    pub settled: Vec<(PagePlace, Ranges)>,
}

/// A place in the store's manifest of segments, which is durable before the checkpoint that names it.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct ManifestPlace {
    /// The generation of the manifest; 0 where there is no segment and no manifest.
    pub generation: u32,
    /// Offset of its end.
    pub end: u64,
    /// The checksum of everything before the end.
    pub sum: u32,
}

impl Checkpoint {
    /// Encodes the checkpoint.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![VERSION];
        push_number(&mut out, u64::from(self.next_segment));
        let ManifestPlace { generation, end, sum } = self.manifest;
        [u64::from(generation), end, u64::from(sum)].into_iter().for_each(|part| push_number(&mut out, part));
        push_number(&mut out, u64::from(self.doubtful_below));
        push_number(&mut out, self.doubtful_records_below.0);
        push_number(&mut out, self.settled.len() as u64);
        for (place, ranges) in &self.settled {
            push_number(&mut out, u64::from(place.segment));
            push_number(&mut out, u64::from(place.index));
            push_ranges(&mut out, ranges.len(), ranges.iter());
        }
        out
    }

    /// Decodes a checkpoint; the payload may be empty if the store has no pages.
    ///
    /// # Errors
    /// [`RecordError`].
    pub fn decode(payload: &[u8]) -> Result<Checkpoint, RecordError> {
        if payload.is_empty() {
            return Ok(Checkpoint::default());
        }
        let mut fields = Fields::of(payload, VERSION)?;
        let (next_segment, generation) = (number_u32(&mut fields)?, number_u32(&mut fields)?);
        let manifest = ManifestPlace { generation, end: number(&mut fields)?, sum: number_u32(&mut fields)? };
        let doubtful_below = number_u32(&mut fields)?;
        let doubtful_records_below = Lsn(number(&mut fields)?);
        let mut settled = Vec::new();
        for _ in 0..number(&mut fields)? {
            let place = PagePlace { segment: number_u32(&mut fields)?, index: number_u32(&mut fields)? };
            settled.push((place, ranges(&mut fields)?.into_iter().collect()));
        }
        Ok(Checkpoint { next_segment, manifest, doubtful_below, doubtful_records_below, settled })
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
            manifest: ManifestPlace { generation: 7, end: 1024, sum: u32::MAX },
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
        assert_eq!(Checkpoint::decode(&[2]), Err(RecordError::Version(2)));
    }
}
