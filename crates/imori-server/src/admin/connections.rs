//! `/api/connections`: clients, and the end that an operator makes of one.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Extension;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use imori_core::authorize::{Action, Identity, Object, authorize};
use imori_core::id::{ConnectionId, VhostId};
use imori_core::outbound::CutReason;
use imori_core::turn::ClientFacts;
use imori_core::world::World;
use serde_json::{Map, Value, json};
use tracing::info;

use crate::clock::millis;
use crate::http::rest_at;
use crate::requests::administered::Administered;
use crate::requests::answer::{done, ended, json_with, not_found};
use crate::requests::list::{Columns, ListQuery, list};
use crate::requests::on_cell::on_cell;
use crate::shared::TcpLink;

/// The reason that a client is told where the operator gives none, in RabbitMQ's words.
const CLOSED: &str = "Closed via management plugin";

type Broker = State<Arc<Administered>>;
type Pairs = Query<Vec<(String, String)>>;

/// The list of connections.
pub(super) async fn connections(
    State(broker): Broker,
    Extension(identity): Extension<Identity>,
    Query(pairs): Pairs,
) -> Response {
    let keys = connection_ids(&broker, &identity);
    let (named, shown) = (Arc::clone(&broker), broker);
    let name_of = move |id: &ConnectionId| named.shared.with_link(*id, |link| name(link));
    list(ListQuery::read(&pairs), keys, name_of, move |id| row(&shown, *id)).await
}

/// One connection.
pub(super) async fn connection(
    State(broker): Broker,
    Extension(identity): Extension<Identity>,
    Path(name): Path<String>,
    Query(pairs): Pairs,
) -> Response {
    let columns = pairs.iter().find(|(name, _)| name == "columns").map(|(_, columns)| columns.as_str());
    let found = find(&broker, &identity, &name).await;
    match found.and_then(|id| row(&broker, id)) {
        Some(row) => json_with(StatusCode::OK, &Columns::read(columns.unwrap_or_default()).of(row)),
        None => not_found(),
    }
}

/// Closes a connection: its client is told the reason. One that is gone already is as good as closed.
pub(super) async fn close_connection(
    State(broker): Broker,
    Extension(identity): Extension<Identity>,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Response {
    let reason = headers.get("x-reason").and_then(|reason| reason.to_str().ok());
    let reason: Box<str> = reason.filter(|reason| !reason.is_empty()).unwrap_or(CLOSED).into();
    let Some(id) = find(&broker, &identity, &name).await else {
        return not_found();
    };
    info!(connection = %name, user = %identity.user, %reason, "an operator closes a connection");
    let close = move |cell: &crate::cell::Cell| {
        cell.with_outbound(id, |outbound| outbound.cut(CutReason::ClosedByOperator { reason }));
    };
    match on_cell(&broker.shared, id.cell, close).await {
        Some(()) => done(),
        None => ended(),
    }
}

/// The connections that speak a protocol: those of the user, or all for one who monitors.
pub(super) fn connection_ids(broker: &Administered, identity: &Identity) -> Vec<ConnectionId> {
    let sees_all = authorize(identity, Action::Monitor, VhostId(0), Object::Broker).is_ok();
    let user = identity.user.to_string();
    let mut ids = Vec::new();
    for (cell, handle) in (0..).zip(broker.cells()) {
        let keys = handle.connections.keys().into_iter();
        ids.extend(keys.map(|key| ConnectionId { cell, slot: key.slot, generation: key.generation }));
    }
    let is_shown = |link: &mut TcpLink| {
        let client = &link.wire.client;
        client.protocol.is_some() && (sees_all || client.facts.user == user)
    };
    ids.retain(|id| broker.shared.with_link(*id, is_shown) == Some(true));
    ids
}

/// The name of a connection: the addresses of both its ends.
pub(super) fn name(link: &TcpLink) -> String {
    let client = &link.wire.client;
    format!("{} -> {}", plain(client.source), plain(client.local))
}

/// An address of IPv4 in the clothes of IPv6 as what it is.
fn plain(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

async fn find(broker: &Administered, identity: &Identity, wanted: &str) -> Option<ConnectionId> {
    let (source, local) = wanted.split_once(" -> ")?;
    let (source, local): (SocketAddr, SocketAddr) = (source.parse().ok()?, local.parse().ok()?);
    for (index, id) in connection_ids(broker, identity).into_iter().enumerate() {
        let ends = broker.shared.with_link(id, |link| (link.wire.client.source, link.wire.client.local));
        if ends.is_some_and(|(one, other)| plain(one) == source && plain(other) == local) {
            return Some(id);
        }
        rest_at(index).await;
    }
    None
}

/// A connection as it is now. Its lock is held for a copy, and the JSON is made behind it.
fn row(broker: &Administered, id: ConnectionId) -> Option<Value> {
    let seen = broker.shared.with_link(id, |link| {
        let (client, outbound) = (&link.wire.client, &link.outbound);
        let state = match (outbound.is_ended(), client.facts.user.is_empty()) {
            (true, _) => "closing",
            (false, true) => "starting",
            (false, false) => "running",
        };
        let counts = json!({
            "channels": outbound.open_sessions().count(),
            "recv_oct": client.traffic.bytes(),
            "send_oct": outbound.appended(),
            "send_pend": outbound.unsent(),
        });
        (name(link), client.facts.clone(), client.source, client.local, client.since, state, counts)
    });
    let (name, facts, source, local, since, state, counts) = seen?;
    let properties = properties(&facts);
    let mut row = json!({
        "name": name,
        "node": broker.node,
        "type": "network",
        "protocol": facts.protocol,
        "user": facts.user,
        "user_who_performed_action": facts.user,
        "vhost": facts.vhost.map(|vhost| broker.vhost_name(vhost)),
        "state": state,
        "ssl": false,
        "host": local.ip().to_canonical(),
        "port": local.port(),
        "peer_host": source.ip().to_canonical(),
        "peer_port": source.port(),
        "connected_at": millis(since.since(imori_core::time::Time::default())),
    });
    let optional = [
        ("auth_mechanism", json!(facts.mechanism), !facts.mechanism.is_empty()),
        ("channel_max", json!(facts.sessions_max), facts.sessions_max.is_some()),
        ("frame_max", json!(facts.frame_bytes_max), facts.frame_bytes_max.is_some()),
        ("timeout", json!(facts.heartbeat_s), facts.heartbeat_s.is_some()),
        (
            "user_provided_name",
            properties.get("connection_name").cloned().unwrap_or_default(),
            properties.get("connection_name").is_some_and(Value::is_string),
        ),
    ];
    if let (Value::Object(row), Value::Object(counts)) = (&mut row, counts) {
        row.extend(counts);
        row.extend(
            optional
                .into_iter()
                .filter(|(_, _, is_there)| *is_there)
                .map(|(name, value, _)| (name.to_owned(), value)),
        );
        row.insert(String::from("client_properties"), Value::Object(properties));
    }
    Some(row)
}

/// The properties that a client told of itself; in a protocol that has no table of them, those that it knows.
fn properties(facts: &ClientFacts) -> Map<String, Value> {
    if let Ok(Value::Object(properties)) = serde_json::from_str(&facts.properties) {
        return properties;
    }
    let known =
        [("connection_name", &facts.name), ("platform", &facts.language), ("version", &facts.version)];
    let told = known.into_iter().filter(|(_, value)| !value.is_empty());
    told.map(|(name, value)| (name.to_owned(), json!(value))).collect()
}
