//! The stages of a connection before it speaks its protocol.

use std::future::Future as _;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use imori_core::certificate::Certificate;
use tokio::io::ReadBuf;
use tokio::net::tcp::OwnedReadHalf;
use tokio::time::Sleep;

use crate::net::preface::Preface;
use crate::net::socket::{Socket, poll_read_socket};
use crate::peers::proxy::{NotAHeader, Proxied, header_bytes, read_header};
use crate::tls::{Established, HandshakeError, Handshakers, TlsHandshake};
use crate::turn::Task;
use crate::websocket::Opening;

/// RFC 8446, 5.1: the content type of a handshake record.
const HANDSHAKE: u8 = 22;

/// The progress of a connection until it speaks its protocol.
///
/// ```text
///   Accepted (──► Proxied) ──► as below
///   Accepted ──► Handshake ──► Opening ──► Preface ──► Speaking
///      │              ▲  └─────────┴───── not AMQP ──►  ▲
///      │  greeted     │ TLS                 other bytes │
///      └─────────► StartTls ────────────────────────────┘
/// ```
pub(super) enum Stage {
    /// Nothing has begun.
    Accepted,
    /// The header of a proxy is being read.
    Proxied(ProxyHeader),
    /// The client was greeted, and may begin TLS until the timer ends.
    StartTls(Task, Pin<Box<Sleep>>),
    /// The TLS handshake is in progress.
    Handshake(Handshake),
    /// The WebSocket's opening handshake is in progress; the client may have shown a certificate.
    Opening(Option<Certificate>, Opening),
    /// The AMQP client has not chosen a version yet; it may have shown a certificate.
    Preface(Option<Certificate>, Preface),
    /// The connection speaks its protocol.
    Speaking(Task),
}

impl Stage {
    /// The connection's task, if it exists yet.
    pub(super) fn task(&mut self) -> Option<&mut Task> {
        match self {
            Stage::StartTls(task, _) | Stage::Speaking(task) => Some(task),
            Stage::Handshake(handshake) => handshake.greeted.as_mut(),
            Stage::Accepted | Stage::Proxied(_) | Stage::Opening(..) | Stage::Preface(..) => None,
        }
    }
}

/// A PROXY header being read; nothing after it is read.
pub(super) struct ProxyHeader {
    bytes: Vec<u8>,
    /// The timeout.
    until: Pin<Box<Sleep>>,
}

impl ProxyHeader {
    /// A header of which nothing has been read.
    pub(super) fn new(until: Pin<Box<Sleep>>) -> ProxyHeader {
        ProxyHeader { bytes: Vec::new(), until }
    }

    /// Reads on; ready once the header is complete or invalid. `None` if the proxy disconnected or timed out.
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

/// A TLS handshake in progress.
pub(super) struct Handshake {
    pub(super) tls: Box<TlsHandshake>,
    /// The timeout.
    pub(super) until: Pin<Box<Sleep>>,
    /// The task of a client that was greeted before TLS.
    pub(super) greeted: Option<Task>,
}

impl Handshake {
    /// Advances the handshake; ready once it succeeded or failed.
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

/// The way a greeted client continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Chose {
    /// With TLS.
    Tls,
    /// Without TLS.
    Plain,
    /// Not at all: it disconnected or timed out.
    Nothing,
}

/// Peeks at the client's first byte to see whether it begins TLS.
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
