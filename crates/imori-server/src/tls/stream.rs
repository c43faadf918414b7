//! A connection's byte stream, with or without TLS.

use std::io::{self, IoSlice};
use std::net::Shutdown;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::net::TcpStream;
use tokio::net::tcp::OwnedWriteHalf;

use super::session::TlsSession;

/// Both directions of a connection, below WebSocket and the protocol.
#[derive(Debug, Clone)]
pub(crate) enum ByteStream {
    /// The socket's bytes.
    Plain(Arc<OwnedWriteHalf>),
    /// The bytes inside a TLS session. Only the connection's cell uses it.
    Tls(Arc<TlsSession>),
}

impl ByteStream {
    /// The underlying socket.
    pub(crate) fn socket(&self) -> &TcpStream {
        match self {
            ByteStream::Plain(socket) => socket.as_ref().as_ref(),
            ByteStream::Tls(session) => session.socket(),
        }
    }

    /// Writes as much as the stream takes now.
    pub(crate) fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            ByteStream::Plain(socket) => socket.try_write(bytes),
            ByteStream::Tls(session) => session.write(&[IoSlice::new(bytes)]),
        }
    }

    /// Writes as much of several pieces as the stream takes now.
    pub(crate) fn try_write_vectored(&self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            ByteStream::Plain(socket) => socket.try_write_vectored(pieces),
            ByteStream::Tls(session) => session.write(pieces),
        }
    }

    /// Waits until the stream can take more.
    pub(crate) fn poll_writable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            ByteStream::Plain(_) => self.socket().poll_write_ready(cx),
            ByteStream::Tls(session) => session.poll_flush(cx),
        }
    }

    /// Waits until the socket has taken everything written.
    pub(crate) fn poll_flush(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            ByteStream::Plain(_) => Poll::Ready(Ok(())),
            ByteStream::Tls(session) => session.poll_flush(cx),
        }
    }

    /// Reads what has arrived; 0 once the peer has closed its side.
    pub(crate) fn poll_read(&self, cx: &mut Context<'_>, room: &mut [u8]) -> Poll<io::Result<usize>> {
        match self {
            ByteStream::Plain(_) => poll_read_socket(self.socket(), cx, room),
            ByteStream::Tls(session) => {
                session.poll_read(room, |bytes| poll_read_socket(session.socket(), cx, bytes))
            }
        }
    }

    /// Closes the broker's side after everything written.
    pub(crate) fn shutdown(&self) {
        match self {
            // A peer that is already gone may have shut the socket down.
            ByteStream::Plain(_) => {
                let _ = socket2::SockRef::from(self.socket()).shutdown(Shutdown::Write);
            }
            ByteStream::Tls(session) => session.close(),
        }
    }
}

fn poll_read_socket(socket: &TcpStream, cx: &mut Context<'_>, room: &mut [u8]) -> Poll<io::Result<usize>> {
    loop {
        ready!(socket.poll_read_ready(cx))?;
        match socket.try_read(room) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            read => return Poll::Ready(read),
        }
    }
}
