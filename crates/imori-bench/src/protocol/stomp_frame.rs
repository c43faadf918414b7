//! Decodes frames from a broker: the codec's view of the buffer, reduced to the headers that a client needs.
//!
//! Header values are not unescaped: those that are sent back, such as a reply address, must be
//! returned byte for byte.

use anyhow::{Result, anyhow, bail};
use imori_stomp::codec::command::Command;
use imori_stomp::codec::decode::{Decoder, Step};
use imori_stomp::codec::frame::HeaderTable;
use imori_stomp::codec::version::Version;
use imori_stomp::limits::Limits;

use crate::limits::FRAME_BYTES_MAX;
use crate::protocol::driver::text;

/// The error for bytes that no STOMP broker would send.
const NOT_STOMP: &str = "what the broker sends is not STOMP; correct scheme or port of `--url`";

/// Decodes the bytes of one connection; connections of a thread may share the header table.
#[derive(Debug)]
pub(super) struct FrameReader {
    decoder: Decoder,
}

impl FrameReader {
    /// Creates a reader at the beginning of a frame.
    pub(super) fn new() -> FrameReader {
        let limits = Limits { body_bytes_max: FRAME_BYTES_MAX, ..Limits::default() };
        let mut decoder = Decoder::new(limits);
        decoder.connected(Version::V12);
        FrameReader { decoder }
    }

    /// Decodes the first frame and returns it with its length; `None` if it is incomplete.
    ///
    /// The next call must then pass the same bytes again, with more appended.
    pub(super) fn take<'a>(
        &mut self,
        bytes: &'a [u8],
        table: &'a mut HeaderTable,
    ) -> Result<Option<(Frame<'a>, usize)>> {
        // Line ends between frames are heart-beats.
        let beats = bytes.iter().take_while(|byte| matches!(byte, b'\n' | b'\r')).count();
        let bytes = bytes.get(beats..).unwrap_or_default();
        // The codec's errors advise a client developer; here the user has to correct the URL.
        match self.decoder.decode(bytes, table).map_err(|_| anyhow!("{NOT_STOMP}"))? {
            Step::Frame { frame, consumed } => Ok(Some((Frame::of(&frame)?, beats + consumed))),
            Step::Noise { .. } | Step::Incomplete { .. } => Ok(None),
        }
    }
}

/// A frame in the buffer it was read into; an absent header is empty.
#[derive(Debug, Clone, Copy)]
pub(super) struct Frame<'a> {
    /// The command of the frame.
    pub(super) command: Command,
    /// `ack`: the token for the acknowledgement, in STOMP 1.2.
    pub(super) ack: &'a [u8],
    /// `correlation-id`.
    pub(super) correlation_id: &'a [u8],
    /// `imori-level`: the level of safety of a confirmed message.
    pub(super) level: &'a [u8],
    /// `message`: the short text of an error.
    pub(super) message: &'a [u8],
    /// `receipt-id`.
    pub(super) receipt_id: &'a [u8],
    /// `redelivered`.
    pub(super) redelivered: &'a [u8],
    /// `reply-to`.
    pub(super) reply_to: &'a [u8],
    /// `server`: name and version of the broker.
    pub(super) server: &'a [u8],
    /// `version` of the protocol.
    pub(super) version: &'a [u8],
    /// The body.
    pub(super) body: &'a [u8],
}

