//! An upgraded connection, on its own cell: decodes frames, answers pings, and reports violations to the client.

use std::sync::Arc;
use std::task::{Context, Poll};

use tungstenite::protocol::frame::coding::CloseCode;

use super::decode::{ControlFrame, Decoder, Violation};
use super::writer::FramedWriter;
use crate::tls::ByteStream;

/// A WebSocket as a byte stream between socket and protocol.
#[derive(Debug)]
pub(crate) struct WebSocketStream {
    decoder: Decoder,
    writer: Arc<FramedWriter>,
    /// Bytes received after the upgrade request.
    early: Vec<u8>,
    /// The protocol can answer in text messages.
    knows_text: bool,
    /// The violation that ended reading.
    violation: Option<Violation>,
    /// The last read filled the buffer, so other connections come before the next read.
    was_full: bool,
}

impl WebSocketStream {
    /// Wraps a connection after its upgrade; `early` was received after the request.
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

    /// The writer of the other direction.
    pub(crate) fn writer(&self) -> &Arc<FramedWriter> {
        &self.writer
    }

    /// Called before each read; `Some` replaces the read. Pending gives other connections a turn first.
    pub(crate) fn instead_of_read(&mut self, cx: &mut Context<'_>) -> Option<Poll<usize>> {
        // The next read reports an error.
        let _ = self.writer.poll_control(cx);
        if self.decoder.is_closed() {
            return Some(Poll::Ready(0));
        }
        if std::mem::take(&mut self.was_full) {
            return Some(Poll::Pending);
        }
        None
    }

    /// Takes the bytes received with the request, as many as fit.
    pub(crate) fn take_early(&mut self, room: &mut [u8]) -> Option<usize> {
        let early = self.early.drain(..self.early.len().min(room.len()));
        let front = room.get_mut(..early.len()).filter(|front| !front.is_empty())?;
        front.copy_from_slice(early.as_slice());
        Some(early.len())
    }

    /// Decodes what was read, in place; returns the number of payload bytes at the front. Pending if there is no
    /// payload and another turn is due; 0 if the client has closed.
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

    /// Sends a close frame after everything written, and closes this side.
    pub(crate) fn close(&self, is_stopping: bool) {
        match self.violation {
            Some(violation) => self.writer.close(violation.code(), &violation.to_string()),
            None if is_stopping => self.writer.close(CloseCode::Away, ""),
            None => self.writer.close(CloseCode::Normal, ""),
        }
    }
}
