//! A message as the frames of its content make it: the method, the header, and any number of body frames.
//!
//! Nearly always all of them stand behind each other in the input, with one body frame at most: then nothing is
//! copied. Else the frames are gathered, as frames of other channels may come in between.

use crate::codec::error::DecodeError;
use crate::codec::frame::{
    FRAME_BYTES, FrameType, HEAD_BYTES, Step, decode, push_body, push_content_header, push_frame,
};
use crate::codec::properties::ContentHeader;

/// The content behind a method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Content<'a> {
    /// Flags and values of the properties.
    pub(crate) properties: &'a [u8],
    /// The body.
    pub(crate) body: &'a [u8],
}

/// The content of a method in the input behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Behind<'a> {
    /// All of it is there.
    Whole {
        content: Content<'a>,
        /// Bytes of its frames.
        bytes: usize,
        /// Bytes behind the body.
        end: usize,
    },
    /// More has to come; so far the content can be taken whole.
    Incomplete {
        /// Bytes of its frames, where that is known.
        bytes: Option<usize>,
    },
    /// The frames have to be taken one by one.
    Apart,
}

/// Looks for the content of a method on this channel. Of a body that takes more than one frame, and of frames that are
/// not as they should be, it says [`Behind::Apart`].
#[inline]
pub(crate) fn behind(input: &[u8], channel: u16, payload_bytes_max: usize) -> Behind<'_> {
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
        // Before its head is there, a frame of another channel may still come first.
        Ok(None) => {
            Behind::Incomplete { bytes: (rest.len() >= HEAD_BYTES).then_some(begin + len + FRAME_BYTES) }
        }
        _ => Behind::Apart,
    }
}

/// The input goes on with something else.
struct Otherwise;

/// The payload of the next frame, if it is of this type and channel; nothing until it is whole.
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

/// Bytes of a body that have come when memory for all of it is taken. What is read next is then charged for: a turn
/// reads less, and charges after 64 KiB.
const RESERVED_AFTER_BYTES: usize = 256 * 1024;

/// A message of which not all frames have come.
#[derive(Debug)]
pub(crate) struct Unfinished {
    /// The payload of the method.
    method: Box<[u8]>,
    /// The properties, and bytes that the body will have.
    header: Option<(Box<[u8]>, usize)>,
    body: Vec<u8>,
}

/// A message whose frames have all come.
#[derive(Debug)]
pub(crate) struct Finished {
    /// The payload of the method.
    pub(crate) method: Box<[u8]>,
    /// Flags and values of the properties.
    pub(crate) properties: Box<[u8]>,
    /// The body.
    pub(crate) body: Vec<u8>,
}

/// Why a frame does not go on with a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ContentError {
    /// Another frame comes where a header has to.
    NoHeader,
    /// Another frame comes where a part of a body has to.
    NoBody,
    /// The parts of the body are longer than the header says.
    BodyTooLong {
        /// Bytes that there are.
        bytes: usize,
        /// Bytes that the header says.
        announced: usize,
    },
    /// The header says that the body is longer than a body may be.
    BodyOverLimit {
        /// Bytes that it says.
        bytes: u64,
    },
    /// The header is none.
    Decode(DecodeError),
}

impl Unfinished {
    /// The beginning of a message: its method.
    pub(crate) fn new(method: &[u8]) -> Unfinished {
        Unfinished { method: method.into(), header: None, body: Vec::new() }
    }

    /// Bytes that have come.
    pub(crate) fn came_bytes(&self) -> usize {
        let properties = self.header.as_ref().map_or(0, |(properties, _)| properties.len());
        self.method.len() + properties + self.body.len()
    }

    /// Bytes that it will have, as soon as some of its body has come.
    pub(crate) fn whole_bytes(&self) -> usize {
        let missing = self.header.as_ref().map_or(0, |(_, len)| len - self.body.len());
        self.came_bytes() + if self.body.is_empty() { 0 } else { missing }
    }

    /// Adds a frame; true once the message is whole. At the beginning no more memory is taken for a body than has come
    /// of it.
    pub(crate) fn add(
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

    /// The whole message; nothing while frames are missing.
    pub(crate) fn finish(mut self) -> Option<Finished> {
        let (properties, len) = self.header.take()?;
        let Unfinished { method, body, .. } = self;
        (body.len() == len).then_some(Finished { method, properties, body })
    }
}

/// The frames of a message, of which that of the body may be of any length: how a message waits.
pub(crate) fn frames(channel: u16, method: &[u8], content: &Content<'_>) -> Box<[u8]> {
    let len = method.len() + content.properties.len() + content.body.len() + 4 * FRAME_BYTES + 4;
    let mut out = Vec::with_capacity(len);
    push_frame(&mut out, FrameType::Method, channel, |out| out.extend_from_slice(method));
    push_content_header(&mut out, channel, content.body.len(), content.properties);
    push_body(&mut out, channel, content.body, usize::MAX);
    out.into_boxed_slice()
}

/// The frame of a method without content, as it waits.
pub(crate) fn frames_of_method(channel: u16, payload: &[u8]) -> Box<[u8]> {
    let mut out = Vec::with_capacity(payload.len() + FRAME_BYTES);
    push_frame(&mut out, FrameType::Method, channel, |out| out.extend_from_slice(payload));
    out.into_boxed_slice()
}

#[cfg(test)]
mod tests;
