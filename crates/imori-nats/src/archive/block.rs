//! Decodes a block of S2: Snappy's, with matches that repeat the last offset.

use imori_streams::archive::ArchiveError;

/// Bytes of a decoded block, as in S2. More: the archive is refused.
pub(super) const BLOCK_BYTES_MAX: usize = 4 << 20;

/// Appends the contents of a block to `out`.
///
/// # Errors
/// The block is damaged, or larger than [`BLOCK_BYTES_MAX`].
pub(super) fn decode_block(block: &[u8], out: &mut Vec<u8>) -> Result<(), ArchiveError> {
    let mut input = Input(block);
    let (start, len) = (out.len(), input.length()?);
    out.reserve(len);
    let end = start + len;
    let mut offset = 0;
    while let Some(tag) = input.next() {
        let high = usize::from(tag >> 2);
        let copied = match tag & 3 {
            0 => {
                let len = match high {
                    0..60 => high,
                    _ => input.number(high - 59)?,
                };
                let literal = input.take(len.checked_add(1).ok_or(ArchiveError::Corrupt)?)?;
                if literal.len() > end - out.len() {
                    return Err(ArchiveError::Corrupt);
                }
                out.extend_from_slice(literal);
                continue;
            }
            1 => {
                let near = usize::from(tag & 0xe0) << 3 | input.number(1)?;
                let len = high & 7;
                if near > 0 {
                    offset = near;
                    len + 4
                } else {
                    // S2: a match at the offset of the one before.
                    4 + match len {
                        5 => input.number(1)? + 4,
                        6 => input.number(2)? + (1 << 8),
                        7 => input.number(3)? + (1 << 16),
                        len => len,
                    }
                }
            }
            2 => {
                offset = input.number(2)?;
                high + 1
            }
            _ => {
                offset = input.number(4)?;
                high + 1
            }
        };
        let from = (out.len() - start).checked_sub(offset).filter(|_| offset > 0);
        let from = start + from.ok_or(ArchiveError::Corrupt)?;
        if copied > end - out.len() {
            return Err(ArchiveError::Corrupt);
        }
        // What is copied may begin to be written while it is read.
        let mut left = copied;
        while left > 0 {
            let piece = left.min(out.len() - from);
            out.extend_from_within(from..from + piece);
            left -= piece;
        }
    }
    if out.len() == end { Ok(()) } else { Err(ArchiveError::Corrupt) }
}

/// The rest of a block.
struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn next(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    fn take(&mut self, len: usize) -> Result<&'a [u8], ArchiveError> {
        let (taken, rest) = self.0.split_at_checked(len).ok_or(ArchiveError::Corrupt)?;
        self.0 = rest;
        Ok(taken)
    }

    /// A number of this many bytes, the lowest first.
    fn number(&mut self, bytes: usize) -> Result<usize, ArchiveError> {
        let taken = self.take(bytes)?;
        Ok(taken.iter().rev().fold(0, |number, byte| number << 8 | usize::from(*byte)))
    }

    /// The length of the contents, in seven bits a byte.
    fn length(&mut self) -> Result<usize, ArchiveError> {
        let mut len = 0;
        for shift in [0, 7, 14, 21] {
            let byte = self.next().ok_or(ArchiveError::Corrupt)?;
            len |= usize::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return if len <= BLOCK_BYTES_MAX { Ok(len) } else { Err(ArchiveError::Corrupt) };
            }
        }
        Err(ArchiveError::Corrupt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(block: &[u8]) -> Result<Vec<u8>, ArchiveError> {
        let mut out = b"before".to_vec();
        decode_block(block, &mut out).map(|()| out.split_off(6))
    }

    #[test]
    fn literals_and_matches_are_put_together() {
        for (block, expected) in [
            (&b"\x00"[..], &b""[..]),
            (b"\x03\x08abc", b"abc"),
            (b"\x03\xf0\x02abc", b"abc"),
            // A match of 4 bytes at distance 3, in each of the three forms.
            (b"\x07\x08abc\x01\x03", b"abcabca"),
            (b"\x07\x08abc\x0e\x03\x00", b"abcabca"),
            (b"\x07\x08abc\x0f\x03\x00\x00\x00", b"abcabca"),
            // The same distance again: 4 bytes, and 4 + 4 + 1.
            (b"\x0b\x08abc\x01\x03\x01\x00", b"abcabcabcab"),
            (b"\x10\x08abc\x01\x03\x15\x00\x01", b"abcabcabcabcabca"),
        ] {
            assert_eq!(decoded(block).as_deref(), Ok(expected), "{block:?}");
        }
    }

    #[test]
    fn damaged_blocks_are_refused() {
        for block in [
            &b""[..],
            b"\x03",
            b"\x04\x08abc",
            b"\x02\x08abc",
            b"\x07\x08abc\x01\x04",
            b"\x07\x08abc\x01\x00",
            b"\x06\x08abc\x01\x03",
            b"\x07\x08abc\x0f\x03\x00",
            b"\xff\xff\xff\xff\x0f",
            b"\x81\x80\x80\x04\x00a",
            b"\x03\xfc\xff\xff\xff\xffabc",
        ] {
            assert_eq!(decoded(block), Err(ArchiveError::Corrupt), "{block:?}");
        }
    }
}
