//! A TCP socket and a timer during a connection's turn, with or without TLS and WebSocket.

use std::future::Future;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::BytesMut;
use imori_core::id::ConnectionId;
use imori_core::outbound::Outbound;
use imori_core::time::Time;
use imori_core::turn::{Notice, NoticeKind};
use imori_core::world::World;
use tokio::io::{AsyncRead, AsyncReadExt, Interest, ReadBuf};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::time::Sleep;
use tracing::warn;

use crate::cell::Cell;
use crate::config::ListenerName;
use crate::limits::TLS_READ_BYTES;
use crate::peers::admission::Ticket;
use crate::peers::stranger::FirstBytes;
use crate::shared::Phase;
use crate::tls::{ByteStream, TlsSession};
use crate::turn::Transport;
use crate::websocket::WebSocketStream;

/// A connection's transport: its socket, its timer and its admission ticket.
pub(crate) struct Socket {
    pub(crate) reader: OwnedReadHalf,
    pub(crate) writer: Arc<OwnedWriteHalf>,
    /// The TLS session, if any.
    pub(crate) tls: Option<Arc<TlsSession>>,
    /// Whether the client speaks TLS with the proxy.
    pub(crate) is_proxied_tls: bool,
    pub(crate) source: SocketAddr,
    /// The WebSocket layer, if the connection is a WebSocket.
    pub(crate) websocket: Option<Box<WebSocketStream>>,
    pub(crate) ticket: Option<Ticket>,
    pub(crate) timer: Option<Pin<Box<Sleep>>>,
    pub(crate) timer_at: Option<Time>,
    /// Resolves when the peer is gone; created once a memory alarm stops the reading.
    pub(crate) gone: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    /// Bytes read in this turn.
    pub(crate) bytes_read: u64,
    /// Whether the client logged in during this turn.
    pub(crate) has_logged_in: bool,
    /// The listener that accepted it.
    pub(crate) listener: ListenerName,
    pub(crate) first: FirstBytes,
}

/// A socket during a turn.
pub(crate) struct SocketTurn<'a, 'w> {
    pub(crate) id: ConnectionId,
    pub(crate) socket: &'a mut Socket,
    pub(crate) cell: &'a Cell,
    pub(crate) cx: &'a mut Context<'w>,
}

impl Transport for SocketTurn<'_, '_> {
    #[inline]
    fn poll_read(&mut self, room: &mut [u8]) -> Poll<usize> {
        match self.socket.websocket {
            None => self.poll_read_plain(room),
            Some(_) => self.poll_read_framed(room),
        }
    }

    fn poll_read_buf(&mut self, buffer: &mut BytesMut) -> Poll<usize> {
        let websocket = self.socket.websocket.as_mut();
        if let Some(instead) = websocket.and_then(|websocket| websocket.instead_of_read(self.cx)) {
            return self.come_back_unless_ready(instead);
        }
        let before = buffer.len();
        let (bytes, room) = ready!(self.poll_read_into(buffer));
        if self.socket.websocket.is_none() {
            return Poll::Ready(bytes);
        }
        let kept = self.decode(buffer.get_mut(before..).unwrap_or_default(), bytes == room);
        buffer.truncate(before + if let Poll::Ready(kept) = kept { kept } else { 0 });
        kept
    }

    fn poll_writable(&mut self) -> Poll<bool> {
        self.socket.stream().poll_writable(self.cx).map(|ready| ready.is_ok())
    }

    fn poll_gone(&mut self) -> Poll<()> {
        let gone = self.socket.gone.get_or_insert_with(|| Box::pin(gone(Arc::clone(&self.socket.writer))));
        gone.as_mut().poll(self.cx)
    }

    #[inline]
    fn poll_timer(&mut self, at: Option<Time>) -> Poll<()> {
        let Socket { timer, timer_at, .. } = &mut *self.socket;
        let Some(at) = at else {
            *timer = None;
            *timer_at = None;
            return Poll::Pending;
        };
        if *timer_at != Some(at) {
            let instant = self.cell.shared.clock.instant(at).into();
            match timer {
                Some(timer) => timer.as_mut().reset(instant),
                None => *timer = Some(Box::pin(tokio::time::sleep_until(instant))),
            }
            *timer_at = Some(at);
        }
        let Some(timer) = timer else {
            return Poll::Pending;
        };
        ready!(timer.as_mut().poll(self.cx));
        *timer_at = None;
        self.cell.begin_turn();
        Poll::Ready(())
    }

    fn come_back(&mut self) {
        come_back_after_others(self.cx);
    }

    fn close(&mut self) {
        if let Some(websocket) = &self.socket.websocket {
            return websocket.close(*self.cell.shared.phase.borrow() > Phase::Serving);
        }
        self.socket.stream().shutdown();
    }

    fn logged_in(&mut self) {
        self.socket.has_logged_in = true;
        self.socket.ticket.iter().for_each(|ticket| self.cell.shared.admission.logged_in(ticket));
    }

    fn noticed(&mut self, notice: &Notice) {
        match notice.kind {
            NoticeKind::Refused => self.socket.log_refusal(self.cell, notice.message, &notice.text),
            NoticeKind::Ignored => self.socket.log_ignored(self.cell, notice.message, &notice.text),
        }
    }
}

impl SocketTurn<'_, '_> {
    #[inline]
    fn poll_read_plain(&mut self, room: &mut [u8]) -> Poll<usize> {
        if self.socket.tls.is_some() {
            return self.poll_read_tls(room);
        }
        let mut buffer = ReadBuf::new(room);
        let read = ready!(Pin::new(&mut self.socket.reader).poll_read(self.cx, &mut buffer));
        let bytes = read.map_or(0, |()| buffer.filled().len());
        self.socket.first.note(buffer.filled());
        self.socket.bytes_read += bytes as u64;
        Poll::Ready(bytes)
    }

