//! Frames: length of all (4 bytes), data offset (1), type (1), channel (2), extended header, body (AMQP 1.0, 2.3).

use crate::codec::error::DecodeError;

/// Length of a frame's header in bytes, without an extended header.
pub const HEADER_BYTES: usize = 8;

/// Data offset of a frame without an extended header, in words of four bytes.
const OFFSET_WORDS: u8 = 2;

/// Length of a protocol header in bytes.
const PROTOCOL_HEADER_BYTES: usize = 8;

/// The protocol header, which both ends send to start a layer (AMQP 1.0, 2.2 and 5.3.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProtocolHeader {
    /// `AMQP 0 1 0 0`: AMQP frames follow.
    Amqp,
    /// `AMQP 3 1 0 0`: a SASL login follows.
    Sasl,
}

impl ProtocolHeader {
    /// Returns the bytes of the header.
    pub const fn bytes(self) -> &'static [u8; PROTOCOL_HEADER_BYTES] {
        match self {
            ProtocolHeader::Amqp => b"AMQP\x00\x01\x00\x00",
            ProtocolHeader::Sasl => b"AMQP\x03\x01\x00\x00",
        }
    }
}

/// The type of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameKind {
    /// A performative with its payload.
    Amqp = 0,
    /// A step of a SASL login.
    Sasl = 1,
}

/// A frame; the body borrows the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Its type.
    pub kind: FrameKind,
    /// The channel; meaningless in a SASL frame.
    pub channel: u16,
    /// Performative and payload. An empty body only keeps the connection alive.
    pub body: &'a [u8],
    /// Length of the whole frame in bytes.
    pub len: usize,
}

/// The result of decoding the start of the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step<'a> {
    /// A whole frame.
    Frame(Frame<'a>),
    /// A protocol header of eight bytes.
    Header(ProtocolHeader),
    /// More bytes are needed.
    Incomplete {
        /// Length of the whole frame in bytes, if known.
        frame_bytes: Option<usize>,
    },
}

/// Decodes the frame at the start of the input. A frame of more than `frame_bytes_max` bytes is
/// refused before the rest of it arrives (SECURITY LIM-07).
///
/// # Errors
/// [`DecodeError::FrameTooLong`], [`DecodeError::FrameTooShort`], [`DecodeError::DataOffset`],
/// [`DecodeError::FrameType`], or [`DecodeError::ProtocolHeader`] if the input starts with `AMQP`.
#[inline]
pub fn decode(input: &[u8], frame_bytes_max: usize) -> Result<Step<'_>, DecodeError> {
    let Some((&[len1, len2, len3, len4, words, octet, channel1, channel2], _)) =
        input.split_first_chunk::<HEADER_BYTES>()
    else {
        return begun(input, frame_bytes_max);
    };
    if [len1, len2, len3, len4] == *b"AMQP" {
        return protocol_header(input);
    }
    let len = frame_len([len1, len2, len3, len4], frame_bytes_max)?;
    let kind = match octet {
        0 => FrameKind::Amqp,
        1 => FrameKind::Sasl,
        _ => return Err(DecodeError::FrameType { octet }),
    };
    let offset = usize::from(words) * 4;
    if words < OFFSET_WORDS || offset > len {
        return Err(DecodeError::DataOffset { words });
    }
    match input.get(offset..len) {
        Some(body) => {
            Ok(Step::Frame(Frame { kind, channel: u16::from_be_bytes([channel1, channel2]), body, len }))
        }
        None => Ok(Step::Incomplete { frame_bytes: Some(len) }),
    }
}

/// Handles an incomplete frame header: refuses an invalid length as soon as it is known.
#[cold]
fn begun(input: &[u8], frame_bytes_max: usize) -> Result<Step<'_>, DecodeError> {
    match input.first_chunk::<4>() {
        Some(b"AMQP") => protocol_header(input),
        Some(len) => Ok(Step::Incomplete { frame_bytes: Some(frame_len(*len, frame_bytes_max)?) }),
        None => Ok(Step::Incomplete { frame_bytes: None }),
    }
}

#[inline]
fn frame_len(len: [u8; 4], max: usize) -> Result<usize, DecodeError> {
    let bytes = u32::from_be_bytes(len) as usize;
    if bytes > max {
        return Err(DecodeError::FrameTooLong { bytes, max });
    }
    if bytes < HEADER_BYTES {
        return Err(DecodeError::FrameTooShort { bytes });
    }
    Ok(bytes)
}

/// Decodes the protocol header at the start of the input; any prefix of one is incomplete.
///
/// # Errors
/// [`DecodeError::ProtocolHeader`].
#[cold]
pub fn protocol_header(input: &[u8]) -> Result<Step<'_>, DecodeError> {
    let bytes = input.get(..PROTOCOL_HEADER_BYTES).unwrap_or(input);
    let known = [ProtocolHeader::Amqp, ProtocolHeader::Sasl]
        .into_iter()
        .find(|header| header.bytes().starts_with(bytes));
    match known {
        Some(header) if bytes.len() == PROTOCOL_HEADER_BYTES => Ok(Step::Header(header)),
        Some(_) => Ok(Step::Incomplete { frame_bytes: Some(PROTOCOL_HEADER_BYTES) }),
        None => Err(DecodeError::ProtocolHeader),
    }
}

/// Appends a frame with the body that `write` appends.
#[inline]
pub fn push_frame(out: &mut Vec<u8>, kind: FrameKind, channel: u16, write: impl FnOnce(&mut Vec<u8>)) {
    let begin = out.len();
    let [channel1, channel2] = channel.to_be_bytes();
    out.extend_from_slice(&[0, 0, 0, 0, OFFSET_WORDS, kind as u8, channel1, channel2]);
    write(out);
    let len = u32::try_from(out.len() - begin).expect("the agreed size of a frame has 32 bits");
    if let Some(place) = out.get_mut(begin..begin + 4) {
        place.copy_from_slice(&len.to_be_bytes());
    }
}

/// Appends an empty frame, which keeps the connection alive.
pub fn push_heartbeat(out: &mut Vec<u8>) {
    push_frame(out, FrameKind::Amqp, 0, |_| {});
}
