//! A TLS session as a byte stream: one lock, no task, and bounded buffers.
//!
//! It starts after the handshake, which passes its state from thread to thread without a lock.

use std::cell::RefCell;
use std::io::{self, ErrorKind, IoSlice, Read as _, Write as _};
use std::mem;
use std::net::Shutdown;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker, ready};
use std::time::Instant;

use rustls::ServerConnection;
use rustls::pki_types::CertificateDer;
use tokio::net::TcpStream;
use tokio::net::tcp::OwnedWriteHalf;

use super::record::Record;
use crate::limits::{TLS_READ_BYTES, TLS_READ_BYTES_MIN};
use crate::slots::unpoisoned;

thread_local! {
    /// Receives ciphertext; one buffer for all sessions of a thread.
    static CIPHERTEXT: RefCell<Vec<u8>> = RefCell::new(vec![0; TLS_READ_BYTES]);
}

/// Lends the thread's buffer for ciphertext.
pub(super) fn with_ciphertext<R>(f: impl FnOnce(&mut [u8]) -> R) -> R {
    CIPHERTEXT.with_borrow_mut(|ciphertext| f(ciphertext))
}

/// The broker's end of a session, used only by the connection's cell.
#[derive(Debug)]
pub(crate) struct TlsSession {
    socket: Arc<OwnedWriteHalf>,
    state: Mutex<State>,
}

/// The state of both directions, from the start of the handshake.
#[derive(Debug)]
pub(super) struct State {
    tls: ServerConnection,
    /// Records received while there was no room for their data.
    unread: Vec<u8>,
    record: Record,
    /// The client will send no more data.
    is_over: bool,
    /// The broker's side ends after the data already written.
    is_closing: bool,
    is_shut: bool,
    has_failed: bool,
    /// Wakes the connection's task to write what the socket did not take.
    waker: Option<Waker>,
}

impl TlsSession {
    /// A session after its handshake.
    pub(super) fn new(socket: Arc<OwnedWriteHalf>, state: State) -> TlsSession {
        TlsSession { socket, state: Mutex::new(state) }
    }

    /// The socket below.
    pub(super) fn socket(&self) -> &TcpStream {
        self.socket.as_ref().as_ref()
    }

    /// Reads data into `room`; `read` reads the socket. Returns 0 once the client has closed its side.
    pub(crate) fn poll_read(
        &self,
        room: &mut [u8],
        mut read: impl FnMut(&mut [u8]) -> Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        let mut state = unpoisoned(self.state.lock());
        if state.has_failed {
            return Poll::Ready(Err(ErrorKind::ConnectionAborted.into()));
        }
        let unread = mem::take(&mut state.unread);
        let mut filled = state.feed(&unread, room, &self.socket)?;
        while filled == 0 && !state.is_over && !room.is_empty() {
            let fed = with_ciphertext(|ciphertext| {
                let wanted = room.len().max(TLS_READ_BYTES_MIN).min(ciphertext.len());
                let ciphertext = ciphertext.get_mut(..wanted).unwrap_or_default();
                let bytes = ready!(read(ciphertext))?;
                state.is_over |= bytes == 0;
                let bytes = ciphertext.get(..bytes).unwrap_or_default();
                Poll::Ready(state.feed(bytes, room, &self.socket))
            });
            filled = ready!(fed)?;
        }
        Poll::Ready(Ok(filled))
    }

    /// Encrypts as much as fits, and writes it now or once the socket takes it.
    pub(crate) fn write(&self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        let mut state = unpoisoned(self.state.lock());
        if state.is_closing || state.has_failed {
            return Err(ErrorKind::BrokenPipe.into());
        }
        // Nothing more is encrypted until the socket has taken everything before.
        if !state.flush(&self.socket)? {
            return Err(ErrorKind::WouldBlock.into());
        }
        let accepted = state.tls.writer().write_vectored(pieces)?;
        state.flush_or_wake(&self.socket)?;
        Ok(accepted)
    }

    /// Ready once the socket has taken all ciphertext. The task polls this in each of its turns.
    pub(crate) fn poll_flush(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            {
                let mut state = unpoisoned(self.state.lock());
                if !state.waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
                    state.waker = Some(cx.waker().clone());
                }
                if state.flush(&self.socket)? {
                    return Poll::Ready(Ok(()));
                }
            }
            ready!(self.socket().poll_write_ready(cx))?;
        }
    }

    /// Sends close_notify after the data already written, and closes this side.
    pub(crate) fn close(&self) {
        let mut state = unpoisoned(self.state.lock());
        if !state.is_closing {
            state.is_closing = true;
            state.tls.send_close_notify();
            // A peer that is already gone needs no close_notify.
            let _ = state.flush_or_wake(&self.socket);
        }
    }
}

