//! Decodes a client's frames in place: the payload moves to the front of the buffer.

use std::fmt;
use std::io::Cursor;

use tungstenite::protocol::frame::FrameHeader;
use tungstenite::protocol::frame::coding::{CloseCode, Control, Data, OpCode};

use super::utf8::Utf8;

/// Bytes of the longest header of a frame.
const HEADER_BYTES_MAX: usize = 14;

/// RFC 6455, 5.5: bytes of a control frame's payload.
const CONTROL_BYTES_MAX: u64 = 125;

/// State of decoding a client's frames.
#[derive(Debug)]
pub(super) struct Decoder {
    message_bytes_max: u64,
    /// Bytes of an incomplete header.
    header: Vec<u8>,
    frame: Option<Frame>,
    /// The message to which further fragments belong.
    message: Option<Message>,
    /// Whether the current or last message is text.
    is_text: bool,
    utf8: Utf8,
    /// Bytes of an incomplete control frame.
    control: Vec<u8>,
    is_closed: bool,
}

/// A frame being received.
#[derive(Debug)]
struct Frame {
    kind: OpCode,
    is_final: bool,
    left: u64,
    /// Rotated so that it starts with the mask of the next byte.
    mask: [u8; 4],
}

/// A message being received.
#[derive(Debug, Clone, Copy)]
struct Message {
    is_text: bool,
    bytes: u64,
}

/// A control frame that needs a reaction.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ControlFrame {
    /// The client asks for a pong with this payload.
    Ping(Vec<u8>),
    /// The client closes, perhaps with a code. Nothing follows.
    Close(Option<u16>),
}

/// A protocol violation that ends the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Violation {
    /// A frame without a mask.
    Unmasked,
    /// A reserved bit or opcode; no extension is negotiated.
    Reserved,
    /// A control frame that is too long or fragmented.
    Control,
    /// A fragment without a message, or a message within another.
    Fragment,
    /// A message longer than the limit.
    TooLong,
    /// Text that is not UTF-8.
    NotUtf8,
    /// A malformed close frame.
    Close,
}

impl Decoder {
    /// Creates a decoder for messages of at most `message_bytes_max`.
    pub(super) fn new(message_bytes_max: u64) -> Decoder {
        Decoder {
            message_bytes_max,
            header: Vec::new(),
            frame: None,
            message: None,
            is_text: false,
            utf8: Utf8::default(),
            control: Vec::new(),
            is_closed: false,
        }
    }

    /// Whether the current or last message is text.
    pub(super) fn is_text(&self) -> bool {
        self.is_text
    }

    /// Whether the client has closed the WebSocket, so that nothing follows.
    pub(super) fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Decodes the frames in `bytes`, continuing after the previous call. Returns the number of payload bytes now at
    /// the front.
    pub(super) fn decode(
        &mut self,
        bytes: &mut [u8],
        mut on_control: impl FnMut(ControlFrame),
    ) -> Result<usize, Violation> {
        let (mut at, mut kept) = (0, 0);
        while at < bytes.len() && !self.is_closed {
            let Some(frame) = &mut self.frame else {
                at += self.begin(bytes.get(at..).unwrap_or_default(), &mut on_control)?;
                continue;
            };
            let len =
                bytes.len().min(at.saturating_add(usize::try_from(frame.left).unwrap_or(usize::MAX))) - at;
            bytes.copy_within(at..at + len, kept);
            let payload = bytes.get_mut(kept..kept + len).unwrap_or_default();
            unmask(payload, &mut frame.mask);
            frame.left -= len as u64;
            at += len;
            match frame.kind {
                OpCode::Control(_) => self.control.extend_from_slice(payload),
                OpCode::Data(_) => {
                    kept += len;
                    if self.is_text && !self.utf8.take(payload) {
                        return Err(Violation::NotUtf8);
                    }
                }
            }
            self.end_if_whole(&mut on_control)?;
        }
        Ok(kept)
    }

