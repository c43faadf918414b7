//! Finds the lines of a header block in one pass.
//!
//! The bytes that mean something (line feed, colon, and the rare ones) are marked 32 at a time
//! and all others skipped. Escapes are only noticed here; the decoder checks them. The state is
//! in local variables and so small that it stays in registers: measured, a struct of it takes a
//! quarter longer.

use wide::u8x32;

use crate::codec::error::{DecodeError, Excerpt};
use crate::codec::escape::trim_spaces;
use crate::codec::frame::Span;
use crate::codec::number::parse_u64;

/// Bytes that are marked together.
const CHUNK: usize = 32;

/// The place of what was not seen; no input is that long.
const NOWHERE: usize = usize::MAX;

const CONTENT_LENGTH: &[u8] = b"content-length";

/// A backslash was seen.
const BACKSLASH: u8 = 1;

/// A carriage return was seen.
const CARRIAGE_RETURN: u8 = 2;

/// A second colon was seen in a line.
const COLON: u8 = 4;

/// How much of a header block is accepted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HeadLimits {
    pub(crate) bytes_max: usize,
    /// Spaces before a value are no part of it, as in STOMP 1.0 and before a version is agreed on.
    pub(crate) is_trimmed: bool,
}

/// A whole header block.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Head {
    /// Header lines, as many as spans are filled.
    pub(crate) count: usize,
    /// Bytes of the lines, without the empty one.
    pub(crate) block_len: usize,
    /// Bytes of the lines and the empty one.
    pub(crate) len: usize,
    pub(crate) content_length: Option<u64>,
    pub(crate) has_backslash: bool,
    /// No line has a backslash, a carriage return or a second colon.
    pub(crate) is_plain: bool,
}

/// Finds the lines that `input` begins with; none when the empty line is still to come.
///
/// There may be as many lines as there are spans. It is not inlined, for the sake of registers.
#[inline(never)]
pub(crate) fn scan(
    input: &[u8],
    spans: &mut [Span],
    limits: HeadLimits,
) -> Result<Option<Head>, DecodeError> {
    // The longest block and the empty line.
    let input = input.get(..limits.bytes_max.saturating_add(2)).unwrap_or(input);
    let count_max = spans.len();
    let mut free = spans.iter_mut();
    let mut start = 0_usize;
    let mut colon = NOWHERE;
    // The colon and the end of the first content-length.
    let mut length_colon = NOWHERE;
    let mut length_end = NOWHERE;
    let mut seen = 0_u8;
    let mut chunk_at = 0_usize;
    loop {
        let rest = input.get(chunk_at..).unwrap_or_default();
        let mut marks = match rest.first_chunk() {
            Some(chunk) => marks(chunk),
            None if rest.is_empty() => break,
            None => marks_of_last(rest),
        };
        while marks != 0 {
            let at = chunk_at.wrapping_add(marks.trailing_zeros() as usize);
            marks &= marks.wrapping_sub(1);
            match input.get(at) {
                Some(b':') if colon == NOWHERE => colon = at,
                Some(b':') => seen |= COLON,
                Some(b'\n') => {
                    let mut end = at;
                    if seen & CARRIAGE_RETURN != 0 {
                        end = line_end(input, at);
                    }
                    let line_len = end.wrapping_sub(start);
                    if line_len == 0 {
                        if start > limits.bytes_max {
                            return Err(DecodeError::HeadersTooLong { max: limits.bytes_max });
                        }
                        let content_length = match length_colon {
                            NOWHERE => None,
                            _ => Some(content_length(input, length_colon, length_end, limits.is_trimmed)?),
                        };
                        return Ok(Some(Head {
                            count: count_max.wrapping_sub(free.len()),
                            block_len: start,
                            len: at.wrapping_add(1),
                            content_length,
                            has_backslash: seen & BACKSLASH != 0,
                            is_plain: seen == 0,
                        }));
                    }
                    let name_len = colon.wrapping_sub(start);
                    // Neither no colon nor no name.
                    if name_len.wrapping_sub(1) >= line_len {
                        let line = count_max.wrapping_sub(free.len()).wrapping_add(1);
                        return Err(malformed(input.get(start..end).unwrap_or_default(), line));
                    }
                    let Some(span) = free.next() else {
                        return Err(DecodeError::TooManyHeaders { max: count_max });
                    };
                    // Stored one by one: as a whole it would be put together in memory and read back.
                    span.start = start;
                    span.colon = colon;
                    span.end = end;
                    if name_len == CONTENT_LENGTH.len() && input.get(start..colon) == Some(CONTENT_LENGTH) {
                        if length_colon == NOWHERE {
                            length_colon = colon;
                            length_end = end;
                        } else {
                            let first = content_length(input, length_colon, length_end, limits.is_trimmed)?;
                            let second = content_length(input, colon, end, limits.is_trimmed)?;
                            if first != second {
                                return Err(DecodeError::ContradictingContentLength { first, second });
                            }
                        }
                    }
                    start = at.wrapping_add(1);
                    colon = NOWHERE;
                }
                Some(byte) => seen |= rare(input, *byte, at, count_max.wrapping_sub(free.len()))?,
                None => {}
            }
        }
        chunk_at = chunk_at.wrapping_add(CHUNK);
    }
    if input.len() > limits.bytes_max {
        return Err(DecodeError::HeadersTooLong { max: limits.bytes_max });
    }
    Ok(None)
}

