//! HPACK (RFC 7541): reads the headers of a peer, and writes those of requests in its simplest forms.

use std::collections::VecDeque;

use anyhow::{Context, Result, bail, ensure};

use crate::huffman;

/// Bytes of the dynamic table unless it is agreed otherwise, which this tool does not.
pub(crate) const TABLE_BYTES: usize = 4_096;

/// RFC 7541, 4.1: what an entry counts beside its name and value.
const ENTRY_BYTES: usize = 32;

/// Bytes of one name or value, and of all in a block. More: the run ends, for no reply needs them.
const TEXT_BYTES_MAX: usize = 64 * 1024;

/// RFC 7541, Appendix A; the first is number 1.
const STATIC: [(&str, &str); 61] = [
    (":authority", ""),
    (":method", "GET"),
    (":method", "POST"),
    (":path", "/"),
    (":path", "/index.html"),
    (":scheme", "http"),
    (":scheme", "https"),
    (":status", "200"),
    (":status", "204"),
    (":status", "206"),
    (":status", "304"),
    (":status", "400"),
    (":status", "404"),
    (":status", "500"),
    ("accept-charset", ""),
    ("accept-encoding", "gzip, deflate"),
    ("accept-language", ""),
    ("accept-ranges", ""),
    ("accept", ""),
    ("access-control-allow-origin", ""),
    ("age", ""),
    ("allow", ""),
    ("authorization", ""),
    ("cache-control", ""),
    ("content-disposition", ""),
    ("content-encoding", ""),
    ("content-language", ""),
    ("content-length", ""),
    ("content-location", ""),
    ("content-range", ""),
    ("content-type", ""),
    ("cookie", ""),
    ("date", ""),
    ("etag", ""),
    ("expect", ""),
    ("expires", ""),
    ("from", ""),
    ("host", ""),
    ("if-match", ""),
    ("if-modified-since", ""),
    ("if-none-match", ""),
    ("if-range", ""),
    ("if-unmodified-since", ""),
    ("last-modified", ""),
    ("link", ""),
    ("location", ""),
    ("max-forwards", ""),
    ("proxy-authenticate", ""),
    ("proxy-authorization", ""),
    ("range", ""),
    ("referer", ""),
    ("refresh", ""),
    ("retry-after", ""),
    ("server", ""),
    ("set-cookie", ""),
    ("strict-transport-security", ""),
    ("transfer-encoding", ""),
    ("user-agent", ""),
    ("vary", ""),
    ("via", ""),
    ("www-authenticate", ""),
];

/// Reads the header blocks of one connection, which build on each other.
#[derive(Debug)]
pub(crate) struct HeaderDecoder {
    /// The newest first.
    dynamic: VecDeque<(Vec<u8>, Vec<u8>)>,
    bytes: usize,
    bytes_max: usize,
    name: Vec<u8>,
    value: Vec<u8>,
}

impl HeaderDecoder {
    /// A decoder that has read nothing yet.
    pub(crate) fn new() -> HeaderDecoder {
        HeaderDecoder {
            dynamic: VecDeque::new(),
            bytes: 0,
            bytes_max: TABLE_BYTES,
            name: Vec::new(),
            value: Vec::new(),
        }
    }

    /// Shows every name and value of a whole block.
    pub(crate) fn decode(&mut self, mut block: &[u8], mut see: impl FnMut(&[u8], &[u8])) -> Result<()> {
        let mut text_bytes = 0_usize;
        let mut is_first = true;
        while let Some(first) = block.first().copied() {
            block = match first {
                0x80.. => {
                    let (index, rest) = integer(block, 7)?;
                    let (name, value) = self.entry(index)?;
                    text_bytes = text_bytes.saturating_add(name.len() + value.len());
                    see(name, value);
                    rest
                }
                0x20..0x40 => {
                    ensure!(is_first, "a header block changes the table too late");
                    let (size, rest) = integer(block, 5)?;
                    ensure!(size <= TABLE_BYTES, "a header block wants a table of `{size}` bytes");
                    self.bytes_max = size;
                    self.evict(0);
                    block = rest;
                    continue;
                }
                _ => {
                    let is_kept = first & 0x40 != 0;
                    let rest = self.literal(block, if is_kept { 6 } else { 4 })?;
                    text_bytes = text_bytes.saturating_add(self.name.len() + self.value.len());
                    see(&self.name, &self.value);
                    if is_kept {
                        self.keep();
                    }
                    rest
                }
            };
            is_first = false;
            ensure!(text_bytes <= TEXT_BYTES_MAX, "a header block has more than `{TEXT_BYTES_MAX}` bytes");
        }
        Ok(())
    }

