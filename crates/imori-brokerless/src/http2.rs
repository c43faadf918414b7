//! Frames of HTTP/2 (RFC 9113): taken apart and written, with what a client of gRPC needs of them.

use anyhow::{Result, bail, ensure};

/// The bytes that a client begins with.
pub(crate) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Bytes of a frame's head.
pub(crate) const HEAD_BYTES: usize = 9;
/// Where a frame's head names its stream.
pub(crate) const STREAM_AT: usize = 5;

/// Bytes of a payload, unless the other side takes more.
pub(crate) const PAYLOAD_BYTES_MAX: usize = 16_384;
/// The window of a connection and of a stream until it is changed.
pub(crate) const WINDOW_BYTES: u32 = 65_535;
/// The largest window.
pub(crate) const WINDOW_BYTES_MAX: u32 = (1 << 31) - 1;

/// Frame types.
pub(crate) mod kind {
    pub(crate) const DATA: u8 = 0;
    pub(crate) const HEADERS: u8 = 1;
    pub(crate) const RST_STREAM: u8 = 3;
    pub(crate) const SETTINGS: u8 = 4;
    pub(crate) const PUSH_PROMISE: u8 = 5;
    pub(crate) const PING: u8 = 6;
    pub(crate) const GOAWAY: u8 = 7;
    pub(crate) const WINDOW_UPDATE: u8 = 8;
    pub(crate) const CONTINUATION: u8 = 9;
}

/// Flags; which of them a frame may have depends on its type.
pub(crate) mod flag {
    pub(crate) const ACK: u8 = 1;
    pub(crate) const END_STREAM: u8 = 1;
    pub(crate) const END_HEADERS: u8 = 4;
    pub(crate) const PADDED: u8 = 8;
    pub(crate) const PRIORITY: u8 = 0x20;
}

/// Names of settings.
pub(crate) mod setting {
    pub(crate) const HEADER_TABLE_SIZE: u16 = 1;
    pub(crate) const ENABLE_PUSH: u16 = 2;
    pub(crate) const MAX_CONCURRENT_STREAMS: u16 = 3;
    pub(crate) const INITIAL_WINDOW_SIZE: u16 = 4;
    pub(crate) const MAX_FRAME_SIZE: u16 = 5;
}

/// One frame in the buffer it was read into.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Frame<'a> {
    pub(crate) kind: u8,
    pub(crate) flags: u8,
    pub(crate) stream: u32,
    pub(crate) payload: &'a [u8],
}

impl<'a> Frame<'a> {
    /// The frame that the bytes begin with and how many it takes; none if it is not complete.
    pub(crate) fn take(bytes: &'a [u8]) -> Result<Option<(Frame<'a>, usize)>> {
        let Some(([high, mid, low, kind, flags, stream @ ..], rest)) =
            bytes.split_first_chunk::<HEAD_BYTES>()
        else {
            return Ok(None);
        };
        let length = u32::from_be_bytes([0, *high, *mid, *low]) as usize;
        ensure!(
            length <= PAYLOAD_BYTES_MAX,
            "the peer sends a frame of `{length}` bytes; {PAYLOAD_BYTES_MAX} are the most that HTTP/2 allows here"
        );
        let stream = u32::from_be_bytes(*stream) & WINDOW_BYTES_MAX;
        Ok(rest
            .get(..length)
            .map(|payload| (Frame { kind: *kind, flags: *flags, stream, payload }, HEAD_BYTES + length)))
    }

    /// Whether a flag is set.
    pub(crate) fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// The payload of DATA or HEADERS without padding and priority.
    pub(crate) fn content(&self) -> Result<&'a [u8]> {
        let mut content = self.payload;
        if self.has(flag::PADDED) {
            let Some((padding, rest)) = content.split_first() else {
                bail!("the peer sends a padded frame without its length");
            };
            let Some(length) = rest.len().checked_sub(usize::from(*padding)) else {
                bail!("the peer sends a frame that is all padding and more");
            };
            content = rest.get(..length).unwrap_or_default();
        }
        if self.kind == kind::HEADERS && self.has(flag::PRIORITY) {
            let Some(rest) = content.get(5..) else {
                bail!("the peer sends a priority that is cut off");
            };
            content = rest;
        }
        Ok(content)
    }

    /// The 32-bit number that the payload begins with.
    pub(crate) fn number(&self) -> Result<u32> {
        match self.payload.first_chunk() {
            Some(number) => Ok(u32::from_be_bytes(*number)),
            None => bail!("the peer sends a frame of type `{}` that is cut off", self.kind),
        }
    }
}

