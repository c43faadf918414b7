//! The sums that a pass over connections and queues found.

use std::collections::HashMap;

use imori_core::id::VhostId;

use super::connection_rows::ConnectionReading;

/// The sums that a pass found.
#[derive(Debug, Default)]
pub(super) struct Totals {
    pub(super) ready: u64,
    pub(super) unsettled: u64,
    /// The connections of all users.
    pub(super) clients: Clients,
    pub(super) clients_by_user: HashMap<String, Clients>,
    pub(super) messages_by_vhost: HashMap<VhostId, Messages>,
}

/// Messages of queues.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Messages {
    pub(super) ready: u64,
    pub(super) unsettled: u64,
}

/// Connections with their sessions and readers.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Clients {
    pub(super) connections: u64,
    pub(super) sessions: u64,
    pub(super) readers: u64,
}

impl Clients {
    pub(super) fn add(&mut self, reading: &ConnectionReading) {
        self.connections += 1;
        self.sessions += reading.sessions as u64;
        self.readers += reading.readers as u64;
    }
}