    /// Parses a header, or stores its part; returns the bytes consumed.
    fn begin(&mut self, bytes: &[u8], on_control: &mut impl FnMut(ControlFrame)) -> Result<usize, Violation> {
        let before = self.header.len();
        self.header.extend(bytes.iter().take(HEADER_BYTES_MAX - before));
        let mut cursor = Cursor::new(&self.header);
        let Some((header, len)) = FrameHeader::parse(&mut cursor).map_err(|_| Violation::Reserved)? else {
            return Ok(self.header.len() - before);
        };
        let read = usize::try_from(cursor.position()).unwrap_or(HEADER_BYTES_MAX) - before;
        self.header.clear();
        if header.rsv1 || header.rsv2 || header.rsv3 {
            return Err(Violation::Reserved);
        }
        let Some(mask) = header.mask else {
            return Err(Violation::Unmasked);
        };
        match header.opcode {
            OpCode::Control(_) if !header.is_final || len > CONTROL_BYTES_MAX => {
                return Err(Violation::Control);
            }
            OpCode::Control(_) => {}
            OpCode::Data(kind) => self.add_to_message(kind, len)?,
        }
        self.frame = Some(Frame { kind: header.opcode, is_final: header.is_final, left: len, mask });
        self.end_if_whole(on_control)?;
        Ok(read)
    }

    /// Starts a message, or continues one, with a data frame.
    fn add_to_message(&mut self, kind: Data, len: u64) -> Result<(), Violation> {
        let message = match (kind, self.message) {
            (Data::Continue, Some(message)) => message,
            (Data::Text, None) => Message { is_text: true, bytes: 0 },
            (Data::Binary, None) => Message { is_text: false, bytes: 0 },
            (Data::Continue, None) | (Data::Text | Data::Binary, Some(_)) => return Err(Violation::Fragment),
            (Data::Reserved(_), _) => return Err(Violation::Reserved),
        };
        let bytes = message.bytes.saturating_add(len);
        if bytes > self.message_bytes_max {
            return Err(Violation::TooLong);
        }
        self.is_text = message.is_text;
        self.message = Some(Message { bytes, ..message });
        Ok(())
    }

    fn end_if_whole(&mut self, on_control: &mut impl FnMut(ControlFrame)) -> Result<(), Violation> {
        let Some(frame) = self.frame.take_if(|frame| frame.left == 0) else {
            return Ok(());
        };
        match frame.kind {
            OpCode::Control(Control::Ping) => {
                on_control(ControlFrame::Ping(std::mem::take(&mut self.control)));
            }
            OpCode::Control(Control::Close) => {
                on_control(ControlFrame::Close(close_code(&self.control)?));
                self.is_closed = true;
            }
            OpCode::Control(_) => self.control.clear(),
            OpCode::Data(_) if frame.is_final => {
                self.message = None;
                if !self.utf8.end() {
                    return Err(Violation::NotUtf8);
                }
            }
            OpCode::Data(_) => {}
        }
        Ok(())
    }
}

impl Violation {
    /// RFC 6455, 7.4.1: the close code sent to the client.
    pub(super) fn code(self) -> CloseCode {
        match self {
            Violation::TooLong => CloseCode::Size,
            Violation::NotUtf8 => CloseCode::Invalid,
            _ => CloseCode::Protocol,
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Violation::Unmasked => "a frame of the client has no mask",
            Violation::Reserved => "a frame uses a reserved bit or kind; no extension was agreed on",
            Violation::Control => "a control frame is longer than 125 bytes or in fragments",
            Violation::Fragment => "a fragment belongs to no message, or a message begins within another",
            Violation::TooLong => "a message is longer than `limits.message_bytes` allows",
            Violation::NotUtf8 => "a text message is not UTF-8; send it as binary",
            Violation::Close => "a close frame has no readable code",
        })
    }
}

/// Unmasks the payload, and rotates the mask for the byte that follows.
fn unmask(payload: &mut [u8], mask: &mut [u8; 4]) {
    // Wide enough for the compiler to vectorize.
    let mut wide = [0; 32];
    for (byte, mask) in wide.iter_mut().zip(mask.iter().cycle()) {
        *byte = *mask;
    }
    for chunk in payload.chunks_mut(wide.len()) {
        for (byte, mask) in chunk.iter_mut().zip(&wide) {
            *byte ^= mask;
        }
    }
    mask.rotate_left(payload.len() % 4);
}

/// RFC 6455, 5.5.1: empty, or a code and a text.
fn close_code(payload: &[u8]) -> Result<Option<u16>, Violation> {
    let Some((code, reason)) = payload.split_first_chunk() else {
        return if payload.is_empty() { Ok(None) } else { Err(Violation::Close) };
    };
    let code = u16::from_be_bytes(*code);
    if std::str::from_utf8(reason).is_err() {
        return Err(Violation::NotUtf8);
    }
    if CloseCode::from(code).is_allowed() { Ok(Some(code)) } else { Err(Violation::Close) }
}

#[cfg(test)]
mod tests;
