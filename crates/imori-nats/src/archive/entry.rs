//! The entries of an archive: `name length, timestamp, sequence, header size, payload size` as variable-length numbers,
//! then the name, the header and the payload. The timestamp, in nanoseconds since the UNIX epoch, is zigzag encoded.

use imori_streams::archive::ArchiveError;

/// The begin of all entries.
pub(super) const MAGIC: &[u8] = b"NATSARC1";

/// The highest sequence number, and number of a delivery: there is always a next one. Higher: the archive is refused.
pub(super) const NUMBER_MAX: u64 = 1 << 62;

/// Bytes of a name, which is a subject, or a consumer behind a folder. More: the archive is refused.
const NAME_BYTES_MAX: u64 = 4096;

/// The fields before the contents of an entry.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct EntryHead {
    pub(super) name: Vec<u8>,
    /// Nanoseconds since the UNIX epoch.
    pub(super) timestamp: i64,
    /// 0 for none.
    pub(super) sequence: u64,
    pub(super) header_bytes: u64,
    pub(super) payload_bytes: u64,
}

impl EntryHead {
    /// Whether it is the end of the archive.
    pub(super) fn is_end(&self) -> bool {
        *self == EntryHead::default()
    }

    /// Bytes of header and payload.
    pub(super) fn bytes(&self) -> u64 {
        self.header_bytes.saturating_add(self.payload_bytes)
    }

    /// Reads a head, with the number of its bytes; `None` for a prefix of one.
    ///
    /// # Errors
    /// [`ArchiveError::Invalid`].
    pub(super) fn decode(bytes: &[u8]) -> Result<Option<(EntryHead, usize)>, ArchiveError> {
        let mut rest = bytes;
        let mut numbers = [0; 5];
        for number in &mut numbers {
            match decode_number(&mut rest)? {
                Some(read) => *number = read,
                None => return Ok(None),
            }
        }
        let [name_bytes, timestamp, sequence, header_bytes, payload_bytes] = numbers;
        if name_bytes > NAME_BYTES_MAX || header_bytes.max(payload_bytes) > i64::MAX.unsigned_abs() {
            return Err(ArchiveError::Invalid);
        }
        let len = usize::try_from(name_bytes).map_err(|_| ArchiveError::Invalid)?;
        let Some(name) = rest.get(..len) else { return Ok(None) };
        let timestamp = (timestamp >> 1).cast_signed() ^ -(timestamp & 1).cast_signed();
        let head = EntryHead { name: name.to_vec(), timestamp, sequence, header_bytes, payload_bytes };
        Ok(Some((head, bytes.len() - rest.len() + len)))
    }

    /// Appends the head.
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        let timestamp = (self.timestamp << 1 ^ self.timestamp >> 63).cast_unsigned();
        let name_bytes = self.name.len() as u64;
        for number in [name_bytes, timestamp, self.sequence, self.header_bytes, self.payload_bytes] {
            encode_number(number, out);
        }
        out.extend_from_slice(&self.name);
    }
}

fn decode_number(bytes: &mut &[u8]) -> Result<Option<u64>, ArchiveError> {
    let mut number = 0_u64;
    for (index, byte) in bytes.iter().enumerate() {
        let bits = u64::from(byte & 0x7f);
        if index == 9 && bits > 1 || index > 9 {
            return Err(ArchiveError::Invalid);
        }
        number |= bits << (7 * index);
        if *byte < 0x80 {
            *bytes = bytes.get(index + 1..).unwrap_or_default();
            return Ok(Some(number));
        }
    }
    Ok(None)
}

fn encode_number(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number.to_le_bytes()[0] | 0x80);
        number >>= 7;
    }
    out.push(number.to_le_bytes()[0]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_are_read_as_they_were_written_and_prefixes_are_none() {
        let message = EntryHead {
            name: b"ponds.north".to_vec(),
            timestamp: 1_790_000_000_000_000_000,
            sequence: u64::MAX,
            header_bytes: 300,
            payload_bytes: i64::MAX.unsigned_abs(),
        };
        for head in [message, EntryHead::default(), EntryHead { timestamp: -1, ..EntryHead::default() }] {
            let mut bytes = Vec::new();
            head.encode(&mut bytes);
            for len in 0..bytes.len() {
                assert_eq!(EntryHead::decode(&bytes[..len]), Ok(None), "{len}");
            }
            let len = bytes.len();
            bytes.extend_from_slice(b"rest");
            assert_eq!(EntryHead::decode(&bytes), Ok(Some((head, len))));
        }
    }

    #[test]
    fn heads_without_sense_are_refused() {
        for bytes in
            [&b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02"[..], b"\x81\x20\x00\x00\x00\x00", &[0x80; 11]]
        {
            assert_eq!(EntryHead::decode(bytes), Err(ArchiveError::Invalid), "{bytes:?}");
        }
    }
}
