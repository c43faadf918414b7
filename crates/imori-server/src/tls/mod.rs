//! TLS below the protocols: certificates that can be renewed, handshakes that threads beside the cells compute, and
//! sessions that any turn of a connection's cell reads and writes.

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
pub use acceptor::TlsAcceptor;
pub use files::{TlsError, TlsFiles};
pub(crate) use handshake::{Established, TlsHandshake};
pub(crate) use handshakers::Handshakers;
pub(crate) use session::TlsSession;
pub(crate) use step::HandshakeError;
pub(crate) use stream::ByteStream;
