//! Traffic of connections, summed by protocol.

use std::sync::Mutex;

use imori_core::activity::ConnectionActivity;
use imori_core::outbound::Outbound;

use super::client::Client;
use crate::config::Spoken;
use crate::slots::unpoisoned;

/// Kinds of connections: one per protocol, and one for connections without a protocol yet.
pub const KINDS: usize = Spoken::ALL.len() + 1;

/// Traffic of a set of connections.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Sums {
    /// Number of connections.
    pub connections: u64,
    /// Connections that have published.
    pub publishers: u64,
    /// Messages published.
    pub messages_in: u64,
    /// Bytes read.
    pub bytes_in: u64,
    /// Deliveries from queues, live subscriptions and inboxes.
    pub messages_out: u64,
    /// Bytes for the clients, written or buffered.
    pub bytes_out: u64,
    /// Sessions opened and closed, deliveries, outcomes and confirms.
    pub activity: ConnectionActivity,
}

/// Sums for each kind, indexed by [`kind`].
pub type SumsByKind = [Sums; KINDS];

/// Index of a protocol in [`SumsByKind`].
pub fn kind(protocol: Option<Spoken>) -> usize {
    protocol.map_or(Spoken::ALL.len(), |protocol| protocol as usize)
}

impl Sums {
    /// Traffic and kind of one connection; `None` for an internal client.
    pub(crate) fn of(client: &Client, outbound: &Outbound) -> Option<(usize, Sums)> {
        if client.number == 0 {
            return None;
        }
        let messages_in = client.traffic.messages();
        let sums = Sums {
            connections: 1,
            publishers: u64::from(messages_in > 0),
            messages_in,
            bytes_in: client.traffic.bytes(),
            messages_out: outbound.delivered(),
            bytes_out: outbound.appended(),
            activity: *outbound.activity(),
        };
        Some((kind(client.protocol), sums))
    }

    /// Raises each sum that never decreases to the one of `other`, if that is higher.
    pub fn raise_to(&mut self, other: &Sums) {
        self.connections = self.connections.max(other.connections);
        self.messages_in = self.messages_in.max(other.messages_in);
        self.bytes_in = self.bytes_in.max(other.bytes_in);
        self.messages_out = self.messages_out.max(other.messages_out);
        self.bytes_out = self.bytes_out.max(other.bytes_out);
        self.activity.raise_to(&other.activity);
    }

    /// Adds the sums of `other`.
    pub fn add(&mut self, other: &Sums) {
        self.connections += other.connections;
        self.publishers += other.publishers;
        self.messages_in += other.messages_in;
        self.bytes_in += other.bytes_in;
        self.messages_out += other.messages_out;
        self.bytes_out += other.bytes_out;
        self.activity.add(&other.activity);
    }
}

/// Traffic of a cell's closed connections.
#[derive(Debug, Default)]
pub(crate) struct Gone(Mutex<SumsByKind>);

impl Gone {
    /// Adds the traffic of a connection that is closing.
    pub(crate) fn add(&self, client: &Client, outbound: &Outbound) {
        if let Some((kind, sums)) = Sums::of(client, outbound)
            && let Some(of_kind) = unpoisoned(self.0.lock()).get_mut(kind)
        {
            of_kind.add(&sums);
        }
    }

    /// Sums by kind.
    pub(crate) fn sums(&self) -> SumsByKind {
        *unpoisoned(self.0.lock())
    }
}
