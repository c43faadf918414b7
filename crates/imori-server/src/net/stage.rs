//! How far a connection has come before it speaks its protocol.

use std::future::Future as _;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use imori_core::certificate::Certificate;
use tokio::io::ReadBuf;
use tokio::net::tcp::OwnedReadHalf;
use tokio::time::Sleep;

use crate::net::socket::{Socket, poll_read_socket};
use crate::peers::proxy::{NotAHeader, Proxied, header_bytes, read_header};
use crate::tls::{Established, HandshakeError, Handshakers, TlsHandshake};
use crate::turn::Task;
use crate::websocket::Opening;

/// The first byte of a record of TLS in which a handshake begins: RFC 8446, 5.1.
const HANDSHAKE: u8 = 22;

/// How far a connection has come.
///
/// ```text
///   Accepted (──► Proxied) ──► as below
///   Accepted ──► Handshake ──► Opening ──► Speaking
///      │              ▲  └──────────────────►  ▲
///      │  greeted     │ TLS          other bytes
///      └─────────► StartTls ───────────────────┘
/// ```
pub(super) enum Stage {
    /// Nothing is begun.
    Accepted,
    /// A proxy says for whom it connects.
    Proxied(ProxyHeader),
    /// The client was greeted and may begin TLS, until then.
    StartTls(Task, Pin<Box<Sleep>>),
    /// The handshake of TLS is under way.
    Handshake(Handshake),
    /// The WebSocket's opening handshake is under way; the client has shown this certificate.
    Opening(Option<Certificate>, Opening),
    /// The connection speaks its protocol.
    Speaking(Task),
}

impl Stage {
    /// The task, where there is one.
    pub(super) fn task(&mut self) -> Option<&mut Task> {
        match self {
            Stage::StartTls(task, _) | Stage::Speaking(task) => Some(task),
            Stage::Handshake(handshake) => handshake.greeted.as_mut(),
            Stage::Accepted | Stage::Proxied(_) | Stage::Opening(..) => None,
        }
    }
}

/// A header of PROXY protocol that is being read, and not a byte behind it.
pub(super) struct ProxyHeader {
    bytes: Vec<u8>,
    /// The end of its time.
    until: Pin<Box<Sleep>>,
}

impl ProxyHeader {
    /// A header of which nothing was read.
    pub(super) fn new(until: Pin<Box<Sleep>>) -> ProxyHeader {
        ProxyHeader { bytes: Vec::new(), until }
    }

    /// Reads on; ready once the header is whole, or there is none: `None` where the proxy left or took too long.
    pub(super) fn poll(
        &mut self,
        reader: &mut OwnedReadHalf,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Proxied, NotAHeader>>> {
        if self.until.as_mut().poll(cx).is_ready() {
            return Poll::Ready(None);
        }
        loop {
            let missing = match header_bytes(&self.bytes) {
                Ok(bytes) => bytes - self.bytes.len(),
                Err(error) => return Poll::Ready(Some(Err(error))),
            };
            if missing == 0 {
                return Poll::Ready(Some(read_header(&self.bytes)));
            }
            let mut room = [0; 256];
            let room = room.get_mut(..missing.min(256)).unwrap_or_default();
            match ready!(poll_read_socket(reader, cx, room)) {
                Ok(bytes @ 1..) => self.bytes.extend_from_slice(room.get(..bytes).unwrap_or_default()),
                _ => return Poll::Ready(None),
            }
        }
    }
}

/// A handshake of TLS.
pub(super) struct Handshake {
    pub(super) tls: Box<TlsHandshake>,
    /// The end of its time.
    pub(super) until: Pin<Box<Sleep>>,
    /// The task of a client that was greeted before.
    pub(super) greeted: Option<Task>,
}

impl Handshake {
    /// Goes on; ready once there is a session, or there is none.
    pub(super) fn poll(
        &mut self,
        handshakers: &Handshakers,
        socket: &mut Socket,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Established, HandshakeError>> {
        if self.until.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Err(HandshakeError::TooLong));
        }
        let Socket { reader, first, .. } = socket;
        self.tls.poll(handshakers, cx, |cx, room| {
            let bytes = ready!(poll_read_socket(reader, cx, room))?;
            first.note(room.get(..bytes).unwrap_or_default());
            Poll::Ready(Ok(bytes))
        })
    }
}

/// The way in which a client that was greeted goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Chose {
    /// With TLS.
    Tls,
    /// Without.
    Plain,
    /// Not at all, in the time that it had.
    Nothing,
}

/// Finds out how a client goes on, without taking what it sends.
pub(super) fn poll_start_tls(
    reader: &mut OwnedReadHalf,
    until: Pin<&mut Sleep>,
    cx: &mut Context<'_>,
) -> Poll<Chose> {
    if until.poll(cx).is_ready() {
        return Poll::Ready(Chose::Nothing);
    }
    let mut byte = [0];
    let mut room = ReadBuf::new(&mut byte);
    if ready!(reader.poll_peek(cx, &mut room)).is_err() {
        return Poll::Ready(Chose::Nothing);
    }
    Poll::Ready(match room.filled() {
        [] => Chose::Nothing,
        [HANDSHAKE] => Chose::Tls,
        _ => Chose::Plain,
    })
}
