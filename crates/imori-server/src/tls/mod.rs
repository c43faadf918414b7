//! TLS below the protocols: certificates that can be renewed, and sessions that any turn of a connection's cell reads
//! and writes.

mod stream;
mod session;
mod acceptor;
mod files;
mod identity;
#[cfg(test)]
mod tests;

pub(crate) use acceptor::Renewal;
pub use acceptor::TlsAcceptor;
pub use files::{TlsError, TlsFiles};
pub(crate) use session::{HandshakeError, TlsSession};
pub(crate) use stream::ByteStream;
