//! Frames: payload length (4 bytes), channel (2), kind (1), payload. Numbers are big-endian.

use imori_core::outbound::SessionId;

use self::Kind::*;

const HEAD_BYTES: usize = 7;

/// The largest payload in bytes; a longer body is split into several frames.
pub const PAYLOAD_BYTES_MAX: usize = 4096;

/// Kinds of frames, with the fields of their payload. A name is its length (2 bytes) and its bytes;
/// a flag is one byte. The broker answers each request except `Publish` and `Body` with an empty
/// frame of the same kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Client: logs in; user and password (names).
    Login = 1,
    /// Client: opens a channel; its limit of unsettled deliveries (4 bytes), 0 for none.
    Open,
    /// Client: closes a channel; flag `at once`. If unset, parked messages are published first and
    /// all earlier answers precede the answer; if set, parked messages and held answers are
    /// dropped.
    Close,
    /// Client: declares a durable queue; its name.
    Declare,
    /// Client: consumes; tag (1 byte), credit (4), queue (name).
    Consume,
    /// Client: subscribes; tag (1 byte), subject pattern (name).
    Subscribe,
    /// Client: cancels a reader; tag (1 byte). Its unsettled deliveries stay with the channel.
    Cancel,
    /// Client: publishes; flag `persistent`, body length (4 bytes), exchange and subject (names).
    /// `Body` frames follow.
    Publish,
    /// Both: the next part of a body.
    Body,
    /// Client: settles; delivery number (8 bytes), flag `and all before it`, outcome (1 byte): 0
    /// accept, 1 release, 2 reject. Answered once durable.
    Settle,
    /// Broker: delivers; tag (1 byte), number (8), flag `redelivered`, body length (4), subject
    /// (name). `Body` frames follow.
    Deliver,
    /// Broker: confirms; number of a publish on this channel (8 bytes), flags `and all before it`
    /// and `refused`.
    Confirm,
    /// Broker: refuses, with an error message. The channel ends; on channel 0 the connection ends.
    Refuse,
}

const KINDS: [Kind; 13] = [
    Login, Open, Close, Declare, Consume, Subscribe, Cancel, Publish, Body, Settle, Deliver, Confirm, Refuse,
];

/// A frame; its payload borrows the input.
#[derive(Debug, Clone, Copy)]
pub struct Frame<'a> {
    /// The channel; channel 0 is the connection itself.
    pub channel: SessionId,
    /// The kind.
    pub kind: Kind,
    /// The payload.
    pub payload: &'a [u8],
}

/// Decodes the frame at the start of `input` and returns its length too; `None` if it is
/// incomplete.
///
/// # Errors
/// The error message for the client if the bytes are no frame.
pub fn decode(input: &[u8]) -> Result<Option<(Frame<'_>, usize)>, &'static str> {
    let mut fields = Fields(input);
    let (Some(len), Some(channel), Some(kind)) = (fields.number(4), fields.number(2), fields.number(1))
    else {
        return Ok(None);
    };
    let kind = KINDS.into_iter().find(|known| *known as u64 == kind);
    let kind = kind.ok_or("there is no such kind of frame; see the table of kinds")?;
    let len = usize::try_from(len).ok().filter(|len| *len <= PAYLOAD_BYTES_MAX);
    let len = len.ok_or("the payload is too long; send a long body in several frames")?;
    let frame = |payload| (Frame { channel: SessionId(channel as u16), kind, payload }, HEAD_BYTES + len);
    Ok(fields.bytes(len).map(frame))
}

/// Appends a frame; `write` appends its payload.
pub fn push(out: &mut Vec<u8>, channel: SessionId, kind: Kind, write: impl FnOnce(&mut Vec<u8>)) {
    let begin = out.len();
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&channel.0.to_be_bytes());
    out.push(kind as u8);
    write(out);
    let len = (out.len() - begin - HEAD_BYTES) as u32;
    out[begin..begin + 4].copy_from_slice(&len.to_be_bytes());
}

/// Appends a body, split into frames.
pub(super) fn push_body(out: &mut Vec<u8>, channel: SessionId, body: &[u8]) {
    let parts = body.chunks(PAYLOAD_BYTES_MAX);
    parts.for_each(|part| push(out, channel, Body, |out| out.extend_from_slice(part)));
}

/// Reads the fields of a payload in turn; `None` if the payload is too short.
#[derive(Debug)]
pub struct Fields<'a>(pub &'a [u8]);

impl<'a> Fields<'a> {
    /// Reads `len` bytes.
    pub fn bytes(&mut self, len: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(bytes)
    }

    /// Reads a number of `len` bytes.
    pub fn number(&mut self, len: usize) -> Option<u64> {
        Some(self.bytes(len)?.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    /// Reads a name.
    pub fn name(&mut self) -> Option<&'a [u8]> {
        self.number(2).and_then(|len| self.bytes(len as usize))
    }
}