/// Looks at a marked byte that most frames do not have; `count` lines are before its own.
#[cold]
fn rare(input: &[u8], byte: u8, at: usize, count: usize) -> Result<u8, DecodeError> {
    match byte {
        b'\\' => Ok(BACKSLASH),
        b'\0' => Err(DecodeError::NulInHeader { line: count + 1 }),
        // STOMP 1.2 lets CR LF end a line. It does so in 1.0 and 1.1 here too, where a client that
        // writes it means it. Elsewhere in a line it is refused in every version.
        b'\r' => match input.get(at + 1) {
            Some(b'\n') | None => Ok(CARRIAGE_RETURN),
            Some(_) => Err(DecodeError::CarriageReturnInHeader { line: count + 1 }),
        },
        _ => Ok(0),
    }
}

/// Returns the end of a line whose line feed is here.
#[cold]
fn line_end(input: &[u8], at: usize) -> usize {
    match input.get(..at) {
        Some([.., b'\r']) => at - 1,
        _ => at,
    }
}

#[cold]
fn malformed(text: &[u8], line: usize) -> DecodeError {
    match text {
        [b':', ..] => DecodeError::HeaderWithoutName { line },
        _ => DecodeError::HeaderWithoutColon { line, text: Excerpt::new(text) },
    }
}

/// Reads the content-length that stands between its colon and the end of its line.
#[inline(never)]
fn content_length(input: &[u8], colon: usize, end: usize, is_trimmed: bool) -> Result<u64, DecodeError> {
    let value = input.get(colon.wrapping_add(1)..end).unwrap_or_default();
    let digits = if is_trimmed { trim_spaces(value) } else { value };
    parse_u64(digits).ok_or_else(|| DecodeError::InvalidContentLength { value: Excerpt::new(value) })
}

/// Marks the last bytes, filled up with one that means nothing.
#[cold]
fn marks_of_last(rest: &[u8]) -> u32 {
    let mut chunk = [b'.'; CHUNK];
    for (place, byte) in chunk.iter_mut().zip(rest) {
        *place = *byte;
    }
    marks(&chunk)
}

/// Marks, with one bit each, the line feeds, colons, backslashes, carriage returns and NULs, and
/// other bytes below 16, which mean nothing.
#[inline(always)]
fn marks(chunk: &[u8; CHUNK]) -> u32 {
    let bytes = u8x32::new(*chunk);
    let is_below_16 = bytes.min(u8x32::splat(15)).simd_eq(bytes);
    let is_colon = bytes.simd_eq(u8x32::splat(b':'));
    let is_backslash = bytes.simd_eq(u8x32::splat(b'\\'));
    (is_below_16 | is_colon | is_backslash).to_bitmask()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_that_means_something_is_marked_in_its_place() {
        for place in 0..CHUNK {
            for byte in 0..=u8::MAX {
                let mut chunk = [b'.'; CHUNK];
                chunk[place] = byte;
                let is_marked = matches!(byte, 0..=15 | b':' | b'\\');
                assert_eq!(marks(&chunk), u32::from(is_marked) << place, "{byte} at {place}");
            }
        }
    }
}