    /// Reads name and value into the fields for them; says what follows.
    fn literal<'a>(&mut self, block: &'a [u8], prefix: u8) -> Result<&'a [u8]> {
        let (index, mut rest) = integer(block, prefix)?;
        let mut name = std::mem::take(&mut self.name);
        name.clear();
        match index {
            0 => rest = string(rest, &mut name)?,
            _ => name.extend_from_slice(self.entry(index)?.0),
        }
        self.name = name;
        self.value.clear();
        string(rest, &mut self.value)
    }

    fn entry(&self, index: usize) -> Result<(&[u8], &[u8])> {
        let at = index.checked_sub(1).context("a header names entry `0`, which is none")?;
        if let Some((name, value)) = STATIC.get(at) {
            return Ok((name.as_bytes(), value.as_bytes()));
        }
        match self.dynamic.get(at - STATIC.len()) {
            Some((name, value)) => Ok((name, value)),
            None => bail!("a header names entry `{index}`, which is none"),
        }
    }

    /// Adds the last literal to the table; one that is larger than the table only empties it.
    fn keep(&mut self) {
        let bytes = self.name.len() + self.value.len() + ENTRY_BYTES;
        self.evict(bytes);
        if bytes <= self.bytes_max {
            self.bytes += bytes;
            self.dynamic.push_front((self.name.clone(), self.value.clone()));
        }
    }

    /// Drops the oldest until so many bytes have room.
    fn evict(&mut self, bytes: usize) {
        while self.bytes.saturating_add(bytes) > self.bytes_max {
            let Some((name, value)) = self.dynamic.pop_back() else {
                return;
            };
            self.bytes = self.bytes.saturating_sub(name.len() + value.len() + ENTRY_BYTES);
        }
    }
}

/// An integer whose first byte has so many bits for it; says what follows.
fn integer(bytes: &[u8], prefix: u8) -> Result<(usize, &[u8])> {
    let (first, mut rest) = bytes.split_first().context("a header block ends too early")?;
    let full = (1_usize << prefix) - 1;
    let mut value = usize::from(*first) & full;
    if value < full {
        return Ok((value, rest));
    }
    for shift in [0, 7, 14, 21] {
        let (byte, after) = rest.split_first().context("a header block ends too early")?;
        rest = after;
        value += usize::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok((value, rest));
        }
    }
    bail!("a header block has an integer that nothing needs")
}

/// Appends a string; says what follows.
fn string<'a>(bytes: &'a [u8], out: &mut Vec<u8>) -> Result<&'a [u8]> {
    let is_coded = bytes.first().is_some_and(|first| first & 0x80 != 0);
    let (length, rest) = integer(bytes, 7)?;
    ensure!(length <= TEXT_BYTES_MAX, "a header of `{length}` bytes is more than a reply needs");
    let (text, rest) = rest.split_at_checked(length).context("a header block ends too early")?;
    match is_coded {
        true => huffman::decode(text, out).context("a header is not in the code of HPACK")?,
        false => out.extend_from_slice(text),
    }
    Ok(rest)
}

/// Appends an entry of a table, static or dynamic.
pub(crate) fn push_indexed(out: &mut Vec<u8>, index: usize) {
    push_integer(out, 0x80, 7, index);
}

/// Appends a name and a value that the table keeps, as its newest entry from now on.
pub(crate) fn push_kept(out: &mut Vec<u8>, name: &str, value: &str) {
    match STATIC.iter().position(|(known, _)| *known == name) {
        Some(at) => push_integer(out, 0x40, 6, at + 1),
        None => {
            out.push(0x40);
            push_string(out, name);
        }
    }
    push_string(out, value);
}

/// Where the dynamic entry is that was kept so many entries ago.
pub(crate) fn kept_index(age: usize) -> usize {
    STATIC.len() + 1 + age
}

fn push_string(out: &mut Vec<u8>, text: &str) {
    push_integer(out, 0, 7, text.len());
    out.extend_from_slice(text.as_bytes());
}

fn push_integer(out: &mut Vec<u8>, flags: u8, prefix: u8, value: usize) {
    let full = (1_usize << prefix) - 1;
    if value < full {
        out.push(flags | value as u8);
        return;
    }
    out.push(flags | full as u8);
    let mut left = value - full;
    while left >= 0x80 {
        out.push(left as u8 | 0x80);
        left >>= 7;
    }
    out.push(left as u8);
}

#[cfg(test)]
mod tests;
