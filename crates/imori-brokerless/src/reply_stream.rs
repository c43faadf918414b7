//! One reply of gRPC as it comes: headers, a message in pieces, and at the end its status.

use anyhow::{Result, bail, ensure};
use imori_bench::driver::text;

use crate::http2::WINDOW_BYTES;

/// Bytes before a message: whether it is compressed, and its length.
pub(crate) const PREFIX_BYTES: usize = 5;

/// A reply that has not ended.
#[derive(Debug, Default)]
pub(crate) struct ReplyStream {
    /// The message with its prefix.
    pub(crate) bytes: Vec<u8>,
    status: Option<u32>,
    message: String,
}

impl ReplyStream {
    /// Takes one header, of those before the message or after it.
    pub(crate) fn header(&mut self, name: &[u8], value: &[u8]) {
        match name {
            b":status" if value != b"200" => {
                self.status = Some(UNKNOWN);
                self.message = format!("HTTP status {}", text(value));
            }
            b"grpc-status" => {
                let status = std::str::from_utf8(value).ok().and_then(|value| value.parse().ok());
                self.status = Some(status.unwrap_or(UNKNOWN));
            }
            b"grpc-message" if !value.is_empty() => self.message = text(value),
            _ => {}
        }
    }

    /// Takes a piece of the message.
    pub(crate) fn data(&mut self, piece: &[u8]) -> Result<()> {
        ensure!(
            self.bytes.len().saturating_add(piece.len()) <= WINDOW_BYTES as usize,
            "the peer sends more on a stream than its window of `{WINDOW_BYTES}` bytes"
        );
        self.bytes.extend_from_slice(piece);
        Ok(())
    }

    /// Whether the call has gone well; else what the peer says of it.
    pub(crate) fn outcome(&self) -> Result<(), String> {
        match self.status {
            Some(0) => Ok(()),
            Some(status) => {
                Err(format!("a call ends with status {} ({status}): {}", status_name(status), self.message))
            }
            None => Err("a call ends without a status".to_owned()),
        }
    }

    /// Forgets everything but the memory.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.status = None;
        self.message.clear();
    }

    /// The message, which has to be one and plain.
    pub(crate) fn body(&self) -> Result<&[u8]> {
        let Some(([compressed, length @ ..], body)) = self.bytes.split_first_chunk::<PREFIX_BYTES>() else {
            bail!("the peer ends a call well without a message");
        };
        ensure!(*compressed == 0, "the peer compresses a message, which nobody asked for");
        ensure!(
            u32::from_be_bytes(*length) as usize == body.len(),
            "the peer sends a message of `{}` bytes and says that it has others",
            body.len()
        );
        Ok(body)
    }
}

const UNKNOWN: u32 = 2;

fn status_name(status: u32) -> &'static str {
    match status {
        1 => "CANCELLED",
        3 => "INVALID_ARGUMENT",
        4 => "DEADLINE_EXCEEDED",
        5 => "NOT_FOUND",
        6 => "ALREADY_EXISTS",
        7 => "PERMISSION_DENIED",
        8 => "RESOURCE_EXHAUSTED",
        9 => "FAILED_PRECONDITION",
        10 => "ABORTED",
        11 => "OUT_OF_RANGE",
        12 => "UNIMPLEMENTED",
        13 => "INTERNAL",
        14 => "UNAVAILABLE",
        15 => "DATA_LOSS",
        16 => "UNAUTHENTICATED",
        _ => "UNKNOWN",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(headers: &[(&str, &str)], bytes: &[u8]) -> ReplyStream {
        let mut stream = ReplyStream::default();
        for (name, value) in headers {
            stream.header(name.as_bytes(), value.as_bytes());
        }
        stream.data(bytes).unwrap();
        stream
    }

    #[test]
    fn a_status_says_how_a_call_went() {
        for (headers, expected) in [
            (&[(":status", "200"), ("grpc-status", "0"), ("grpc-message", "")][..], Ok(())),
            (&[(":status", "200")], Err("a call ends without a status")),
            (
                &[("grpc-status", "12"), ("grpc-message", "unknown method")],
                Err("a call ends with status UNIMPLEMENTED (12): unknown method"),
            ),
            (&[("grpc-status", "x")], Err("a call ends with status UNKNOWN (2): ")),
            (&[(":status", "404")], Err("a call ends with status UNKNOWN (2): HTTP status 404")),
        ] {
            assert_eq!(stream(headers, b"").outcome(), expected.map_err(str::to_owned));
        }
    }

    #[test]
    fn a_message_is_one_plain_and_whole() {
        for (bytes, expected) in [
            (&b"\0\0\0\0\x022 "[..], Some(&b"2 "[..])),
            (b"\0\0\0\0\0", Some(b"")),
            (b"\0\0\0\0", None),
            (b"", None),
            (b"\x01\0\0\0\x022 ", None),
            (b"\0\0\0\0\x032 ", None),
            (b"\0\0\0\0\x012 ", None),
        ] {
            assert_eq!(stream(&[], bytes).body().ok(), expected, "{bytes:?}");
        }
    }

    #[test]
    fn a_stream_keeps_to_its_window() {
        let mut stream = stream(&[], &vec![0; WINDOW_BYTES as usize]);
        assert!(stream.data(b"").is_ok());
        assert!(stream.data(b"x").is_err());
        stream.clear();
        assert!(stream.data(b"x").is_ok());
    }
}
