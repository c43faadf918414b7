//! Joins the frames of a message: the method, the header, and any number of body frames.
//!
//! Usually all of them are contiguous in the input, with one body frame at most, and nothing is
//! copied. Otherwise the frames are gathered, as frames of other channels may come in between.

use crate::codec::error::DecodeError;
use crate::codec::frame::{
    FRAME_BYTES, FrameType, HEAD_BYTES, Step, decode, push_body, push_content_header, push_frame,
};
use crate::codec::properties::ContentHeader;

/// The content of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Content<'a> {
    /// Flags and values of the properties.
    pub properties: &'a [u8],
    /// The body.
    pub body: &'a [u8],
}

/// The content found in the input after a method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Behind<'a> {
    /// The content is complete.
    Whole {
        /// The content.
        content: Content<'a>,
        /// Length of its frames in bytes.
        bytes: usize,
        /// Number of bytes after the body.
        end: usize,
    },
    /// More bytes are needed; so far the frames are contiguous.
    Incomplete {
        /// Length of its frames in bytes, if known.
        bytes: Option<usize>,
    },
    /// The frames have to be taken one by one.
    Apart,
}

/// Looks for the content of a method on this channel. Returns [`Behind::Apart`] for a body of
/// several frames and for unexpected or invalid frames.
#[inline]
pub fn behind(input: &[u8], channel: u16, payload_bytes_max: usize) -> Behind<'_> {
    let head = match next(input, channel, FrameType::Header, payload_bytes_max) {
        Ok(Some(payload)) => payload,
        Ok(None) => return Behind::Incomplete { bytes: None },
        Err(Otherwise) => return Behind::Apart,
    };
    let Ok(ContentHeader { body_len, properties }) = ContentHeader::decode(head) else {
        return Behind::Apart;
    };
    let begin = head.len() + FRAME_BYTES;
    if body_len == 0 {
        let content = Content { properties, body: b"" };
        return Behind::Whole { content, bytes: begin, end: 0 };
    }
    let Some(len) = usize::try_from(body_len).ok().filter(|len| *len <= payload_bytes_max) else {
        return Behind::Apart;
    };
    let rest = input.get(begin..).unwrap_or_default();
    match next(rest, channel, FrameType::Body, payload_bytes_max) {
        Ok(Some(body)) if body.len() == len => {
            let content = Content { properties, body };
            Behind::Whole { content, bytes: begin + len + FRAME_BYTES, end: 1 }
        }
        // Until the head of the body frame is there, a frame of another channel may still come
        // first.
        Ok(None) => {
            Behind::Incomplete { bytes: (rest.len() >= HEAD_BYTES).then_some(begin + len + FRAME_BYTES) }
        }
        _ => Behind::Apart,
    }
}

/// The input continues with another frame.
struct Otherwise;

/// Returns the payload of the next frame, if it has this type and channel; `None` until it is
/// complete.
fn next(
    input: &[u8],
    channel: u16,
    kind: FrameType,
    payload_bytes_max: usize,
) -> Result<Option<&[u8]>, Otherwise> {
    let [channel1, channel2] = channel.to_be_bytes();
    let expected = [kind as u8, channel1, channel2];
    if !expected.iter().zip(input).all(|(expected, byte)| expected == byte) {
        return Err(Otherwise);
    }
    match decode(input, payload_bytes_max) {
        Ok(Step::Frame(frame)) => Ok(Some(frame.payload)),
        Ok(Step::Incomplete { .. }) => Ok(None),
        Err(_) => Err(Otherwise),
    }
}

/// Bytes of a body after which memory for all of it is reserved. By then the gauge has been charged
/// for it: a turn reads less than this, and charges after 64 KiB.
pub const RESERVED_AFTER_BYTES: usize = 256 * 1024;

/// A message that has arrived only in part.
#[derive(Debug)]
pub struct Unfinished {
    /// The payload of the method.
    method: Box<[u8]>,
    /// The properties, and the final length of the body.
    header: Option<(Box<[u8]>, usize)>,
    /// The part of the body that has arrived.
    pub body: Vec<u8>,
}

