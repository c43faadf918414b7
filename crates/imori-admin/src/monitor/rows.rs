//! Current state of the connections, one row of numbers each.

use std::net::SocketAddr;

use imori_core::id::ConnectionId;
use imori_core::time::Time;
use imori_server::broker::OpenConnection;
use imori_server::config::Spoken;

use super::monitor_state::MonitorState;

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
pub(super) fn each_row(state: &MonitorState, mut show: impl FnMut(Row)) {
    for id in state.broker.connection_ids() {
        if let Some(row) = state.broker.with_connection(id, |connection| row(id, connection)).flatten() {
            show(row);
        }
    }
}

fn row(id: ConnectionId, connection: &OpenConnection<'_>) -> Option<Row> {
    let outbound = connection.outbound();
    Some(Row {
        id,
        number: connection.number(),
        protocol: connection.protocol()?,
        source: connection.source(),
        since: connection.since(),
        last_activity: connection.last_activity(),
        pending_bytes: outbound.unsent(),
        messages_in: connection.published(),
        messages_out: outbound.delivered(),
        bytes_in: connection.received_bytes(),
        bytes_out: outbound.appended(),
        subscriptions: outbound.readers_len(),
    })
}
