//! Frames: length of the payload (4 bytes), channel (2), kind (1), payload. All numbers are big-endian.

use imori_core::outbound::SessionId;

use self::Kind::*;

const HEAD_BYTES: usize = 7;

/// Bytes of a payload at most. A longer body takes several frames.
pub const PAYLOAD_BYTES_MAX: usize = 4096;

/// Kinds of frames. A name is its length (2 bytes) and so many bytes, a flag is a byte.
/// The broker answers requests by an empty frame of their kind, but for `Publish` and `Body`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Client: user and password, two names.
    Login = 1,
    /// Client: opens the channel of this number. Deliveries that it may have unsettled (4 bytes), 0 for any number.
    Open,
    /// Client: closes the channel; flag `at once`. Otherwise the answer comes behind all others of the channel, and its
    /// parked messages are published first; at once these messages and the answers that wait are dropped.
    Close,
    /// Client: declares a durable queue of this name.
    Declare,
    /// Client: tag (1 byte), credit (4), name of a queue.
    Consume,
    /// Client: tag (1 byte), pattern of subjects, a name.
    Subscribe,
    /// Client: tag (1 byte) of a reader that ends. Its unsettled deliveries stay with the channel.
    Cancel,
    /// Client: flag `persistent`, bytes of the body (4), exchange and subject, two names. Bodies follow.
    Publish,
    /// Both: the next bytes of a body.
    Body,
    /// Client: number of a delivery (8 bytes), flag `and all before it`, outcome (1 byte): accept 0, release 1,
    /// reject 2. Answered once no crash undoes it.
    Settle,
    /// Broker: tag, number (8 bytes), flag `redelivered`, bytes of the body (4), subject, a name. Bodies follow.
    Deliver,
    /// Broker: number of a publish of its channel (8 bytes), flags `and all before it` and `refused`.
    Confirm,
    /// Broker: a sentence. The channel ends, and with channel 0 the connection.
    Refuse,
}

const KINDS: [Kind; 13] = [
    Login, Open, Close, Declare, Consume, Subscribe, Cancel, Publish, Body, Settle, Deliver, Confirm, Refuse,
];

/// A frame, whose payload is still in the input.
#[derive(Debug, Clone, Copy)]
pub struct Frame<'a> {
    /// The channel; the first session is the connection itself.
    pub channel: SessionId,
    /// The kind.
    pub kind: Kind,
    /// The payload.
    pub payload: &'a [u8],
}

/// Reads the frame at the head of `input` and gives its bytes too; `None` until it is whole.
///
/// # Errors
/// A sentence for the client where the bytes are no frame.
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

/// Appends a frame whose payload `write` appends.
pub fn push(out: &mut Vec<u8>, channel: SessionId, kind: Kind, write: impl FnOnce(&mut Vec<u8>)) {
    let begin = out.len();
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&channel.0.to_be_bytes());
    out.push(kind as u8);
    write(out);
    let len = (out.len() - begin - HEAD_BYTES) as u32;
    out[begin..begin + 4].copy_from_slice(&len.to_be_bytes());
}

/// Appends a body as so many frames as it takes.
pub(super) fn push_body(out: &mut Vec<u8>, channel: SessionId, body: &[u8]) {
    let parts = body.chunks(PAYLOAD_BYTES_MAX);
    parts.for_each(|part| push(out, channel, Body, |out| out.extend_from_slice(part)));
}

/// Fields of a payload, read one after the other; `None` where it ends too early.
#[derive(Debug)]
pub struct Fields<'a>(pub &'a [u8]);

impl<'a> Fields<'a> {
    /// So many bytes.
    pub fn bytes(&mut self, len: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(bytes)
    }

    /// A number of so many bytes.
    pub fn number(&mut self, len: usize) -> Option<u64> {
        Some(self.bytes(len)?.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    /// A name.
    pub fn name(&mut self) -> Option<&'a [u8]> {
        self.number(2).and_then(|len| self.bytes(len as usize))
    }
}
