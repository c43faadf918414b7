//! Access to connections.

use std::net::SocketAddr;

use imori_core::id::ConnectionId;
use imori_core::outbound::Outbound;
use imori_core::time::Time;
use imori_core::turn::ClientFacts;

use super::broker::Broker;
use crate::config::Spoken;
use crate::peers::publisher_wait::PublisherWait;
use crate::peers::sums::Sums;
use crate::shared::TcpLink;
use crate::turn::Inspector;

/// A connection while it is locked.
pub struct OpenConnection<'a>(&'a mut TcpLink);

impl Broker {
    /// The ids of all connections, those of internal clients too.
    pub fn connection_ids(&self) -> Vec<ConnectionId> {
        let mut ids = Vec::new();
        for (cell, handle) in (0..).zip(self.shared().cells.get().into_iter().flatten()) {
            let keys = handle.connections.keys().into_iter();
            ids.extend(keys.map(|key| ConnectionId { cell, slot: key.slot, generation: key.generation }));
        }
        ids
    }

    /// Runs `f` on a connection under its lock; `None` if it is gone. No queue may be locked within `f`.
    pub fn with_connection<R>(
        &self,
        id: ConnectionId,
        f: impl FnOnce(&mut OpenConnection<'_>) -> R,
    ) -> Option<R> {
        self.shared().with_link(id, |link| f(&mut OpenConnection(link)))
    }
}

impl OpenConnection<'_> {
    /// The connection's number, unique while the broker runs; 0 for an internal client.
    pub fn number(&self) -> u64 {
        self.0.wire.client.number
    }

    /// The protocol that it speaks; `None` until one is chosen, and for an internal client.
    pub fn protocol(&self) -> Option<Spoken> {
        self.0.wire.client.protocol
    }

    /// The client's address.
    pub fn source(&self) -> SocketAddr {
        self.0.wire.client.source
    }

    /// The local address.
    pub fn local(&self) -> SocketAddr {
        self.0.wire.client.local
    }

    /// When it was opened.
    pub fn since(&self) -> Time {
        self.0.wire.client.since
    }

    /// When bytes were last read or written.
    pub fn last_activity(&self) -> Time {
        let client = &self.0.wire.client;
        client.since.max(client.written_at).max(client.traffic.read_at())
    }

    /// Facts that the client reported at login.
    pub fn facts(&self) -> &ClientFacts {
        &self.0.wire.client.facts
    }

    /// Messages that the client published.
    pub fn published(&self) -> u64 {
        self.0.wire.client.traffic.messages()
    }

    /// What the client's next publish waits for.
    pub fn waits_for(&self) -> Option<PublisherWait> {
        self.0.wire.client.traffic.waits_for()
    }

    /// Bytes read from the client.
    pub fn received_bytes(&self) -> u64 {
        self.0.wire.client.traffic.bytes()
    }

    /// The outbound half: sessions, readers and what is to be written.
    pub fn outbound(&self) -> &Outbound {
        &self.0.outbound
    }

    /// The connection's traffic, with the index of its kind; `None` for an internal client.
    pub fn sums(&self) -> Option<(usize, Sums)> {
        Sums::of(&self.0.wire.client, &self.0.outbound)
    }

    /// Asks the connection's task to describe its sessions. If the connection ends first, `inspector` is dropped.
    pub fn inspect(&mut self, inspector: Inspector) {
        self.0.inspect(inspector);
    }
}
