//! A session of TLS as a stream of bytes: one lock, no task of its own, and no byte that waits without a limit.

use std::cell::RefCell;
use std::io::{self, ErrorKind, IoSlice, Read as _, Write as _};
use std::mem;
use std::net::Shutdown;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker, ready};
use std::time::Instant;

use imori_core::certificate::Certificate;
use rustls::ServerConnection;
use tokio::net::TcpStream;
use tokio::net::tcp::OwnedWriteHalf;

use super::acceptor::TlsAcceptor;
use super::identity;
use crate::config::UserFrom;
use crate::limits::{TLS_DRY_RECORDS_MAX, TLS_DRY_RECORDS_WINDOW, TLS_READ_BYTES, TLS_READ_BYTES_MIN};
use crate::slots::unpoisoned;

/// Bytes of a record before its payload: RFC 8446, 5.1.
const RECORD_HEAD_BYTES: usize = 5;

thread_local! {
    /// Bytes that were read and not decrypted: one buffer for all sessions of a thread.
    static CIPHERTEXT: RefCell<Vec<u8>> = RefCell::new(vec![0; TLS_READ_BYTES]);
}

/// The broker's end of a session. Its connection's cell alone uses it.
#[derive(Debug)]
pub(crate) struct TlsSession {
    socket: Arc<OwnedWriteHalf>,
    user_from: UserFrom,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    tls: ServerConnection,
    /// Bytes of records that came while there was no room for what is in them.
    unread: Vec<u8>,
    record: Record,
    /// The client sends no more data.
    is_over: bool,
    /// Our side ends with what is written.
    is_closing: bool,
    is_shut: bool,
    has_failed: bool,
    /// Wakes the connection's task, which writes what the socket did not take.
    waker: Option<Waker>,
}

/// How far the records have come that the client sends.
#[derive(Debug, Default)]
struct Record {
    head: [u8; RECORD_HEAD_BYTES],
    head_len: usize,
    /// Bytes of the payload that have not come.
    left: usize,
    /// Records without data in this window of time, such as KeyUpdates.
    dry: u32,
    window_began: Option<Instant>,
}

/// Why there is no session.
#[derive(Debug)]
pub(crate) enum HandshakeError {
    /// The client left before it was done.
    Gone,
    /// The handshake did not come to an end in its time.
    TooLong,
    /// The client broke the rules, or either side refused the other.
    Refused(rustls::Error),
}

impl HandshakeError {
    /// The fault and how to mend it, for the log; `None` where the client just left.
    pub(crate) fn text(&self) -> Option<String> {
        let advice = match self {
            HandshakeError::Gone => return None,
            HandshakeError::TooLong => return Some(String::from("it did not come to an end in its time")),
            HandshakeError::Refused(error) => match error {
                rustls::Error::AlertReceived(_) => {
                    "; the client refuses this broker, so give it the CA of `tls.certificate`"
                }
                rustls::Error::NoCertificatesPresented => {
                    "; give the client a certificate of `tls.client_ca`"
                }
                rustls::Error::InvalidCertificate(_) => "; only certificates of `tls.client_ca` are taken",
                _ => "",
            },
        };
        let HandshakeError::Refused(error) = self else { return None };
        Some(format!("{error}{advice}"))
    }
}

impl TlsSession {
    /// A session that has not begun, on a socket that nothing was read from.
    pub(crate) fn new(
        acceptor: &TlsAcceptor,
        socket: Arc<OwnedWriteHalf>,
    ) -> Result<TlsSession, rustls::Error> {
        let (tls, user_from) = acceptor.accept()?;
        let state = State {
            tls,
            unread: Vec::new(),
            record: Record::default(),
            is_over: false,
            is_closing: false,
            is_shut: false,
            has_failed: false,
            waker: None,
        };
        Ok(TlsSession { socket, user_from, state: Mutex::new(state) })
    }

    /// The socket below.
    pub(super) fn socket(&self) -> &TcpStream {
        self.socket.as_ref().as_ref()
    }

