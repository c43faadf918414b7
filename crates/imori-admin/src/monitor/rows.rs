//! Current state of the connections, one row of numbers each.

use std::net::SocketAddr;

use imori_core::id::ConnectionId;
use imori_core::time::Time;
use imori_server::broker::OpenConnection;
use imori_server::config::Spoken;

use super::monitor_state::MonitorState;

/// State and counters of one connection.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    /// The id under which the broker finds the connection.
    pub id: ConnectionId,
    /// The connection's number in responses.
    pub number: u64,
    /// The protocol that the client speaks.
    pub protocol: Spoken,
    /// The client's address.
    pub source: SocketAddr,
    /// When the connection was opened.
    pub since: Time,
    /// When the client last sent or received something.
    pub last_activity: Time,
    /// Bytes queued for the client and not yet sent.
    pub pending_bytes: usize,
    /// Messages from the client.
    pub messages_in: u64,
    /// Messages to the client.
    pub messages_out: u64,
    /// Bytes from the client.
    pub bytes_in: u64,
    /// Bytes to the client.
    pub bytes_out: u64,
    /// Its consumers and subscriptions.
    pub subscriptions: usize,
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