impl<'a> Frame<'a> {
    fn of(frame: &imori_stomp::codec::frame::Frame<'a>) -> Result<Frame<'a>> {
        let command = frame.command;
        if !matches!(command, Command::Message | Command::Receipt | Command::Connected | Command::Error) {
            bail!("the broker sends {command:?}, which is no command of a server");
        }
        let mut view = Frame {
            command,
            ack: &[],
            correlation_id: &[],
            level: &[],
            message: &[],
            receipt_id: &[],
            redelivered: &[],
            reply_to: &[],
            server: &[],
            version: &[],
            body: frame.body,
        };
        for header in frame.headers.iter() {
            let place = match header.name {
                b"ack" => &mut view.ack,
                b"correlation-id" => &mut view.correlation_id,
                b"imori-level" => &mut view.level,
                b"message" => &mut view.message,
                b"receipt-id" => &mut view.receipt_id,
                b"redelivered" => &mut view.redelivered,
                b"reply-to" => &mut view.reply_to,
                b"server" => &mut view.server,
                b"version" => &mut view.version,
                _ => continue,
            };
            // STOMP 1.2, Repeated Header Entries: only the first counts.
            if place.is_empty() {
                *place = header.value;
            }
        }
        Ok(view)
    }

    /// Formats an ERROR frame as one line.
    pub(super) fn error_text(&self) -> String {
        let body = text(self.body);
        match (self.message.is_empty(), body.is_empty()) {
            (_, true) => text(self.message),
            (true, false) => body,
            (false, false) => format!("{}: {body}", text(self.message)),
        }
    }
}

#[cfg(test)]
fn taken<T>(bytes: &[u8], see: impl FnOnce(&Frame<'_>) -> T) -> T {
    let mut table = HeaderTable::default();
    let (frame, used) = FrameReader::new().take(bytes, &mut table).unwrap().unwrap();
    assert_eq!(used, bytes.len(), "one frame and nothing else");
    see(&frame)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MESSAGE: &[u8] = b"MESSAGE\nsubscription:0\ncorrelation-id:c-1\nreply-to:/reply-queue/a\\cb\ncorrelation-id:no\ncontent-length:5\n\na\0b\nc\0";

    #[test]
    fn a_message_is_read_as_it_stands_on_the_wire() {
        taken(MESSAGE, |frame| {
            assert_eq!(frame.command, Command::Message);
            assert_eq!(frame.correlation_id, b"c-1", "the first of a repeated header counts");
            assert_eq!(frame.reply_to, b"/reply-queue/a\\cb");
            assert_eq!(frame.body, b"a\0b\nc");
        });
    }

    #[test]
    fn a_frame_may_come_byte_by_byte() {
        let (mut reader, mut table) = (FrameReader::new(), HeaderTable::default());
        for length in 0..MESSAGE.len() {
            let prefix = MESSAGE.get(..length).unwrap();
            assert!(reader.take(prefix, &mut table).unwrap().is_none(), "{length} bytes");
        }
        assert!(reader.take(MESSAGE, &mut table).unwrap().is_some());
    }

    #[test]
    fn heart_beats_and_carriage_returns_are_stepped_over() {
        let bytes = b"\n\r\n\nRECEIPT\r\nreceipt-id:7\r\n\r\n\0\nMESS";
        let mut table = HeaderTable::default();
        let (frame, used) = FrameReader::new().take(bytes, &mut table).unwrap().unwrap();
        assert_eq!((frame.command, used), (Command::Receipt, bytes.len() - 5));
    }

    #[test]
    fn what_is_no_frame_of_a_broker_ends_the_run() {
        for bytes in [
            &b"HTTP/1.1 400 Bad Request\r\n"[..],
            b"SEND\n\n\0",
            b"MESSAGE\nno colon\n\n\0",
            b"MESSAGE\ncontent-length:x\n\n\0",
            b"MESSAGE\ncontent-length:1\n\nab\0",
            b"MESSAGE\ncontent-length:99999999999\n\n",
        ] {
            assert!(FrameReader::new().take(bytes, &mut HeaderTable::default()).is_err(), "{}", text(bytes));
        }
    }

    #[test]
    fn an_error_is_one_line() {
        taken(b"ERROR\nmessage:Bad CONNECT\n\nAccess\nrefused\n\0", |frame| {
            assert_eq!(frame.error_text(), "Bad CONNECT: Access refused");
        });
    }
}