/// A complete message that was gathered from its frames.
#[derive(Debug)]
pub struct Finished {
    /// The payload of the method.
    pub method: Box<[u8]>,
    /// Flags and values of the properties.
    pub properties: Box<[u8]>,
    /// The body.
    pub body: Vec<u8>,
}

/// The reason why a frame does not continue a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContentError {
    /// A frame is not the expected header.
    NoHeader,
    /// A frame is not the expected part of the body.
    NoBody,
    /// The body is longer than announced in the header.
    BodyTooLong {
        /// Bytes of the body so far.
        bytes: usize,
        /// Bytes announced in the header.
        announced: usize,
    },
    /// The announced length exceeds the limit on bodies.
    BodyOverLimit {
        /// Bytes announced in the header.
        bytes: u64,
    },
    /// The header cannot be decoded.
    Decode(DecodeError),
}

impl Unfinished {
    /// Starts a message with its method.
    pub fn new(method: &[u8]) -> Unfinished {
        Unfinished { method: method.into(), header: None, body: Vec::new() }
    }

    /// Number of bytes received so far.
    pub fn came_bytes(&self) -> usize {
        let properties = self.header.as_ref().map_or(0, |(properties, _)| properties.len());
        self.method.len() + properties + self.body.len()
    }

    /// Number of bytes of the complete message; before any of the body arrives, only those
    /// received.
    pub fn whole_bytes(&self) -> usize {
        let missing = self.header.as_ref().map_or(0, |(_, len)| len - self.body.len());
        self.came_bytes() + if self.body.is_empty() { 0 } else { missing }
    }

    /// Adds a frame; returns whether the message is complete. Until much of a body has arrived, it
    /// gets no more memory than has arrived.
    ///
    /// # Errors
    /// [`ContentError`].
    pub fn add(
        &mut self,
        kind: FrameType,
        payload: &[u8],
        body_bytes_max: usize,
    ) -> Result<bool, ContentError> {
        let missing = match (&self.header, kind) {
            (None, FrameType::Header) => {
                let header = ContentHeader::decode(payload).map_err(ContentError::Decode)?;
                let len = usize::try_from(header.body_len).ok().filter(|len| *len <= body_bytes_max);
                let len = len.ok_or(ContentError::BodyOverLimit { bytes: header.body_len })?;
                self.header = Some((header.properties.into(), len));
                len
            }
            (Some((_, len)), FrameType::Body) => {
                let bytes = self.body.len() + payload.len();
                let too_long = ContentError::BodyTooLong { bytes, announced: *len };
                let missing = len.checked_sub(bytes).ok_or(too_long)?;
                if bytes >= RESERVED_AFTER_BYTES {
                    self.body.reserve_exact(payload.len() + missing);
                }
                self.body.extend_from_slice(payload);
                missing
            }
            (None, _) => return Err(ContentError::NoHeader),
            (Some(_), _) => return Err(ContentError::NoBody),
        };
        Ok(missing == 0)
    }

    /// Returns the complete message; `None` while frames are missing.
    pub fn finish(mut self) -> Option<Finished> {
        let (properties, len) = self.header.take()?;
        let Unfinished { method, body, .. } = self;
        (body.len() == len).then_some(Finished { method, properties, body })
    }
}

/// Encodes a message for parking. Its body frame may exceed the frame size.
pub fn frames(channel: u16, method: &[u8], content: &Content<'_>) -> Box<[u8]> {
    let len = method.len() + content.properties.len() + content.body.len() + 4 * FRAME_BYTES + 4;
    let mut out = Vec::with_capacity(len);
    push_frame(&mut out, FrameType::Method, channel, |out| out.extend_from_slice(method));
    push_content_header(&mut out, channel, content.body.len(), content.properties);
    push_body(&mut out, channel, content.body, usize::MAX);
    out.into_boxed_slice()
}

/// Encodes a method without content for parking.
pub(crate) fn frames_of_method(channel: u16, payload: &[u8]) -> Box<[u8]> {
    let mut out = Vec::with_capacity(payload.len() + FRAME_BYTES);
    push_frame(&mut out, FrameType::Method, channel, |out| out.extend_from_slice(payload));
    out.into_boxed_slice()
}
