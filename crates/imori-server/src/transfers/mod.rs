//! Copies of whole streams: their archives, read and written while the broker works.
//!
//! [`StreamSnapshot`] gives the archive of a stream in pieces, and [`StreamRestore`] makes a stream of one; the admin API
//! uses both. Clients of NATS get and send an archive as messages (`exchange.rs`). Everything runs on the runtime of
//! services, and reaches queues by internal clients, as their users.

mod exchange;
mod incoming;
mod outgoing;
mod line;
mod restore;
mod snapshot;
mod error;

pub use error::TransferError;
pub(crate) use exchange::serve;
pub use restore::StreamRestore;
pub use snapshot::StreamSnapshot;
