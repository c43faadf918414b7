//! Connections: lists them, finds one by name, and closes one for an operator.

use std::net::SocketAddr;

use imori_core::authorize::{Action, Identity, Object, authorize};
use imori_core::id::{ConnectionId, VhostId};
use imori_core::time::Time;
use imori_core::turn::ClientFacts;
use imori_server::broker::{Broker, OpenConnection, PublisherWait};
use serde_json::{Map, Value, json};
use tracing::info;

use crate::http::{may_monitor, rest_at};
use crate::objects::operation_error::OperationError;

/// The state of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConnectionState {
    /// The client has not logged in.
    Starting,
    /// The client is logged in.
    Running,
    /// The connection has ended, but is not yet removed.
    Closing,
}

impl ConnectionState {
    /// The state's name in the admin APIs.
    pub(crate) fn word(self) -> &'static str {
        match self {
            ConnectionState::Starting => "starting",
            ConnectionState::Running => "running",
            ConnectionState::Closing => "closing",
        }
    }
}

/// The facts about a connection that the admin APIs show.
pub(crate) struct ConnectionFacts {
    pub(crate) name: String,
    pub(crate) client: ClientFacts,
    pub(crate) source: SocketAddr,
    pub(crate) local: SocketAddr,
    pub(crate) since: Time,
    pub(crate) state: ConnectionState,
    /// What its client's next publish waits for.
    pub(crate) waits_for: Option<PublisherWait>,
    pub(crate) sessions: usize,
    pub(crate) received_bytes: u64,
    pub(crate) sent_bytes: u64,
    pub(crate) unsent_bytes: usize,
}

impl ConnectionFacts {
    /// Copies the facts of a connection under its lock; `None` if the connection is gone.
    pub(crate) fn of(broker: &Broker, id: ConnectionId) -> Option<ConnectionFacts> {
        broker.with_connection(id, |connection| {
            let (facts, outbound) = (connection.facts(), connection.outbound());
            ConnectionFacts {
                name: name(connection),
                client: facts.clone(),
                source: plain(connection.source()),
                local: plain(connection.local()),
                since: connection.since(),
                state: match (outbound.is_ended(), facts.user.is_empty()) {
                    (true, _) => ConnectionState::Closing,
                    (false, true) => ConnectionState::Starting,
                    (false, false) => ConnectionState::Running,
                },
                waits_for: connection.waits_for(),
                sessions: outbound.open_sessions().count(),
                received_bytes: connection.received_bytes(),
                sent_bytes: outbound.appended(),
                unsent_bytes: outbound.unsent(),
            }
        })
    }
}

/// The connections that speak a protocol: the user's own, or all if the user may monitor.
pub(crate) fn connection_ids(broker: &Broker, identity: &Identity) -> Vec<ConnectionId> {
    let sees_all = may_monitor(identity);
    let user = identity.user.to_string();
    let mut ids = broker.connection_ids();
    let is_shown = |connection: &mut OpenConnection<'_>| {
        connection.protocol().is_some() && (sees_all || connection.facts().user == user)
    };
    ids.retain(|id| broker.with_connection(*id, is_shown) == Some(true));
    ids
}

/// The name of a connection: its source and local address.
pub(crate) fn name(connection: &OpenConnection<'_>) -> String {
    name_of(connection.source(), connection.local())
}

/// The name of a connection from this source to this local address.
pub(crate) fn name_of(source: SocketAddr, local: SocketAddr) -> String {
    format!("{} -> {}", plain(source), plain(local))
}

/// Turns an IPv4-mapped IPv6 address into the IPv4 address.
pub(crate) fn plain(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// Finds a connection by its name among the connections that the user may see.
///
/// # Errors
/// The user sees no connection of this name.
pub(crate) async fn find_connection(
    broker: &Broker,
    identity: &Identity,
    wanted: &str,
) -> Result<ConnectionId, OperationError> {
    let missing = || OperationError::Missing("connection", wanted.to_owned());
    let ends = wanted.split_once(" -> ").and_then(|(source, local)| {
        Some((source.parse::<SocketAddr>().ok()?, local.parse::<SocketAddr>().ok()?))
    });
    let (source, local) = ends.ok_or_else(missing)?;
    for (index, id) in connection_ids(broker, identity).into_iter().enumerate() {
        let ends = broker.with_connection(id, |connection| (connection.source(), connection.local()));
        if ends.is_some_and(|(one, other)| plain(one) == source && plain(other) == local) {
            return Ok(id);
        }
        rest_at(index).await;
    }
    Err(missing())
}

/// Finds a connection by its name, if the user may close it: the user's own, or any for an administrator.
///
/// # Errors
/// The user sees no connection of this name, or it is another user's.
pub(crate) async fn find_own_connection(
    broker: &Broker,
    identity: &Identity,
    wanted: &str,
) -> Result<ConnectionId, OperationError> {
    let id = find_connection(broker, identity, wanted).await?;
    let is_own = broker
        .with_connection(id, |connection| identity.user.as_bytes() == connection.facts().user.as_bytes());
    if is_own == Some(false) && authorize(identity, Action::Administer, VhostId(0), Object::Broker).is_err() {
        return Err(OperationError::NotPermitted(String::from(
            "the connection is another user's; only an administrator may end it or its consumers",
        )));
    }
    Ok(id)
}

/// Closes a connection and tells its client the reason. Succeeds too if the connection is already gone.
///
/// # Errors
/// There is no such connection, it is another user's, or the broker has stopped.
pub(crate) async fn close_connection(
    broker: &Broker,
    identity: &Identity,
    name: &str,
    reason: &str,
) -> Result<(), OperationError> {
    let id = find_own_connection(broker, identity, name).await?;
    info!(connection = %name, user = %identity.user, %reason, "an operator closes a connection");
    broker.close_connection(id, reason.into()).await.ok_or(OperationError::Ended)
}

/// The properties that the client sent. If its protocol has no properties table, the known facts: name, language,
/// version.
pub(crate) fn client_properties(facts: &ClientFacts) -> Map<String, Value> {
    if let Ok(Value::Object(properties)) = serde_json::from_str(&facts.properties) {
        return properties;
    }
    let known =
        [("connection_name", &facts.name), ("platform", &facts.language), ("version", &facts.version)];
    let told = known.into_iter().filter(|(_, value)| !value.is_empty());
    told.map(|(name, value)| (name.to_owned(), json!(value))).collect()
}
