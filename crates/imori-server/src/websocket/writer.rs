//! The writing side of a WebSocket: sends each piece of the stream as a message, and control frames between messages.

use std::io::{self, ErrorKind, IoSlice};
use std::mem;
use std::str::from_utf8;
use std::sync::Mutex;
use std::task::{Context, Poll, Waker, ready};

use tungstenite::protocol::frame::coding::{CloseCode, Data, OpCode};
use tungstenite::protocol::frame::{CloseFrame, Frame, FrameHeader};

use crate::limits::{WEBSOCKET_CONTROL_BYTES_MAX, WEBSOCKET_MESSAGE_BYTES_MAX};
use crate::slots::unpoisoned;
use crate::tls::ByteStream;

/// The writing half of a WebSocket, used only by its own cell.
#[derive(Debug)]
pub(crate) struct FramedWriter {
    stream: ByteStream,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Bytes to write before the payload: control frames, then the message's header.
    head: Vec<u8>,
    /// Bytes of the current message not yet written.
    left: usize,
    /// Control frames to write after the current message.
    control: Vec<u8>,
    /// Send text messages if the payload is valid UTF-8.
    prefers_text: bool,
    /// A close frame has been queued; nothing follows it.
    is_closing: bool,
    /// Wakes the connection's task to write control frames that the socket did not take.
    waker: Option<Waker>,
}

impl FramedWriter {
    pub(super) fn new(stream: ByteStream) -> FramedWriter {
        FramedWriter { stream, state: Mutex::default() }
    }

    /// Writes as much of the stream as the socket takes now.
    pub(crate) fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        let mut state = unpoisoned(self.state.lock());
        if state.left == 0 {
            state.begin_message(bytes)?;
        }
        let payload = bytes.get(..state.left).unwrap_or(bytes);
        let mut written = 0;
        while written == 0 && !payload.is_empty() {
            let sent = self.stream.try_write_vectored(&[IoSlice::new(&state.head), IoSlice::new(payload)])?;
            if sent == 0 {
                return Ok(0);
            }
            let of_head = sent.min(state.head.len());
            state.head.drain(..of_head);
            written = sent - of_head;
        }
        state.left -= written;
        if state.left == 0 && !state.control.is_empty() && !self.write_control(&mut state)? {
            state.waker.iter().for_each(Waker::wake_by_ref);
        }
        Ok(written)
    }

    /// Ready once every control frame that can be written now is written. The task has to poll this while there may
    /// be some.
    pub(super) fn poll_control(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            {
                let mut state = unpoisoned(self.state.lock());
                if self.write_control(&mut state)? {
                    if !state.waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
                        state.waker = Some(cx.waker().clone());
                    }
                    return Poll::Ready(Ok(()));
                }
            }
            ready!(self.stream.poll_writable(cx))?;
        }
    }

    /// Queues a pong. Ignores pings of a client that lets too many pongs pile up.
    pub(super) fn pong(&self, payload: Vec<u8>) {
        let mut state = unpoisoned(self.state.lock());
        if state.control.len() < WEBSOCKET_CONTROL_BYTES_MAX {
            state.say(Frame::pong(payload));
        }
    }

    /// Sends a close frame after everything written, and closes this side. Nothing follows.
    pub(super) fn close(&self, code: CloseCode, reason: &str) {
        let mut state = unpoisoned(self.state.lock());
        if state.is_closing {
            return;
        }
        state.say(Frame::close(Some(CloseFrame { code, reason: reason.into() })));
        state.is_closing = true;
        match self.write_control(&mut state) {
            Ok(true) => {}
            Ok(false) => state.waker.iter().for_each(Waker::wake_by_ref),
            // A peer that is already gone needs no close frame.
            Err(_) => {}
        }
    }

    /// Sets whether messages are text if their payload is valid UTF-8.
    pub(super) fn prefer_text(&self, prefers_text: bool) {
        unpoisoned(self.state.lock()).prefers_text = prefers_text;
    }

    /// Writes control frames, unless a message is in progress; false if the socket did not take all of them.
    fn write_control(&self, state: &mut State) -> io::Result<bool> {
        if state.left > 0 {
            return Ok(true);
        }
        state.take_control();
        while !state.head.is_empty() {
            match self.stream.try_write(&state.head) {
                Ok(sent) => drop(state.head.drain(..sent)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        if state.is_closing {
            self.stream.shutdown();
        }
        Ok(true)
    }
}

impl State {
    fn begin_message(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.is_closing {
            return Err(ErrorKind::BrokenPipe.into());
        }
        let (kind, len) = message(bytes, self.prefers_text);
        let opcode = OpCode::Data(kind);
        let header =
            FrameHeader { is_final: true, rsv1: false, rsv2: false, rsv3: false, opcode, mask: None };
        self.take_control();
        header.format(len as u64, &mut self.head).expect("a vector takes all bytes");
        self.left = len;
        Ok(())
    }

    /// Moves queued control frames to the front; called between two messages.
    fn take_control(&mut self) {
        self.head.append(&mut mem::take(&mut self.control));
    }

    fn say(&mut self, frame: Frame) {
        frame.format(&mut self.control).expect("a vector takes all bytes");
    }
}

/// The opcode of the next message, and the number of bytes it carries.
fn message(bytes: &[u8], prefers_text: bool) -> (Data, usize) {
    let piece = bytes.get(..WEBSOCKET_MESSAGE_BYTES_MAX).unwrap_or(bytes);
    if !prefers_text {
        return (Data::Binary, piece.len());
    }
    match from_utf8(piece) {
        Ok(_) => (Data::Text, piece.len()),
        // The piece ends within a character, which the next message completes.
        Err(error) if error.error_len().is_none() && error.valid_up_to() > 0 => {
            (Data::Text, error.valid_up_to())
        }
        Err(_) => (Data::Binary, piece.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_text_only_where_it_is_wanted_and_can_be() {
        let max = WEBSOCKET_MESSAGE_BYTES_MAX;
        let crab = "🦀".as_bytes();
        let cut = [&vec![b'x'; max - 1], crab].concat();
        for (bytes, prefers_text, kind, len) in [
            (&b"plain"[..], false, Data::Binary, 5),
            (b"plain", true, Data::Text, 5),
            (crab, true, Data::Text, 4),
            (b"a\xffb", true, Data::Binary, 3),
            (b"a\xe2\x82", true, Data::Text, 1),
            (b"\xe2\x82", true, Data::Binary, 2),
            (&vec![b'x'; max + 1], true, Data::Text, max),
            (&vec![b'x'; max + 1], false, Data::Binary, max),
            (&cut, true, Data::Text, max - 1),
            (&cut, false, Data::Binary, max),
        ] {
            assert_eq!(message(bytes, prefers_text), (kind, len), "{} bytes", bytes.len());
        }
    }
}
