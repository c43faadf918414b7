//! The frames of S2: an identifier, then chunks of data, each with a checksum.
//!
//! The reader takes what the writer of Go's `s2` emits. The writer emits chunks that are not compressed.

use imori_streams::archive::ArchiveError;

use super::block::{BLOCK_BYTES_MAX, decode_block};

/// The first chunk of every stream.
const IDENTIFIER: &[u8] = b"\xff\x06\x00\x00S2sTwO";
const IDENTIFIER_OF_SNAPPY: &[u8] = b"\xff\x06\x00\x00sNaPpY";

const HEADER_BYTES: usize = 4;
const CHECKSUM_BYTES: usize = 4;

/// Bytes of a chunk with data: a block that could not be compressed has a little more than its contents.
const CHUNK_BYTES_MAX: usize = BLOCK_BYTES_MAX + BLOCK_BYTES_MAX / 6 + 64;

/// Bytes of data in a chunk that is written.
const CHUNK_BYTES: usize = 64 * 1024;

/// Takes the contents out of frames.
#[derive(Debug, Default)]
pub(super) struct FrameReader {
    input: Vec<u8>,
    /// Bytes of a chunk without data that are still to be left out.
    skipped: usize,
    has_begun: bool,
}

impl FrameReader {
    /// Adds bytes of the stream.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.input.extend_from_slice(bytes);
    }

    /// Whether the stream may end here.
    #[cfg(test)]
    pub(super) fn is_between_frames(&self) -> bool {
        self.input.is_empty() && self.skipped == 0
    }

    /// Appends the contents of the next chunk to `out`; `false` if more of the stream is needed.
    ///
    /// # Errors
    /// [`ArchiveError`].
    pub(super) fn read(&mut self, out: &mut Vec<u8>) -> Result<bool, ArchiveError> {
        loop {
            let left_out = self.skipped.min(self.input.len());
            self.input.drain(..left_out);
            self.skipped -= left_out;
            let Some([kind, len @ ..]) = self.input.first_chunk::<HEADER_BYTES>() else { return Ok(false) };
            let (kind, len) =
                (*kind, usize::from(len[0]) | usize::from(len[1]) << 8 | usize::from(len[2]) << 16);
            if !self.has_begun && kind != 0xff {
                return Err(ArchiveError::Corrupt);
            }
            match kind {
                0x00 | 0x01 if (CHECKSUM_BYTES..=CHUNK_BYTES_MAX).contains(&len) => {
                    let Some(chunk) = self.input.get(HEADER_BYTES..HEADER_BYTES + len) else {
                        return Ok(false);
                    };
                    read_chunk(chunk, kind == 0x00, out)?;
                    self.input.drain(..HEADER_BYTES + len);
                    return Ok(true);
                }
                0xff if len + HEADER_BYTES == IDENTIFIER.len() => {
                    let Some(identifier) = self.input.get(..IDENTIFIER.len()) else { return Ok(false) };
                    if identifier != IDENTIFIER && identifier != IDENTIFIER_OF_SNAPPY {
                        return Err(ArchiveError::Unsupported);
                    }
                    self.has_begun = true;
                    self.skipped = IDENTIFIER.len();
                }
                0x00 | 0x01 | 0xff => return Err(ArchiveError::Corrupt),
                // S2, chunks that may be left out: padding, an index, or a later extension.
                0x80.. => self.skipped = HEADER_BYTES + len,
                0x02..0x80 => return Err(ArchiveError::Unsupported),
            }
        }
    }
}

fn read_chunk(chunk: &[u8], is_compressed: bool, out: &mut Vec<u8>) -> Result<(), ArchiveError> {
    let (sum, data) = chunk.split_first_chunk::<CHECKSUM_BYTES>().ok_or(ArchiveError::Corrupt)?;
    let start = out.len();
    match is_compressed {
        true => decode_block(data, out)?,
        false if data.len() <= BLOCK_BYTES_MAX => out.extend_from_slice(data),
        false => return Err(ArchiveError::Corrupt),
    }
    match out.get(start..).map(checksum) == Some(u32::from_le_bytes(*sum)) {
        true => Ok(()),
        false => Err(ArchiveError::Checksum),
    }
}

