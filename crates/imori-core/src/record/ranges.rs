//! A compact encoding for sets of numbers that are often close together.
//!
//! Each byte holds seven bits of a number, the lowest first; all bytes but the last have the highest bit set.
//! Ranges are `count`, then for each range the distance from the end of the previous one, and how many
//! numbers follow the first.

use super::fields::{Fields, RecordError};

/// Writes a number.
pub(super) fn push_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(0x80 | (number & 0x7f) as u8);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Writes `count` ranges as first and last number; they have to rise and must not touch.
pub(super) fn push_ranges(out: &mut Vec<u8>, count: usize, ranges: impl Iterator<Item = (u64, u64)>) {
    push_number(out, count as u64);
    let mut end = 0;
    for (first, last) in ranges {
        push_number(out, first - end);
        push_number(out, last - first);
        end = last;
    }
}

/// Reads a number.
pub(super) fn number(fields: &mut Fields<'_>) -> Result<u64, RecordError> {
    let mut number = 0;
    for shift in (0..u64::BITS).step_by(7) {
        let byte = fields.u8()?;
        let part = u64::from(byte & 0x7f);
        if part << shift >> shift != part {
            break;
        }
        number |= part << shift;
        if byte < 0x80 {
            return Ok(number);
        }
    }
    Err(RecordError::Unknown("number"))
}

/// Reads a number of 32 bits.
pub(super) fn number_u32(fields: &mut Fields<'_>) -> Result<u32, RecordError> {
    u32::try_from(number(fields)?).map_err(|_| RecordError::Unknown("number"))
}

/// Reads ranges.
pub(super) fn ranges(fields: &mut Fields<'_>) -> Result<Vec<(u64, u64)>, RecordError> {
    const UNKNOWN: RecordError = RecordError::Unknown("range");
    let (mut ranges, mut end) = (Vec::new(), 0u64);
    for _ in 0..number(fields)? {
        let first = end.checked_add(number(fields)?).ok_or(UNKNOWN)?;
        let last = first.checked_add(number(fields)?).ok_or(UNKNOWN)?;
        ranges.push((first, last));
        end = last;
    }
    Ok(ranges)
}

/// The ranges of a list of numbers.
#[must_use]
pub fn ranges_of(mut numbers: Vec<u64>) -> Vec<(u64, u64)> {
    numbers.sort_unstable();
    numbers.dedup();
    let consecutive = numbers.chunk_by(|one, next| one + 1 == *next);
    consecutive.filter_map(|range| Some((*range.first()?, *range.last()?))).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const VERSION: u8 = 1;

    fn fields(bytes: &[u8]) -> Fields<'_> {
        Fields::of(bytes, VERSION).expect("it is of this version")
    }

    fn written(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        let mut out = vec![VERSION];
        write(&mut out);
        out
    }

    #[test]
    fn numbers_take_as_many_bytes_as_they_need() {
        for (value, len) in [(0, 1), (1, 1), (127, 1), (128, 2), (16_383, 2), (16_384, 3), (u64::MAX, 10)] {
            let bytes = written(|out| push_number(out, value));
            assert_eq!(bytes.len(), 1 + len, "{value}");
            assert_eq!(number(&mut fields(&bytes)), Ok(value));
            assert_eq!(number(&mut fields(&bytes[..len])), Err(RecordError::Truncated), "{value}");
        }
        let too_large = [&[VERSION][..], &[0xff; 9], &[2]].concat();
        assert_eq!(number(&mut fields(&too_large)), Err(RecordError::Unknown("number")));
        let endless = [&[VERSION][..], &[0x80; 20]].concat();
        assert_eq!(number(&mut fields(&endless)), Err(RecordError::Unknown("number")));
        let large = written(|out| push_number(out, 1 << 32));
        assert_eq!(number_u32(&mut fields(&large)), Err(RecordError::Unknown("number")));
    }

    #[test]
    fn every_second_number_takes_two_bytes() {
        let every_second: Vec<(u64, u64)> = (1u64 << 39..).take(1000).map(|at| (2 * at, 2 * at)).collect();
        let bytes = written(|out| push_ranges(out, every_second.len(), every_second.iter().copied()));
        assert_eq!(bytes.len(), 1 + 2 + (6 + 1) + 999 * 2);
        assert_eq!(ranges(&mut fields(&bytes)), Ok(every_second));
    }

    proptest! {
        #[test]
        fn reading_after_writing_is_identity(numbers in proptest::collection::btree_set(0u32..200, 0..100)) {
            let numbers: Vec<u64> = numbers.into_iter().map(u64::from).collect();
            let pieces: Vec<&[u64]> = numbers.chunk_by(|one, next| one + 1 == *next).collect();
            let expected: Vec<(u64, u64)> = pieces.iter().map(|piece| (piece[0], piece[piece.len() - 1])).collect();
            let bytes = written(|out| push_ranges(out, expected.len(), expected.iter().copied()));
            prop_assert_eq!(ranges(&mut fields(&bytes)), Ok(expected));
        }

        #[test]
        fn any_bytes_are_read(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            let bytes = [&[VERSION][..], &bytes].concat();
            let _ = ranges(&mut fields(&bytes));
        }
    }
}
