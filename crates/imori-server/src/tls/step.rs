//! One step of a handshake: processes the client's records and writes the broker's answer.

use std::sync::Weak;

use imori_core::certificate::Certificate;
use tokio::net::tcp::OwnedWriteHalf;
use tokio::sync::oneshot;

use super::identity;
use super::session::State;
use crate::config::UserFrom;

/// Work for a handshaker. A connection has at most one step in flight.
pub(super) struct Step {
    pub(super) state: Box<State>,
    /// The records received.
    pub(super) bytes: Vec<u8>,
    /// Weak, so that the socket closes with its connection while a step waits.
    pub(super) socket: Weak<OwnedWriteHalf>,
    pub(super) user_from: UserFrom,
    pub(super) answer: oneshot::Sender<Outcome>,
}

/// The state after a step with the client's certificate, or the reason for failure.
pub(super) type Outcome = Result<(Box<State>, Option<Certificate>), HandshakeError>;

/// Why a handshake failed.
#[derive(Debug)]
pub(crate) enum HandshakeError {
    /// The client disconnected.
    Gone,
    /// The handshake exceeded its timeout.
    TooLong,
    /// Too many handshakes waited for a handshaker.
    GaveWay,
    /// The client broke the protocol, or either side refused the other.
    Refused(rustls::Error),
}

impl HandshakeError {
    /// The fault and its remedy, for the log; `None` if the client only disconnected.
    pub(crate) fn text(&self) -> Option<String> {
        let error = match self {
            HandshakeError::Gone => return None,
            HandshakeError::TooLong => return Some(String::from("it did not come to an end in its time")),
            HandshakeError::GaveWay => {
                return Some(String::from(
                    "too many handshakes wait, most of them from this source; connect again later",
                ));
            }
            HandshakeError::Refused(error) => error,
        };
        let advice = match error {
            rustls::Error::AlertReceived(_) => {
                "; the client refuses this broker, so give it the CA of `tls.certificate`"
            }
            rustls::Error::NoCertificatesPresented => "; give the client a certificate of `tls.client_ca`",
            rustls::Error::InvalidCertificate(_) => "; only certificates of `tls.client_ca` are taken",
            _ => "",
        };
        Some(format!("{error}{advice}"))
    }
}

impl Step {
    /// Whether the connection still exists.
    pub(super) fn is_awaited(&self) -> bool {
        !self.answer.is_closed()
    }

    /// Runs the step and wakes the connection's task.
    pub(super) fn run(self) {
        let Step { mut state, bytes, socket, user_from, answer } = self;
        let taken = state.take_records(&bytes);
        // A client that does not speak TLS could not read an alert (SECURITY LIM-04).
        let is_answered = !matches!(taken, Err(rustls::Error::InvalidMessage(_)));
        if let Some(socket) = socket.upgrade().filter(|_| is_answered) {
            // The cell writes the rest and sees the error, if any.
            let _ = state.flush(&socket);
        }
        let outcome = taken.map_err(HandshakeError::Refused).map(|()| {
            let certificate = state.client_certificate().map(|der| identity::certificate(der, user_from));
            (state, certificate)
        });
        // The connection may have closed meanwhile.
        let _ = answer.send(outcome);
    }
}
