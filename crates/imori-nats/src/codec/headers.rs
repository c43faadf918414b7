//! Header blocks of HPUB and HMSG: a version line, lines of name and value, an empty line.
//!
//! Reading is lenient, as in the client libraries; writing produces blocks that every client can
//! read.

use memchr::memchr;

use crate::codec::number::push_u64;

/// The first line of a header block.
pub const VERSION_LINE: &[u8] = b"NATS/1.0\r\n";

/// The end of a header block.
pub const BLOCK_END: &[u8] = b"\r\n";

/// The header block of the status for a request without subscribers.
pub const NO_RESPONDERS: &[u8] = b"NATS/1.0 503\r\n\r\n";

/// Iterator over the headers of a block, in order. Lines without a colon are skipped.
#[derive(Debug, Clone)]
pub struct Headers<'a> {
    rest: &'a [u8],
}

impl<'a> Headers<'a> {
    /// Iterates over the headers of `block`.
    #[inline]
    pub fn new(block: &'a [u8]) -> Self {
        let after = memchr(b'\n', block).and_then(|end| block.get(end + 1..));
        Self { rest: after.unwrap_or_default() }
    }
}

impl<'a> Iterator for Headers<'a> {
    type Item = (&'a [u8], &'a [u8]);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let end = memchr(b'\n', self.rest)?;
            let (line, rest) = self.rest.split_at_checked(end)?;
            self.rest = rest.get(1..).unwrap_or_default();
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if line.is_empty() {
                self.rest = &[];
                return None;
            }
            let Some((name, value)) = memchr(b':', line).and_then(|colon| line.split_at_checked(colon))
            else {
                continue;
            };
            return Some((name, trimmed(value.get(1..).unwrap_or_default())));
        }
    }
}

/// Returns the status of a header block, such as `503`, if it has one.
pub fn status(block: &[u8]) -> Option<&[u8]> {
    let line = block.strip_prefix(b"NATS/1.0 ")?;
    let end = line.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(line.len());
    line.get(..end).filter(|digits| !digits.is_empty())
}

/// Appends a header. Returns false and appends nothing if not every client could read it.
///
/// SECURITY XPI-01: no byte of a name or a value ends the line or the block.
pub fn push_header(out: &mut Vec<u8>, name: &[u8], value: &[u8]) -> bool {
    let is_name = !name.is_empty() && name.iter().all(|byte| byte.is_ascii_graphic() && *byte != b':');
    let is_value = !value.iter().any(|byte| matches!(byte, b'\r' | b'\n' | b'\0'))
        && (value.is_ascii() || std::str::from_utf8(value).is_ok());
    if !is_name || !is_value {
        return false;
    }
    out.extend_from_slice(name);
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
    true
}

/// Appends a header whose value is a number. The name must be one that every client can read.
pub(crate) fn push_number_header(out: &mut Vec<u8>, name: &str, number: u64) {
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b": ");
    push_u64(out, number);
    out.extend_from_slice(b"\r\n");
}

fn trimmed(value: &[u8]) -> &[u8] {
    let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t');
    let start = value.iter().position(|byte| !is_blank(byte)).unwrap_or(value.len());
    let value = value.get(start..).unwrap_or_default();
    let end = value.iter().rposition(|byte| !is_blank(byte)).map_or(0, |at| at + 1);
    value.get(..end).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_read_as_clients_write_them() {
        for (block, expected) in [
            ("NATS/1.0\r\nA: b\r\n\r\n", &[("A", "b")][..]),
            ("NATS/1.0\r\nA:b\r\nA:  c \t\r\n\r\n", &[("A", "b"), ("A", "c")]),
            ("NATS/1.0 503\r\n\r\n", &[]),
            ("NATS/1.0 100 Idle\r\nNats-Last: 1\r\n\r\n", &[("Nats-Last", "1")]),
            ("NATS/1.0\nA: b:c\nno colon\nD:\n\nE: f\n", &[("A", "b:c"), ("D", "")]),
            ("NATS/1.0\r\nA: never ended", &[]),
            ("", &[]),
            ("\r\n", &[]),
        ] {
            let read: Vec<_> = Headers::new(block.as_bytes())
                .map(|(name, value)| (str::from_utf8(name).unwrap(), str::from_utf8(value).unwrap()))
                .collect();
            assert_eq!(read, expected, "{block:?}");
        }
    }

    #[test]
    fn only_a_status_line_has_a_status() {
        for (block, expected) in [
            ("NATS/1.0 503\r\n\r\n", Some("503")),
            ("NATS/1.0 100 Idle Heartbeat\r\n\r\n", Some("100")),
            ("NATS/1.0\r\n\r\n", None),
            ("NATS/1.0 x\r\n\r\n", None),
        ] {
            assert_eq!(status(block.as_bytes()), expected.map(str::as_bytes), "{block:?}");
        }
    }

    #[test]
    fn header_that_would_break_the_block_is_left_out() {
        for (name, value, expected) in [
            ("a", "b", "a: b\r\n"),
            ("a", "", "a: \r\n"),
            ("a", "b:c", "a: b:c\r\n"),
            ("a", "é", "a: é\r\n"),
            ("a", "b\r\nc: d", ""),
            ("a", "b\n", ""),
            ("a", "b\0", ""),
            ("a:", "b", ""),
            ("a b", "c", ""),
            ("a\r\nb", "c", ""),
            ("", "c", ""),
            ("é", "c", ""),
        ] {
            let mut out = Vec::new();
            assert_eq!(push_header(&mut out, name.as_bytes(), value.as_bytes()), !expected.is_empty());
            assert_eq!(str::from_utf8(&out).unwrap(), expected, "{name:?} {value:?}");
        }
        assert!(!push_header(&mut Vec::new(), b"a", b"\xff"));
    }
}
