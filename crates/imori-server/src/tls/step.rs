//! One step of a handshake: the client's records are taken, and the broker's answer is written.

use std::sync::Weak;

use imori_core::certificate::Certificate;
use tokio::net::tcp::OwnedWriteHalf;
use tokio::sync::oneshot;

use super::identity;
use super::session::State;
use crate::config::UserFrom;

/// Work for a thread beside the cells. A connection has one step at a time under way.
pub(super) struct Step {
    pub(super) state: Box<State>,
    /// Records that came.
    pub(super) bytes: Vec<u8>,
    /// The socket closes with its connection, also while a step waits.
    pub(super) socket: Weak<OwnedWriteHalf>,
    pub(super) user_from: UserFrom,
    pub(super) answer: oneshot::Sender<Outcome>,
}

/// The session as it is behind a step, with the certificate that the client has shown, or why there is none.
pub(super) type Outcome = Result<(Box<State>, Option<Certificate>), HandshakeError>;

/// Why there is no session.
#[derive(Debug)]
pub(crate) enum HandshakeError {
    /// The client left before it was done.
    Gone,
    /// The handshake did not come to an end in its time.
    TooLong,
    /// Too many handshakes waited for a thread.
    GaveWay,
    /// The client broke the rules, or either side refused the other.
    Refused(rustls::Error),
}

impl HandshakeError {
    /// The fault and how to mend it, for the log; `None` where the client just left.
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
    /// Tells whether the connection is still there.
    pub(super) fn is_awaited(&self) -> bool {
        !self.answer.is_closed()
    }

    /// Does it, and wakes the connection's task.
    pub(super) fn run(self) {
        let Step { mut state, bytes, socket, user_from, answer } = self;
        let taken = state.take_records(&bytes);
        // A client that speaks no TLS would not understand why (SECURITY LIM-04).
        let is_answered = !matches!(taken, Err(rustls::Error::InvalidMessage(_)));
        if let Some(socket) = socket.upgrade().filter(|_| is_answered) {
            // The cell goes on where the socket does not take all, and meets its error.
            let _ = state.flush(&socket);
        }
        let outcome = taken.map_err(HandshakeError::Refused).map(|()| {
            let certificate = state.client_certificate().map(|der| identity::certificate(der, user_from));
            (state, certificate)
        });
        // A connection that has gone meanwhile is not told.
        let _ = answer.send(outcome);
    }
}
