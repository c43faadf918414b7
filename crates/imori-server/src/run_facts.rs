//! Facts of one run of the broker.

use imori_core::id::VhostId;

/// Facts that stay the same during one run of the broker.
#[derive(Debug)]
pub(crate) struct RunFacts {
    /// The random id of this run, shown to NATS clients.
    pub(crate) server_id: String,
    /// The vhost of NATS clients.
    pub(crate) nats_vhost: VhostId,
    /// Memory that the process may use, in bytes.
    pub(crate) memory_bytes: usize,
}
