//! Finds the boundaries of a client's TLS records without decrypting them.

use std::time::Instant;

use crate::limits::{TLS_DRY_RECORDS_MAX, TLS_DRY_RECORDS_WINDOW};

/// Bytes of a record before its payload: RFC 8446, 5.1.
const RECORD_HEAD_BYTES: usize = 5;

/// The content types that a record may have: RFC 8446, 5.1.
const CONTENT_TYPES: std::ops::RangeInclusive<u8> = 20..=23;

/// Bytes of a record's payload. RFC 5246, 6.2.3: encryption adds at most 2,048 bytes to 2^14.
const PAYLOAD_BYTES_MAX: usize = (1 << 14) + 2048;

/// The record being received, and the number of recent records without data.
#[derive(Debug, Default)]
pub(super) struct Record {
    head: [u8; RECORD_HEAD_BYTES],
    head_len: usize,
    /// Bytes of the payload that are still missing.
    left: usize,
    /// Records without data, such as KeyUpdates, in the current window.
    dry: u32,
    window_began: Option<Instant>,
}

impl Record {
    /// Returns how many of `bytes` belong to the current record, and whether they complete it.
    pub(super) fn advance(&mut self, bytes: &[u8]) -> (usize, bool) {
        let mut taken = 0;
        if self.head_len < RECORD_HEAD_BYTES {
            for (place, byte) in self.head.iter_mut().skip(self.head_len).zip(bytes) {
                *place = *byte;
                taken += 1;
            }
            self.head_len += taken;
            if self.head_len < RECORD_HEAD_BYTES {
                return (taken, false);
            }
            let [_, _, _, high, low] = self.head;
            self.left = usize::from(u16::from_be_bytes([high, low]));
        }
        let payload = self.left.min(bytes.len() - taken);
        self.left -= payload;
        if self.left == 0 {
            self.head_len = 0;
        }
        (taken + payload, self.left == 0)
    }

    /// Consumes `bytes`; whether they complete a record, or start one that no TLS client sends.
    pub(super) fn ends_or_breaks(&mut self, mut bytes: &[u8]) -> bool {
        let mut is_ended = false;
        while !bytes.is_empty() {
            let (len, is_whole) = self.advance(bytes);
            is_ended |= is_whole;
            bytes = bytes.get(len..).unwrap_or_default();
        }
        let [kind, ..] = self.head;
        let is_broken = self.head_len > 0 && !CONTENT_TYPES.contains(&kind) || self.left > PAYLOAD_BYTES_MAX;
        is_ended || is_broken
    }

    /// Counts a record without data; whether there are too many of them (SECURITY LIM-04).
    pub(super) fn is_dry_too_often(&mut self, now: Instant) -> bool {
        let began = *self.window_began.get_or_insert(now);
        if now.duration_since(began) >= TLS_DRY_RECORDS_WINDOW {
            self.window_began = Some(now);
            self.dry = 0;
        }
        self.dry += 1;
        self.dry > TLS_DRY_RECORDS_MAX
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn records_are_told_apart_however_their_bytes_come() {
        let bytes =
            [[23, 3, 3, 0, 2, b'a', b'b'].as_slice(), &[23, 3, 3, 0, 0], &[23, 3, 3, 0, 1, b'c']].concat();
        let ends = |pieces: &mut dyn Iterator<Item = &[u8]>| {
            let (mut record, mut at, mut ends) = (Record::default(), 0, Vec::new());
            for mut piece in pieces {
                while !piece.is_empty() {
                    let (len, is_whole) = record.advance(piece);
                    at += len;
                    piece = &piece[len..];
                    ends.extend(is_whole.then_some(at));
                }
            }
            ends
        };
        for size in 1..=bytes.len() {
            assert_eq!(ends(&mut bytes.chunks(size)), [7, 12, 18], "in pieces of {size}");
        }
    }

    /// SECURITY LIM-04: a client that sends single bytes costs a handshaker one step per record.
    #[test]
    fn a_handshake_goes_on_once_a_record_is_whole_or_cannot_be_one() {
        for (bytes, steps) in [
            (&[22, 3, 1, 0, 2, 1, 0][..], &[7][..]),
            (&[22, 3, 1, 0, 1, 1, 20, 3, 3, 0, 1, 1, 22], &[6, 12]),
            (&[22, 3, 1, 2, 0, 1], &[]),
            (&[22, 3, 1, 0xff, 0xff], &[5]),
            (b"C", &[1]),
        ] {
            let mut record = Record::default();
            let ends = |at: &usize| record.ends_or_breaks(&bytes[at - 1..*at]);
            assert_eq!((1..=bytes.len()).filter(ends).collect::<Vec<_>>(), steps, "{bytes:?}");
            assert_eq!(Record::default().ends_or_breaks(bytes), !steps.is_empty(), "{bytes:?} at once");
        }
    }

    /// SECURITY LIM-04.
    #[test]
    fn records_without_data_are_bounded_in_a_second() {
        let (mut record, start) = (Record::default(), Instant::now());
        for _ in 0..TLS_DRY_RECORDS_MAX {
            assert!(!record.is_dry_too_often(start));
        }
        assert!(record.is_dry_too_often(start + TLS_DRY_RECORDS_WINDOW - Duration::from_millis(1)));
        assert!(!record.is_dry_too_often(start + TLS_DRY_RECORDS_WINDOW));
    }
}
