//! Current state of the connections, one row of numbers each.

use std::net::SocketAddr;

use imori_core::id::ConnectionId;
use imori_core::time::Time;

use super::monitored::Monitored;
use crate::config::Spoken;
use crate::shared::TcpLink;

/// State and counters of one connection.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row {
    pub(super) id: ConnectionId,
    pub(super) number: u64,
    pub(super) protocol: Spoken,
    pub(super) source: SocketAddr,
    pub(super) since: Time,
    pub(super) last_activity: Time,
    pub(super) pending_bytes: usize,
    pub(super) messages_in: u64,
    pub(super) messages_out: u64,
    pub(super) bytes_in: u64,
    pub(super) bytes_out: u64,
    pub(super) subscriptions: usize,
}

/// Calls `show` for every connection with a protocol. Each is locked briefly, one after another.
pub(super) fn each_row(monitored: &Monitored, mut show: impl FnMut(Row)) {
    for (cell, handle) in (0..).zip(monitored.cells()) {
        for key in handle.connections.keys() {
            let id = ConnectionId { cell, slot: key.slot, generation: key.generation };
            if let Some(row) = handle.connections.with(key, |link| row(id, link)).flatten() {
                show(row);
            }
        }
    }
}

fn row(id: ConnectionId, link: &TcpLink) -> Option<Row> {
    let (client, outbound) = (&link.wire.client, &link.outbound);
    let traffic = &client.traffic;
    Some(Row {
        id,
        number: client.number,
        protocol: client.protocol?,
        source: client.source,
        since: client.since,
        last_activity: client.since.max(client.written_at).max(traffic.read_at()),
        pending_bytes: outbound.unsent(),
        messages_in: traffic.messages(),
        messages_out: outbound.delivered(),
        bytes_in: traffic.bytes(),
        bytes_out: outbound.appended(),
        subscriptions: outbound.readers_len(),
    })
}
