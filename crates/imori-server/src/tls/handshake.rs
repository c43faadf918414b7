//! A TLS handshake: the connection's cell reads the client's records, and a thread beside the cells computes.
//!
//! ```text
//!   Reading ──a record is whole──► Computing ──► Reading … ──the session is there and all is written──► Over
//! ```

use std::future::Future as _;
use std::io;
use std::mem;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use imori_core::certificate::Certificate;
use tokio::net::tcp::OwnedWriteHalf;
use tokio::sync::oneshot;

use super::acceptor::TlsAcceptor;
use super::handshakers::Handshakers;
use super::record::Record;
use super::session::{State, TlsSession, with_ciphertext};
use super::step::{HandshakeError, Outcome, Step};
use crate::config::UserFrom;
use crate::limits::TLS_READ_BYTES_MIN;

/// A handshake on a socket from which nothing has been read.
#[derive(Debug)]
pub(crate) struct TlsHandshake {
    socket: Arc<OwnedWriteHalf>,
    /// The client's address; handshakers take turns by source.
    source: IpAddr,
    user_from: UserFrom,
    /// The client's certificate, if it sent one.
    certificate: Option<Certificate>,
    stage: Stage,
    /// Bytes of an incomplete record.
    bytes: Vec<u8>,
    record: Record,
}

#[derive(Debug)]
enum Stage {
    /// Writes pending records, then waits for one from the client.
    Reading(Box<State>),
    /// A handshaker has the state.
    Computing(oneshot::Receiver<Outcome>),
    /// The handshake succeeded or failed.
    Over,
}

/// A session, and the client's certificate.
pub(crate) type Established = (Arc<TlsSession>, Option<Certificate>);

impl TlsHandshake {
    /// A handshake that has not begun.
    pub(crate) fn new(
        acceptor: &TlsAcceptor,
        socket: Arc<OwnedWriteHalf>,
        source: IpAddr,
    ) -> Result<TlsHandshake, rustls::Error> {
        let (tls, user_from) = acceptor.accept()?;
        let stage = Stage::Reading(Box::new(State::new(tls)));
        Ok(TlsHandshake {
            socket,
            source,
            user_from,
            certificate: None,
            stage,
            bytes: Vec::new(),
            record: Record::default(),
        })
    }

    /// Advances until the session is established or the handshake fails. `read` reads the socket.
    pub(crate) fn poll(
        &mut self,
        handshakers: &Handshakers,
        cx: &mut Context<'_>,
        mut read: impl FnMut(&mut Context<'_>, &mut [u8]) -> Poll<io::Result<usize>>,
    ) -> Poll<Result<Established, HandshakeError>> {
        loop {
            match &mut self.stage {
                Stage::Over => return Poll::Ready(Err(HandshakeError::Gone)),
                Stage::Computing(outcome) => {
                    let outcome = ready!(Pin::new(outcome).poll(cx)).unwrap_or(Err(HandshakeError::GaveWay));
                    let (state, certificate) = outcome?;
                    (self.stage, self.certificate) = (Stage::Reading(state), certificate);
                }
                Stage::Reading(state) => {
                    if ready!(state.poll_written(&self.socket, cx)).is_err() {
                        return Poll::Ready(Err(HandshakeError::Gone));
                    }
                    if !state.is_handshaking() {
                        return Poll::Ready(self.established());
                    }
                    ready!(read_record(&mut self.bytes, &mut self.record, |room| read(cx, room)))?;
                    self.compute(handshakers);
                }
            }
        }
    }

    fn established(&mut self) -> Result<Established, HandshakeError> {
        let Stage::Reading(state) = mem::replace(&mut self.stage, Stage::Over) else {
            return Err(HandshakeError::Gone);
        };
        let session = TlsSession::new(Arc::clone(&self.socket), *state);
        Ok((Arc::new(session), self.certificate.take()))
    }

    /// Hands the bytes read so far to a handshaker.
    fn compute(&mut self, handshakers: &Handshakers) {
        let (answer, outcome) = oneshot::channel();
        let Stage::Reading(state) = mem::replace(&mut self.stage, Stage::Computing(outcome)) else { return };
        let bytes = mem::take(&mut self.bytes);
        let socket = Arc::downgrade(&self.socket);
        handshakers.submit(self.source, Step { state, bytes, socket, user_from: self.user_from, answer });
    }
}

/// Reads until a record is complete.
fn read_record(
    bytes: &mut Vec<u8>,
    record: &mut Record,
    mut read: impl FnMut(&mut [u8]) -> Poll<io::Result<usize>>,
) -> Poll<Result<(), HandshakeError>> {
    with_ciphertext(|room| {
        // Reads little at a time, to leave most bytes after the handshake to the session.
        let room = room.get_mut(..TLS_READ_BYTES_MIN).unwrap_or_default();
        loop {
            let len = ready!(read(room)).unwrap_or_default();
            let read = room.get(..len).filter(|read| !read.is_empty()).ok_or(HandshakeError::Gone)?;
            bytes.extend_from_slice(read);
            if record.ends_or_breaks(read) {
                return Poll::Ready(Ok(()));
            }
        }
    })
}
