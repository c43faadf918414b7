//! The first 16 bytes of a one-way body: run, publisher, number, due time and a checksum.
//!
//! Consumers check deliveries against the stamp and compute the latency from it.

use std::time::{SystemTime, UNIX_EPOCH};

/// Bytes of a stamp, and therefore of the smallest body.
pub(crate) const STAMP_BYTES: usize = 16;

/// The facts carried in the first bytes of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    /// The run, which tells our messages from those left over by another run.
    pub(crate) run: u16,
    /// The publisher.
    pub(crate) publisher: u16,
    /// Number of the message within its publisher, from 0.
    pub(crate) number: u32,
    /// When it was due (in a closed loop, sent), in microseconds of the run's clock; wraps after 71 minutes.
    pub(crate) sent_micros: u32,
}

/// The reason for which a body is not one of this run's.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NoStamp {
    /// Too short, or with a wrong checksum.
    Altered,
    /// From another run.
    Foreign,
}

impl Stamp {
    /// Encodes the stamp.
    pub(crate) fn bytes(&self) -> [u8; STAMP_BYTES] {
        let word = u64::from(self.run) << 48 | u64::from(self.publisher) << 32 | u64::from(self.number);
        let check = checksum(word, self.sent_micros);
        let mut bytes = [0; STAMP_BYTES];
        let (head, tail) = bytes.split_at_mut(8);
        head.copy_from_slice(&word.to_be_bytes());
        let tail_word = u64::from(self.sent_micros) << 32 | u64::from(check);
        tail.copy_from_slice(&tail_word.to_be_bytes());
        bytes
    }

    /// Reads the stamp at the start of a body; `run` is the run that it must come from.
    pub(crate) fn read(body: &[u8], run: u16) -> Result<Stamp, NoStamp> {
        let (head, rest) = body.split_first_chunk::<8>().ok_or(NoStamp::Altered)?;
        let tail = rest.first_chunk::<8>().ok_or(NoStamp::Altered)?;
        let (word, tail) = (u64::from_be_bytes(*head), u64::from_be_bytes(*tail));
        let sent_micros = (tail >> 32) as u32;
        if checksum(word, sent_micros) != tail as u32 {
            return Err(NoStamp::Altered);
        }
        let stamp = Stamp {
            run: (word >> 48) as u16,
            publisher: (word >> 32) as u16,
            number: word as u32,
            sent_micros,
        };
        if stamp.run != run {
            return Err(NoStamp::Foreign);
        }
        Ok(stamp)
    }
}

/// A number that is unlikely to be shared with another recent run on this machine.
pub(crate) fn run_id() -> u32 {
    let nanos = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64);
    (mix(nanos ^ u64::from(std::process::id()) << 40) >> 32) as u32
}

/// Incompressible bytes, the same each time for the same run.
pub(crate) fn filler(length: usize, run: u16) -> Vec<u8> {
    let mut state = mix(u64::from(run) + 1) | 1;
    std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    })
    .take(length)
    .collect()
}

fn checksum(word: u64, sent_micros: u32) -> u32 {
    let mixed = mix(word ^ mix(u64::from(sent_micros) + 0x9e37_79b9));
    (mixed >> 32) as u32
}

/// Spreads every bit of the input over the output.
fn mix(word: u64) -> u64 {
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAMP: Stamp = Stamp { run: 7, publisher: 65_535, number: 4_000_000_000, sent_micros: 123_456 };

    #[test]
    fn a_stamp_is_read_back() {
        let mut body = STAMP.bytes().to_vec();
        assert_eq!(Stamp::read(&body, 7), Ok(STAMP));
        assert_eq!(Stamp::read(&body, 8), Err(NoStamp::Foreign));
        body.extend_from_slice(b"more");
        assert_eq!(Stamp::read(&body, 7), Ok(STAMP));
        assert_eq!(Stamp::read(body.get(..15).unwrap(), 7), Err(NoStamp::Altered));
    }

    #[test]
    fn every_altered_bit_is_noticed() {
        for bit in 0..STAMP_BYTES * 8 {
            let mut bytes = STAMP.bytes();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Stamp::read(&bytes, 7), Err(NoStamp::Altered), "bit {bit}");
        }
    }

    #[test]
    fn the_filler_repeats_with_its_run() {
        assert_eq!(filler(100, 3), filler(100, 3));
        assert_ne!(filler(100, 3), filler(100, 4));
    }
}
