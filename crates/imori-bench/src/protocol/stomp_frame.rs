//! A broker's frame: the codec's view of the buffer, reduced to the headers that the load tool needs.
//!
//! Header values are not unescaped: those that are sent back, such as a reply address, must be
//! returned byte for byte.

use anyhow::{Result, bail};
use imori_stomp::codec::command::Command;

use crate::protocol::driver::text;

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
    pub(super) fn of(frame: &imori_stomp::codec::frame::Frame<'a>) -> Result<Frame<'a>> {
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
mod tests {
    use imori_client::stomp::Reader;
    use imori_stomp::limits::Limits;

    use super::*;

    const MESSAGE: &[u8] = b"MESSAGE\nsubscription:0\ncorrelation-id:c-1\nreply-to:/reply-queue/a\\cb\ncorrelation-id:no\ncontent-length:5\n\na\0b\nc\0";

    fn taken<T>(bytes: &[u8], see: impl FnOnce(&Frame<'_>) -> T) -> T {
        let mut reader = Reader::new(Limits::default());
        let (frame, used) = reader.take(bytes).unwrap().unwrap();
        assert_eq!(used, bytes.len(), "one frame and nothing else");
        see(&Frame::of(&frame.unwrap()).unwrap())
    }

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
    fn an_error_is_one_line() {
        taken(b"ERROR\nmessage:Bad CONNECT\n\nAccess\nrefused\n\0", |frame| {
            assert_eq!(frame.error_text(), "Bad CONNECT: Access refused");
        });
    }
}