/// The checksum of the contents of a chunk: CRC-32C, masked as the format says.
fn checksum(data: &[u8]) -> u32 {
    crc32c::crc32c(data).rotate_right(15).wrapping_add(0xa282_ead8)
}

/// Puts contents into frames.
#[derive(Debug)]
pub(super) struct FrameWriter {
    data: Vec<u8>,
    out: Vec<u8>,
}

impl Default for FrameWriter {
    fn default() -> Self {
        Self { data: Vec::with_capacity(CHUNK_BYTES), out: IDENTIFIER.to_vec() }
    }
}

impl FrameWriter {
    /// Adds contents.
    pub(super) fn push(&mut self, mut data: &[u8]) {
        while !data.is_empty() {
            let room = CHUNK_BYTES - self.data.len();
            let (now, later) = data.split_at(room.min(data.len()));
            self.data.extend_from_slice(now);
            data = later;
            if self.data.len() == CHUNK_BYTES {
                self.flush();
            }
        }
    }

    /// Ends the chunk that was begun.
    pub(super) fn flush(&mut self) {
        if self.data.is_empty() {
            return;
        }
        let len = u32::try_from(self.data.len() + CHECKSUM_BYTES).unwrap_or_default().to_le_bytes();
        self.out.extend_from_slice(&[0x01, len[0], len[1], len[2]]);
        self.out.extend_from_slice(&checksum(&self.data).to_le_bytes());
        self.out.append(&mut self.data);
    }

    /// Bytes of frames that were not taken.
    pub(super) fn len(&self) -> usize {
        self.out.len()
    }

    /// Takes the frames that are complete.
    pub(super) fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8], piece: usize) -> Result<(Vec<u8>, bool), ArchiveError> {
        let (mut reader, mut out) = (FrameReader::default(), Vec::new());
        for piece in bytes.chunks(piece) {
            reader.push(piece);
            while reader.read(&mut out)? {}
        }
        Ok((out, reader.is_between_frames()))
    }

    #[test]
    fn frames_in_pieces_give_the_contents() {
        let contents: Vec<u8> = (0..200_000_u32).map(|number| number.to_le_bytes()[0]).collect();
        let mut writer = FrameWriter::default();
        contents.chunks(777).for_each(|piece| writer.push(piece));
        writer.flush();
        let frames = writer.take();
        for piece in [1000, 65_536, frames.len()] {
            assert_eq!(read(&frames, piece), Ok((contents.clone(), true)), "{piece}");
        }
        assert_eq!(read(&frames[..frames.len() - 1], 4096).map(|(_, is_whole)| is_whole), Ok(false));
    }

    #[test]
    fn compressed_chunks_and_padding_are_read() {
        let block = b"\x20\x0cnewt\x6e\x04\x00";
        let text = b"newt".repeat(8);
        let mut frames = IDENTIFIER.to_vec();
        frames.extend_from_slice(b"\xfe\x03\x00\x00\x00\x00\x00");
        frames.extend_from_slice(&[0x00, u8::try_from(block.len() + 4).unwrap(), 0, 0]);
        frames.extend_from_slice(&checksum(&text).to_le_bytes());
        frames.extend_from_slice(block);
        for piece in [1, 3, 100] {
            assert_eq!(read(&frames, piece), Ok((text.clone(), true)), "{piece}");
        }
    }

    #[test]
    fn damaged_frames_are_refused() {
        let mut writer = FrameWriter::default();
        writer.push(b"a newt");
        writer.flush();
        let frames = writer.take();
        let mut other = frames.clone();
        other[20] ^= 1;
        for (bytes, error) in [
            (other, ArchiveError::Checksum),
            (frames[10..].to_vec(), ArchiveError::Corrupt),
            (b"\xff\x06\x00\x00S2sTwo".to_vec(), ArchiveError::Unsupported),
            (b"\xff\x07\x00\x00S2sTwO".to_vec(), ArchiveError::Corrupt),
            ([IDENTIFIER, b"\x02\x00\x00\x00"].concat(), ArchiveError::Unsupported),
            ([IDENTIFIER, b"\x01\x03\x00\x00abc"].concat(), ArchiveError::Corrupt),
            ([IDENTIFIER, b"\x00\xff\xff\xff"].concat(), ArchiveError::Corrupt),
        ] {
            assert_eq!(read(&bytes, 5), Err(error), "{bytes:?}");
        }
    }
}
