//! Checksums that are valid for one store only.

use crate::planted::Planted;

/// The id of a store: 128 random bits that are never disclosed to clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoreId(pub [u8; 16]);

/// The initial value of all checksums of a store's batches and records.
///
/// It is derived from the store's id, so that a client cannot craft a message body that verifies as
/// a record when recovery searches for undamaged ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seal {
    start: u32,
    pub(crate) planted: Planted,
}

impl Seal {
    /// The seal of a store.
    #[must_use]
    pub fn new(store: StoreId) -> Seal {
        Seal { start: crc32c::crc32c(&store.0), planted: Planted::default() }
    }

    /// The checksum of consecutive pieces.
    #[must_use]
    pub fn sum(self, pieces: &[&[u8]]) -> u32 {
        pieces.iter().fold(self.start, |sum, piece| crc32c::crc32c_append(sum, piece))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_polynomial_is_castagnolis() {
        // RFC 3720, B.4: 32 bytes of zeros and of ones.
        assert_eq!(crc32c::crc32c(&[0; 32]), 0x8a91_36aa);
        assert_eq!(crc32c::crc32c(&[0xff; 32]), 0x62a8_ab43);
    }

    #[test]
    fn another_store_has_other_sums() {
        let sums = [1, 2].map(|byte| Seal::new(StoreId([byte; 16])).sum(&[b"record"]));
        assert_ne!(sums[0], sums[1]);
    }
}
