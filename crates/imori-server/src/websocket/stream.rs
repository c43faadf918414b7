//! A connection that was upgraded, from its own cell's side. Frames that were read are undone, pings are
//! answered, and a client that breaks the rules is told so.

use std::sync::Arc;
use std::task::{Context, Poll};

use tungstenite::protocol::frame::coding::CloseCode;

use super::decode::{ControlFrame, Decoder, Violation};
use super::writer::FramedWriter;
use crate::tls::ByteStream;

/// A WebSocket as a stream of bytes, between the socket and the protocol.
#[derive(Debug)]
pub(crate) struct WebSocketStream {
    decoder: Decoder,
    writer: Arc<FramedWriter>,
    /// The bytes that came behind the request for the upgrade.
    early: Vec<u8>,
    /// The client may be answered in text.
    knows_text: bool,
    /// Why the client is not listened to any more.
    violation: Option<Violation>,
    /// The last read filled its room: others have a turn before the next.
    was_full: bool,
}

impl WebSocketStream {
    /// A connection whose upgrade was answered; `early` came behind the request for it.
    pub(crate) fn new(
        stream: ByteStream,
        early: Vec<u8>,
        message_bytes_max: u64,
        knows_text: bool,
    ) -> WebSocketStream {
        WebSocketStream {
            decoder: Decoder::new(message_bytes_max),
            writer: Arc::new(FramedWriter::new(stream)),
            early,
            knows_text,
            violation: None,
            was_full: false,
        }
    }

    /// Gives the writer of the other direction.
    pub(crate) fn writer(&self) -> &Arc<FramedWriter> {
        &self.writer
    }

    /// To be called before a read: what is to be said of it instead, if something is. Pending where
    /// others have a turn first.
    pub(crate) fn instead_of_read(&mut self, cx: &mut Context<'_>) -> Option<Poll<usize>> {
        // Whether it is written, or met an error, the reading side tells soon enough.
        let _ = self.writer.poll_control(cx);
        if self.decoder.is_closed() {
            return Some(Poll::Ready(0));
        }
        if std::mem::take(&mut self.was_full) {
            return Some(Poll::Pending);
        }
        None
    }

    /// Takes what came before the first read, if there is room for it.
    pub(crate) fn take_early(&mut self, room: &mut [u8]) -> Option<usize> {
        let early = std::mem::take(&mut self.early);
        let front = room.get_mut(..early.len()).filter(|front| !front.is_empty())?;
        front.copy_from_slice(&early);
        Some(early.len())
    }

    /// Undoes what was read: so many bytes at the front are the protocol's. Pending where none of it was, so
    /// that another turn is due, and 0 where the client has closed.
    pub(crate) fn decode(
        &mut self,
        bytes: &mut [u8],
        was_full: bool,
        cx: &mut Context<'_>,
    ) -> Result<Poll<usize>, Violation> {
        self.was_full = was_full;
        if self.violation.is_some() {
            return Ok(Poll::Ready(bytes.len()));
        }
        let writer = &self.writer;
        let mut has_said = false;
        let decoded = self.decoder.decode(bytes, |said| {
            has_said = true;
            match said {
                ControlFrame::Ping(payload) => writer.pong(payload),
                ControlFrame::Close(code) => {
                    writer.close(code.map_or(CloseCode::Normal, CloseCode::from), "");
                }
            }
        });
        let kept = match decoded {
            Ok(kept) => kept,
            Err(violation) => {
                self.violation = Some(violation);
                return Err(violation);
            }
        };
        if self.knows_text {
            writer.prefer_text(self.decoder.is_text());
        }
        if has_said {
            let _ = writer.poll_control(cx);
        }
        if kept > 0 || self.decoder.is_closed() {
            return Ok(Poll::Ready(kept));
        }
        Ok(Poll::Pending)
    }

    /// All is written: says goodbye and closes this side.
    pub(crate) fn close(&self, is_stopping: bool) {
        match self.violation {
            Some(violation) => self.writer.close(violation.code(), &violation.to_string()),
            None if is_stopping => self.writer.close(CloseCode::Away, ""),
            None => self.writer.close(CloseCode::Normal, ""),
        }
    }
}
