//! An answer about a stream that is gone, and can no longer hold its answers itself.

use crate::id::VhostId;
use crate::name::Name;

/// An answer to a client that waits for the journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LateAnswer {
    /// The vhost of the client.
    pub vhost: VhostId,
    /// The subject that the answer goes to.
    pub to: Name,
    /// The answer in the form of its protocol.
    pub form: Vec<u8>,
}
