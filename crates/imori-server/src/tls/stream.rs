//! A connection's bytes, with TLS or without.

use std::io::{self, IoSlice};
use std::net::Shutdown;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::net::TcpStream;
use tokio::net::tcp::OwnedWriteHalf;

use super::session::TlsSession;

/// Both directions of a connection, below WebSocket and protocol.
#[derive(Debug, Clone)]
pub(crate) enum ByteStream {
    /// The bytes of the socket.
    Plain(Arc<OwnedWriteHalf>),
    /// The bytes inside a session of TLS. Its own cell alone uses it.
    Tls(Arc<TlsSession>),
}

impl ByteStream {
    /// The socket itself.
    pub(crate) fn socket(&self) -> &TcpStream {
        match self {
            ByteStream::Plain(socket) => socket.as_ref().as_ref(),
            ByteStream::Tls(session) => session.socket(),
        }
    }

    /// Writes as much as there is room for now.
    pub(crate) fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            ByteStream::Plain(socket) => socket.try_write(bytes),
            ByteStream::Tls(session) => session.write(&[IoSlice::new(bytes)]),
        }
    }

    /// Writes of several pieces as much as there is room for now.
    pub(crate) fn try_write_vectored(&self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            ByteStream::Plain(socket) => socket.try_write_vectored(pieces),
            ByteStream::Tls(session) => session.write(pieces),
        }
    }

    /// Waits until something can be written.
    pub(crate) fn poll_writable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            ByteStream::Plain(_) => self.socket().poll_write_ready(cx),
            ByteStream::Tls(session) => session.poll_flush(cx),
        }
    }

    /// Waits until the socket has what was written.
    pub(crate) fn poll_flush(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            ByteStream::Plain(_) => Poll::Ready(Ok(())),
            ByteStream::Tls(session) => session.poll_flush(cx),
        }
    }

    /// Reads what has come; 0 bytes where the peer has closed its side.
    pub(crate) fn poll_read(&self, cx: &mut Context<'_>, room: &mut [u8]) -> Poll<io::Result<usize>> {
        match self {
            ByteStream::Plain(_) => poll_read_socket(self.socket(), cx, room),
            ByteStream::Tls(session) => {
                session.poll_read(room, |bytes| poll_read_socket(session.socket(), cx, bytes))
            }
        }
    }

    /// Closes our side behind all that is written.
    pub(crate) fn shutdown(&self) {
        match self {
            // A peer that is gone already needs no goodbye.
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
