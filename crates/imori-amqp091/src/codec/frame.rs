//! Frames: type (1 byte), channel (2), length of the payload (4), payload, and the octet 206 at the end.

use crate::codec::error::DecodeError;
use crate::codec::method::MethodFields;

/// The bytes with which a client begins (AMQP 0-9-1, 4.2.2). The broker sends them to one that begins otherwise.
pub const PROTOCOL_HEADER: &[u8; 8] = b"AMQP\x00\x00\x09\x01";

/// Bytes of a frame in front of its payload.
pub const HEAD_BYTES: usize = 7;

/// Bytes of a frame that are not its payload.
pub const FRAME_BYTES: usize = HEAD_BYTES + 1;

/// The last octet of a frame.
pub const FRAME_END: u8 = 206;

/// Bytes of a content header in front of its properties: class, weight and length of the body.
const CONTENT_BYTES: usize = 2 + 2 + 8;

/// The type of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameType {
    /// A method.
    Method = 1,
    /// The properties and the length of a body.
    Header = 2,
    /// A part of a body.
    Body = 3,
    /// A sign of life.
    Heartbeat = 8,
}

impl FrameType {
    fn of(octet: u8) -> Option<FrameType> {
        [FrameType::Method, FrameType::Header, FrameType::Body, FrameType::Heartbeat]
            .into_iter()
            .find(|kind| *kind as u8 == octet)
    }
}

/// A frame, whose payload is still in the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Its type.
    pub kind: FrameType,
    /// The channel; 0 is the connection itself.
    pub channel: u16,
    /// The payload.
    pub payload: &'a [u8],
}

impl Frame<'_> {
    /// Bytes of the whole frame.
    #[inline]
    pub fn len(&self) -> usize {
        self.payload.len() + FRAME_BYTES
    }

    /// A frame is never empty.
    #[inline]
    pub fn is_empty(&self) -> bool {
        false
    }
}

/// The frame at the head of the input, as far as it has arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step<'a> {
    /// A whole frame.
    Frame(Frame<'a>),
    /// More bytes are needed.
    Incomplete {
        /// Bytes of the whole frame, once its head is there.
        frame_bytes: Option<usize>,
    },
}

/// Checks the protocol header at the head of the input; false if only a prefix of it has arrived.
///
/// # Errors
/// [`DecodeError::ProtocolHeader`].
pub fn protocol_header(input: &[u8]) -> Result<bool, DecodeError> {
    let bytes = input.get(..PROTOCOL_HEADER.len()).unwrap_or(input);
    if !PROTOCOL_HEADER.starts_with(bytes) {
        return Err(DecodeError::ProtocolHeader);
    }
    Ok(bytes.len() == PROTOCOL_HEADER.len())
}

/// Reads the frame at the head of the input. Its payload may have `payload_bytes_max` bytes; a longer one is refused
/// before it is awaited (SECURITY LIM-07).
///
/// # Errors
/// [`DecodeError::FrameType`], [`DecodeError::FrameTooLong`] or [`DecodeError::FrameEnd`].
#[inline]
pub fn decode(input: &[u8], payload_bytes_max: usize) -> Result<Step<'_>, DecodeError> {
    let Some((&[octet, channel1, channel2, len @ ..], rest)) = input.split_first_chunk::<HEAD_BYTES>() else {
        return Ok(Step::Incomplete { frame_bytes: None });
    };
    let kind = FrameType::of(octet).ok_or(DecodeError::FrameType { octet })?;
    let bytes = u32::from_be_bytes(len) as usize;
    if bytes > payload_bytes_max {
        return Err(DecodeError::FrameTooLong { bytes, max: payload_bytes_max });
    }
    match rest.split_at_checked(bytes) {
        Some((payload, [FRAME_END, ..])) => {
            let channel = u16::from_be_bytes([channel1, channel2]);
            Ok(Step::Frame(Frame { kind, channel, payload }))
        }
        Some((_, [octet, ..])) => Err(DecodeError::FrameEnd { octet: *octet }),
        _ => Ok(Step::Incomplete { frame_bytes: Some(bytes + FRAME_BYTES) }),
    }
}

/// Appends a frame whose payload `write` appends.
#[inline]
pub fn push_frame(out: &mut Vec<u8>, kind: FrameType, channel: u16, write: impl FnOnce(&mut Vec<u8>)) {
    let begin = out.len();
    push_head(out, kind, channel, 0);
    write(out);
    let len = u32::try_from(out.len() - begin - HEAD_BYTES).expect("a message is far shorter");
    if let Some(place) = out.get_mut(begin + 3..begin + HEAD_BYTES) {
        place.copy_from_slice(&len.to_be_bytes());
    }
    out.push(FRAME_END);
}

/// Appends the bytes of a frame in front of its payload, which will have `len` bytes.
#[inline]
pub fn push_head(out: &mut Vec<u8>, kind: FrameType, channel: u16, len: u32) {
    let [channel1, channel2] = channel.to_be_bytes();
    let [len1, len2, len3, len4] = len.to_be_bytes();
    out.extend_from_slice(&[kind as u8, channel1, channel2, len1, len2, len3, len4]);
}

/// Appends a method frame.
pub fn push_method<'a, M: MethodFields<'a>>(out: &mut Vec<u8>, channel: u16, method: &M) {
    push_frame(out, FrameType::Method, channel, |out| {
        out.extend_from_slice(&M::ID.class.to_be_bytes());
        out.extend_from_slice(&M::ID.method.to_be_bytes());
        method.push(out);
    });
}

/// Appends the header frame of a content of class `basic`, whose properties are flags and values as they were read.
#[inline]
pub fn push_content_header(out: &mut Vec<u8>, channel: u16, body_len: usize, properties: &[u8]) {
    let len = u32::try_from(CONTENT_BYTES + properties.len()).expect("header blocks end at 64 KiB");
    push_head(out, FrameType::Header, channel, len);
    let [class1, class2] = super::properties::CLASS.to_be_bytes();
    out.extend_from_slice(&[class1, class2, 0, 0]);
    out.extend_from_slice(&(body_len as u64).to_be_bytes());
    out.extend_from_slice(properties);
    out.push(FRAME_END);
}

/// Appends a body in frames of at most `payload_bytes_max` bytes each, and no frame if the body is empty.
#[inline]
pub fn push_body(out: &mut Vec<u8>, channel: u16, body: &[u8], payload_bytes_max: usize) {
    for part in body.chunks(payload_bytes_max.max(1)) {
        push_head(out, FrameType::Body, channel, part.len() as u32);
        out.extend_from_slice(part);
        out.push(FRAME_END);
    }
}

/// Appends a heartbeat.
pub fn push_heartbeat(out: &mut Vec<u8>) {
    push_frame(out, FrameType::Heartbeat, 0, |_| {});
}
