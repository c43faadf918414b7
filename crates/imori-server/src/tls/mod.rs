//! TLS below the protocols: certificates that can be renewed, and sessions that any turn of a connection's cell reads
//! and writes.

mod acceptor;
mod files;
mod session;
mod identity;
mod stream;

pub use acceptor::TlsAcceptor;
pub use files::{TlsError, TlsFiles};
pub(crate) use session::{HandshakeError, TlsSession};
pub(crate) use stream::ByteStream;