    fn poll_read_tls(&mut self, room: &mut [u8]) -> Poll<usize> {
        let Socket { reader, tls, .. } = &mut *self.socket;
        let Some(tls) = tls else { return Poll::Ready(0) };
        let bytes = match ready!(tls.poll_read(room, |bytes| poll_read_socket(reader, self.cx, bytes))) {
            Ok(bytes) => bytes,
            Err(error) => {
                if error.kind() == ErrorKind::Other {
                    self.socket.log_refusal(self.cell, "TLS ended in a fault", &error.to_string());
                }
                0
            }
        };
        self.socket.first.note(room.get(..bytes).unwrap_or_default());
        self.socket.bytes_read += bytes as u64;
        Poll::Ready(bytes)
    }

    /// Reads into a buffer's free space; returns the bytes read and the space there was.
    fn poll_read_into(&mut self, buffer: &mut BytesMut) -> Poll<(usize, usize)> {
        let (before, room) = (buffer.len(), buffer.capacity() - buffer.len());
        if self.socket.tls.is_some() {
            let room = room.min(TLS_READ_BYTES);
            buffer.resize(before + room, 0);
            let read = self.poll_read_tls(buffer.get_mut(before..).unwrap_or_default());
            buffer.truncate(before + if let Poll::Ready(bytes) = read { bytes } else { 0 });
            return read.map(|bytes| (bytes, room));
        }
        let read = pin!(self.socket.reader.read_buf(buffer));
        let bytes = ready!(read.poll(self.cx)).unwrap_or(0);
        self.socket.bytes_read += bytes as u64;
        Poll::Ready((bytes, room))
    }

    fn poll_read_framed(&mut self, room: &mut [u8]) -> Poll<usize> {
        let Some(websocket) = &mut self.socket.websocket else {
            return Poll::Ready(0);
        };
        if let Some(instead) = websocket.instead_of_read(self.cx) {
            return self.come_back_unless_ready(instead);
        }
        let early = websocket.take_early(room);
        let bytes = match early {
            Some(bytes) => bytes,
            None => ready!(self.poll_read_plain(room)),
        };
        let was_full = bytes == room.len();
        self.decode(room.get_mut(..bytes).unwrap_or_default(), was_full)
    }

    /// Decodes WebSocket frames in place. If a client breaks the protocol, the output queued for it is written before
    /// its connection ends.
    fn decode(&mut self, bytes: &mut [u8], was_full: bool) -> Poll<usize> {
        if bytes.is_empty() {
            return Poll::Ready(0);
        }
        let Some(websocket) = &mut self.socket.websocket else {
            return Poll::Ready(bytes.len());
        };
        match websocket.decode(bytes, was_full, self.cx) {
            Ok(decoded) => self.come_back_unless_ready(decoded),
            Err(violation) => {
                self.socket.log_refusal(self.cell, "connection cut", &violation.to_string());
                // The connection ends once its output is written; that also notifies the task.
                self.cell.with_outbound(self.id, Outbound::finish);
                Poll::Pending
            }
        }
    }

    fn come_back_unless_ready(&mut self, read: Poll<usize>) -> Poll<usize> {
        if read.is_pending() {
            self.come_back();
        }
        read
    }
}

/// Reads the plain socket.
pub(super) fn poll_read_socket(
    reader: &mut OwnedReadHalf,
    cx: &mut Context<'_>,
    room: &mut [u8],
) -> Poll<io::Result<usize>> {
    let mut buffer = ReadBuf::new(room);
    ready!(Pin::new(reader).poll_read(cx, &mut buffer))?;
    Poll::Ready(Ok(buffer.filled().len()))
}

impl Socket {
    /// Both directions, through TLS if it is in use.
    pub(crate) fn stream(&self) -> ByteStream {
        match &self.tls {
            Some(session) => ByteStream::Tls(Arc::clone(session)),
            None => ByteStream::Plain(Arc::clone(&self.writer)),
        }
    }

    /// Logs that a client was refused or cut, rate-limited.
    pub(crate) fn log_refusal(&self, cell: &Cell, message: &'static str, text: &str) {
        let source = self.source;
        let Some(folded) = cell.shared.peer_log_limit.admit(source.ip().to_canonical(), cell.now()) else {
            return;
        };
        let hint = self.first.hint(self.listener);
        warn!(%source, cid = self.cid(), reason = message, text, hint, folded, "client was refused");
    }

    /// Logs that something a client asked for has no effect, rate-limited.
    fn log_ignored(&self, cell: &Cell, message: &'static str, text: &str) {
        let source = self.source;
        let Some(folded) = cell.shared.peer_log_limit.admit(source.ip().to_canonical(), cell.now()) else {
            return;
        };
        warn!(%source, cid = self.cid(), reason = message, text, folded, "client asked for what has no effect");
    }

    /// The connection's number, as in `/connz`.
    fn cid(&self) -> Option<u64> {
        self.ticket.as_ref().map(Ticket::number)
    }
}

/// Waits for an error on the socket, without reading what arrived before.
async fn gone(writer: Arc<OwnedWriteHalf>) {
    // If waiting fails, the socket is gone too.
    let _ = writer.ready(Interest::ERROR).await;
}

/// Schedules another turn after other ready tasks had theirs.
///
/// Waking the task itself would not do: the runtime would run the ready tasks again, and poll for I/O only after
/// dozens of turns.
pub(crate) fn come_back_after_others(cx: &mut Context<'_>) {
    let mut others_first = pin!(tokio::task::yield_now());
    // The future is pending now; polling it has scheduled the wake-up.
    let _ = others_first.as_mut().poll(cx);
}