/// Appends a frame.
pub(crate) fn push_frame(out: &mut Vec<u8>, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
    push_head(out, kind, flags, stream, payload.len());
    out.extend_from_slice(payload);
}

/// Appends the head of a frame whose payload has so many bytes.
pub(crate) fn push_head(out: &mut Vec<u8>, kind: u8, flags: u8, stream: u32, length: usize) {
    let [_, length @ ..] = (length as u32).to_be_bytes();
    out.extend_from_slice(&length);
    out.extend_from_slice(&[kind, flags]);
    out.extend_from_slice(&stream.to_be_bytes());
}

/// Appends leave to send so many more bytes on the connection.
pub(crate) fn push_window_update(out: &mut Vec<u8>, bytes: u32) {
    push_frame(out, kind::WINDOW_UPDATE, 0, 0, &bytes.to_be_bytes());
}

/// The name of an error in RFC 9113, 7.
pub(crate) fn error_name(code: u32) -> &'static str {
    match code {
        0 => "NO_ERROR",
        1 => "PROTOCOL_ERROR",
        2 => "INTERNAL_ERROR",
        3 => "FLOW_CONTROL_ERROR",
        4 => "SETTINGS_TIMEOUT",
        5 => "STREAM_CLOSED",
        6 => "FRAME_SIZE_ERROR",
        7 => "REFUSED_STREAM",
        8 => "CANCEL",
        9 => "COMPRESSION_ERROR",
        10 => "CONNECT_ERROR",
        11 => "ENHANCE_YOUR_CALM",
        12 => "INADEQUATE_SECURITY",
        13 => "HTTP_1_1_REQUIRED",
        _ => "an error that HTTP/2 has not",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_read_as_it_is_written() {
        let mut bytes = Vec::new();
        push_frame(&mut bytes, kind::DATA, flag::END_STREAM, 7, b"body");
        assert_eq!(bytes, b"\0\0\x04\0\x01\0\0\0\x07body");
        for length in 0..bytes.len() {
            assert!(Frame::take(bytes.get(..length).unwrap()).unwrap().is_none(), "{length}");
        }
        let (frame, used) = Frame::take(&bytes).unwrap().unwrap();
        assert_eq!((used, frame.kind, frame.stream, frame.payload), (13, kind::DATA, 7, &b"body"[..]));
        assert!(frame.has(flag::END_STREAM) && !frame.has(flag::PADDED));
    }

    #[test]
    fn a_frame_that_is_too_long_is_refused_before_it_is_there() {
        assert!(Frame::take(b"\0\x40\0\0\0\0\0\0\x01").unwrap().is_none());
        assert!(Frame::take(b"\0\x40\x01\0\0\0\0\0\x01").is_err());
    }

    #[test]
    fn padding_and_priority_are_no_content() {
        for (kind, flags, payload, expected) in [
            (kind::DATA, 0, &b"ab"[..], Some(&b"ab"[..])),
            (kind::DATA, flag::PADDED, b"\x02ab\0\0", Some(b"ab")),
            (kind::DATA, flag::PADDED, b"\x02\0\0", Some(b"")),
            (kind::DATA, flag::PADDED, b"\x03\0\0", None),
            (kind::DATA, flag::PADDED, b"", None),
            (kind::HEADERS, flag::PRIORITY, b"\0\0\0\0\x10ab", Some(b"ab")),
            (kind::HEADERS, flag::PRIORITY | flag::PADDED, b"\x01\0\0\0\0\x10ab\0", Some(b"ab")),
            (kind::HEADERS, flag::PRIORITY, b"\0\0", None),
        ] {
            let frame = Frame { kind, flags, stream: 1, payload };
            assert_eq!(frame.content().ok(), expected, "{kind} {flags} {payload:?}");
        }
    }
}