    /// Goes on with the handshake until it is over, and gives the certificate that the client showed. `read` reads the
    /// socket.
    pub(crate) fn poll_handshake(
        &self,
        cx: &mut Context<'_>,
        mut read: impl FnMut(&mut Context<'_>, &mut [u8]) -> Poll<io::Result<usize>>,
    ) -> Poll<Result<Option<Certificate>, HandshakeError>> {
        loop {
            if ready!(self.poll_flush(cx)).is_err() {
                return Poll::Ready(Err(HandshakeError::Gone));
            }
            let mut state = unpoisoned(self.state.lock());
            if !state.tls.is_handshaking() {
                let first = state.tls.peer_certificates().and_then(<[_]>::first);
                return Poll::Ready(Ok(first.map(|der| identity::certificate(der, self.user_from))));
            }
            let fed = CIPHERTEXT.with_borrow_mut(|ciphertext| {
                let bytes = ready!(read(cx, ciphertext)).unwrap_or_default();
                let bytes = ciphertext.get(..bytes).filter(|bytes| !bytes.is_empty());
                let bytes = bytes.ok_or(HandshakeError::Gone)?;
                // What comes behind the handshake waits.
                Poll::Ready(state.decrypt(bytes, &mut []).map(|_| ()).map_err(HandshakeError::Refused))
            });
            if let Err(error) = ready!(fed) {
                // A client that speaks no TLS would not understand why (SECURITY LIM-04).
                if !matches!(error, HandshakeError::Refused(rustls::Error::InvalidMessage(_))) {
                    let _ = state.flush(&self.socket);
                }
                return Poll::Ready(Err(error));
            }
        }
    }

    /// Reads data into `room`; `read` reads the socket. 0 bytes where the client has closed its side.
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
            let fed = CIPHERTEXT.with_borrow_mut(|ciphertext| {
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

    /// Encrypts as much as there is room for, and writes that or lets it wait for the socket.
    pub(crate) fn write(&self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        let mut state = unpoisoned(self.state.lock());
        if state.is_closing || state.has_failed {
            return Err(ErrorKind::BrokenPipe.into());
        }
        // Until the socket has taken all that was encrypted, no more is.
        if !state.flush(&self.socket)? {
            return Err(ErrorKind::WouldBlock.into());
        }
        let accepted = state.tls.writer().write_vectored(pieces)?;
        state.flush_or_wake(&self.socket)?;
        Ok(accepted)
    }

    /// Ready once the socket has taken all that was encrypted. The task asks this in each of its turns.
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

    /// Says goodbye behind what is written already, and closes this side. Nothing follows.
    pub(crate) fn close(&self) {
        let mut state = unpoisoned(self.state.lock());
        if !state.is_closing {
            state.is_closing = true;
            state.tls.send_close_notify();
            // A peer that is gone already needs no goodbye.
            let _ = state.flush_or_wake(&self.socket);
        }
    }
}

impl State {
    /// Decrypts `bytes`, and puts data into `room`; gives how much that is. Records for which there is no room wait.
    fn feed(&mut self, bytes: &[u8], room: &mut [u8], socket: &OwnedWriteHalf) -> io::Result<usize> {
        let fed = self.decrypt(bytes, room);
        if fed.is_err() {
            self.has_failed = true;
        }
        // Answers of the session itself: tickets, alerts.
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

    /// Takes data that is decrypted.
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

    /// Writes what is encrypted; false where the socket does not take all.
    fn flush(&mut self, socket: &OwnedWriteHalf) -> io::Result<bool> {
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
            // A peer that is gone already needs no goodbye.
            let _ = socket2::SockRef::from(stream).shutdown(Shutdown::Write);
        }
        Ok(true)
    }
}

impl Record {
    /// Gives how many of `bytes` belong to the record under way, and whether they end it.
    fn advance(&mut self, bytes: &[u8]) -> (usize, bool) {
        let mut taken = 0;
        if self.head_len < RECORD_HEAD_BYTES {
            for (place, byte) in self.head.iter_mut().skip(self.head_len).zip(bytes) {
                *place = *byte;
                taken += 1;
            }
            self.head_len += taken;
            if self.head_len < RECORD_HEAD_BYTES {
                return (taken, false);
            }
            let [_, _, _, high, low] = self.head;
            self.left = usize::from(u16::from_be_bytes([high, low]));
        }
        let payload = self.left.min(bytes.len() - taken);
        self.left -= payload;
        if self.left == 0 {
            self.head_len = 0;
        }
        (taken + payload, self.left == 0)
    }

    /// Notes a record without data; tells whether there are too many of them (SECURITY LIM-04).
    fn is_dry_too_often(&mut self, now: Instant) -> bool {
        let began = *self.window_began.get_or_insert(now);
        if now.duration_since(began) >= TLS_DRY_RECORDS_WINDOW {
            self.window_began = Some(now);
            self.dry = 0;
        }
        self.dry += 1;
        self.dry > TLS_DRY_RECORDS_MAX
    }
}

/// A socket that takes what it can at once.
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn records_are_told_apart_however_their_bytes_come() {
        let bytes =
            [[23, 3, 3, 0, 2, b'a', b'b'].as_slice(), &[23, 3, 3, 0, 0], &[23, 3, 3, 0, 1, b'c']].concat();
        let ends = |pieces: &mut dyn Iterator<Item = &[u8]>| {
            let (mut record, mut at, mut ends) = (Record::default(), 0, Vec::new());
            for mut piece in pieces {
                while !piece.is_empty() {
                    let (len, is_whole) = record.advance(piece);
                    at += len;
                    piece = &piece[len..];
                    ends.extend(is_whole.then_some(at));
                }
            }
            ends
        };
        for size in 1..=bytes.len() {
            assert_eq!(ends(&mut bytes.chunks(size)), [7, 12, 18], "in pieces of {size}");
        }
    }

    /// SECURITY LIM-04.
    #[test]
    fn records_without_data_are_bounded_in_a_second() {
        let (mut record, start) = (Record::default(), Instant::now());
        for _ in 0..TLS_DRY_RECORDS_MAX {
            assert!(!record.is_dry_too_often(start));
        }
        assert!(record.is_dry_too_often(start + TLS_DRY_RECORDS_WINDOW - Duration::from_millis(1)));
        assert!(!record.is_dry_too_often(start + TLS_DRY_RECORDS_WINDOW));
    }
}