impl State {
    /// The state before anything is read or written.
    pub(super) fn new(tls: ServerConnection) -> State {
        State {
            tls,
            unread: Vec::new(),
            record: Record::default(),
            is_over: false,
            is_closing: false,
            is_shut: false,
            has_failed: false,
            waker: None,
        }
    }

    /// Whether the handshake is still in progress.
    pub(super) fn is_handshaking(&self) -> bool {
        self.tls.is_handshaking()
    }

    /// The client's certificate, if it sent one.
    pub(super) fn client_certificate(&self) -> Option<&CertificateDer<'static>> {
        self.tls.peer_certificates().and_then(<[_]>::first)
    }

    /// Advances the handshake with these bytes; bytes after its end are kept for the session.
    pub(super) fn take_records(&mut self, bytes: &[u8]) -> Result<(), rustls::Error> {
        self.decrypt(bytes, &mut []).map(drop)
    }

    /// Ready once the socket has taken all handshake records.
    pub(super) fn poll_written(
        &mut self,
        socket: &OwnedWriteHalf,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        while !self.flush(socket)? {
            let stream: &TcpStream = socket.as_ref();
            ready!(stream.poll_write_ready(cx))?;
        }
        Poll::Ready(Ok(()))
    }

    /// Decrypts `bytes` into `room` and returns the amount of data. Keeps records that do not fit.
    fn feed(&mut self, bytes: &[u8], room: &mut [u8], socket: &OwnedWriteHalf) -> io::Result<usize> {
        let fed = self.decrypt(bytes, room);
        if fed.is_err() {
            self.has_failed = true;
        }
        // Records of TLS itself: tickets, alerts.
        if self.tls.wants_write() {
            self.flush_or_wake(socket)?;
        }
        fed.map_err(io::Error::other)
    }

    fn decrypt(&mut self, mut bytes: &[u8], room: &mut [u8]) -> Result<usize, rustls::Error> {
        let mut filled = self.take(room);
        while !bytes.is_empty() {
            let was_handshaking = self.tls.is_handshaking();
            if filled == room.len() && !was_handshaking {
                self.unread.extend_from_slice(bytes);
                break;
            }
            let (len, is_whole) = self.record.advance(bytes);
            let (mut piece, behind) = bytes.split_at(len.min(bytes.len()));
            bytes = behind;
            while !piece.is_empty() {
                let general = |error: io::Error| rustls::Error::General(error.to_string());
                if self.tls.read_tls(&mut piece).map_err(general)? == 0 {
                    break;
                }
            }
            self.is_over |= self.tls.process_new_packets()?.peer_has_closed();
            let taken = self.take(room.get_mut(filled..).unwrap_or_default());
            filled += taken;
            if is_whole && taken == 0 && !was_handshaking && self.record.is_dry_too_often(Instant::now()) {
                return Err(rustls::Error::General(String::from("too many records without data")));
            }
        }
        Ok(filled)
    }

    /// Moves decrypted data into `room`.
    fn take(&mut self, room: &mut [u8]) -> usize {
        if room.is_empty() || self.tls.is_handshaking() {
            return 0;
        }
        self.tls.reader().read(room).unwrap_or_default()
    }

    fn flush_or_wake(&mut self, socket: &OwnedWriteHalf) -> io::Result<()> {
        if !self.flush(socket)? {
            self.waker.iter().for_each(Waker::wake_by_ref);
        }
        Ok(())
    }

    /// Writes ciphertext; false if the socket did not take all of it.
    pub(super) fn flush(&mut self, socket: &OwnedWriteHalf) -> io::Result<bool> {
        while self.tls.wants_write() {
            match self.tls.write_tls(&mut SocketWriter(socket)) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        if self.is_closing && !self.is_shut {
            self.is_shut = true;
            let stream: &TcpStream = socket.as_ref();
            // A peer that is already gone may have shut the socket down.
            let _ = socket2::SockRef::from(stream).shutdown(Shutdown::Write);
        }
        Ok(true)
    }
}

/// Writes to a socket without waiting.
struct SocketWriter<'a>(&'a OwnedWriteHalf);

impl io::Write for SocketWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.try_write(bytes)
    }

    fn write_vectored(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        self.0.try_write_vectored(pieces)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
