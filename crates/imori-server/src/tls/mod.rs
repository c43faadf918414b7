//! TLS below the protocols: renewable certificates, handshakes computed beside the cells, and sessions that a
//! connection's cell reads and writes in any of its turns.

mod stream;
mod handshake;
mod handshakers;
mod step;
mod session;
mod record;
mod fair_queue;
mod acceptor;
mod files;
mod identity;
#[cfg(test)]
mod tests;

pub(crate) use acceptor::Renewal;
pub use acceptor::{TlsAcceptor, TlsOffer};
pub use files::{TlsError, TlsFiles};
pub(crate) use handshake::{Established, TlsHandshake};
pub(crate) use handshakers::Handshakers;
pub(crate) use session::TlsSession;
pub(crate) use step::HandshakeError;
pub(crate) use stream::ByteStream;
