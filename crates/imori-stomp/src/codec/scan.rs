//! Finds the lines of a header block in one pass.
//!
//! Marks the significant bytes (line feed, colon and the rare ones) 32 at a time and skips the
//! others. Escapes are only noticed here; the decoder checks them. The state is in local variables,
//! few enough to stay in registers: keeping it in a struct measured a quarter slower.

use wide::u8x32;

use crate::codec::error::{DecodeError, Excerpt};
use crate::codec::escape::trim_spaces;
use crate::codec::frame::Span;
use crate::codec::number::parse_u64;

/// Bytes examined at once.
const CHUNK: usize = 32;

/// A position not found yet; no input is that long.
const NOWHERE: usize = usize::MAX;

const CONTENT_LENGTH: &[u8] = b"content-length";

/// Flag: the block contains a backslash.
const BACKSLASH: u8 = 1;

/// Flag: the block contains a carriage return.
const CARRIAGE_RETURN: u8 = 2;

/// Flag: a line contains a second colon.
const COLON: u8 = 4;

/// Limits on a header block.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HeadLimits {
    pub(crate) bytes_max: usize,
    /// Ignore spaces before a value, as in STOMP 1.0 and before a version is negotiated.
    pub(crate) is_trimmed: bool,
}

/// A complete header block.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct HeaderBlock {
    /// Number of header lines, which is the number of filled spans.
    pub(crate) count: usize,
    /// Length of the lines in bytes, without the empty one.
    pub(crate) block_len: usize,
    /// Length of the lines in bytes, with the empty one.
    pub(crate) len: usize,
    pub(crate) content_length: Option<u64>,
    pub(crate) has_backslash: bool,
    /// No line has a backslash, a carriage return or a second colon.
    pub(crate) is_plain: bool,
}

/// Finds the header lines at the start of `input`; `None` if the empty line has not arrived yet.
///
/// Allows as many lines as there are spans. Not inlined, to keep its variables in registers.
#[inline(never)]
pub(crate) fn scan(
    input: &[u8],
    spans: &mut [Span],
    limits: HeadLimits,
) -> Result<Option<HeaderBlock>, DecodeError> {
    // The longest block plus the empty line.
    let input = input.get(..limits.bytes_max.saturating_add(2)).unwrap_or(input);
    let count_max = spans.len();
    let mut free = spans.iter_mut();
    let mut start = 0_usize;
    let mut colon = NOWHERE;
    // Colon and end of the first content-length line.
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
                        return Ok(Some(HeaderBlock {
                            count: count_max.wrapping_sub(free.len()),
                            block_len: start,
                            len: at.wrapping_add(1),
                            content_length,
                            has_backslash: seen & BACKSLASH != 0,
                            is_plain: seen == 0,
                        }));
                    }
                    let name_len = colon.wrapping_sub(start);
                    // One comparison: the line has a colon, and the colon is not its first byte.
                    if name_len.wrapping_sub(1) >= line_len {
                        let line = count_max.wrapping_sub(free.len()).wrapping_add(1);
                        return Err(malformed(input.get(start..end).unwrap_or_default(), line));
                    }
                    let Some(span) = free.next() else {
                        return Err(DecodeError::TooManyHeaders { max: count_max });
                    };
                    // Stored field by field: a struct would be built in memory and read back.
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

/// Handles a marked byte that most frames do not contain; `count` is the number of lines before its
/// own.
#[cold]
fn rare(input: &[u8], byte: u8, at: usize, count: usize) -> Result<u8, DecodeError> {
    match byte {
        b'\\' => Ok(BACKSLASH),
        b'\0' => Err(DecodeError::NulInHeader { line: count + 1 }),
        // STOMP 1.2 lets CR LF end a line. Imori accepts that in 1.0 and 1.1 too, as a client that
        // writes it means a line end. Elsewhere in a line a CR is refused in every version.
        b'\r' => match input.get(at + 1) {
            Some(b'\n') | None => Ok(CARRIAGE_RETURN),
            Some(_) => Err(DecodeError::CarriageReturnInHeader { line: count + 1 }),
        },
        _ => Ok(0),
    }
}

/// Returns the end of the line whose line feed is at `at`.
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

/// Parses the content-length between its colon and the end of its line.
#[inline(never)]
fn content_length(input: &[u8], colon: usize, end: usize, is_trimmed: bool) -> Result<u64, DecodeError> {
    let value = input.get(colon.wrapping_add(1)..end).unwrap_or_default();
    let digits = if is_trimmed { trim_spaces(value) } else { value };
    parse_u64(digits).ok_or_else(|| DecodeError::InvalidContentLength { value: Excerpt::new(value) })
}

/// Marks the last bytes, padded with an insignificant byte.
#[cold]
fn marks_of_last(rest: &[u8]) -> u32 {
    let mut chunk = [b'.'; CHUNK];
    for (place, byte) in chunk.iter_mut().zip(rest) {
        *place = *byte;
    }
    marks(&chunk)
}

/// Returns a bit mask of line feeds, colons, backslashes, carriage returns and NULs. Other bytes
/// below 16 are marked too and ignored by the caller.
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
