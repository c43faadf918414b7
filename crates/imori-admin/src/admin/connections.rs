//! `/api/connections`: lists, shows and closes connections.

use axum::extract::{Path, Query};
use axum::http::HeaderMap;
use axum::response::Response;
use imori_core::id::ConnectionId;
use serde_json::{Value, json};

use crate::milliseconds::millis;
use crate::objects::operation_error::OperationError;
use crate::operations::connections;
use crate::operations::connections::{
    ConnectionFacts, client_properties, connection_ids, find_connection, name,
};
use crate::requests::admin_state::AdminState;
use crate::requests::answer::Answer;
use crate::requests::list::{Columns, ListQuery, list};
use crate::requests::operator::Operator;

/// The default reason sent to the client of a closed connection, in RabbitMQ's words.
const CLOSED: &str = "Closed via management plugin";

type Pairs = Query<Vec<(String, String)>>;

/// Lists the connections that the user may see.
pub(super) async fn connections(operator: Operator, Query(pairs): Pairs) -> Response {
    let keys = connection_ids(operator.broker(), &operator.identity);
    let (named, shown) = (operator.broker().clone(), operator.state);
    let name_of = move |id: &ConnectionId| named.with_connection(*id, |connection| name(connection));
    list(ListQuery::read(&pairs), keys, name_of, move |id| row(&shown, *id)).await
}

/// One connection.
pub(super) async fn connection(
    operator: Operator,
    Path(name): Path<String>,
    Query(pairs): Pairs,
) -> Result<Answer, OperationError> {
    let columns = pairs.iter().find(|(name, _)| name == "columns").map(|(_, columns)| columns.as_str());
    let id = find_connection(operator.broker(), &operator.identity, &name).await?;
    let row = row(&operator.state, id).ok_or(OperationError::Missing("connection", name))?;
    Ok(Answer::of(Columns::read(columns.unwrap_or_default()).of(row)))
}

/// Closes a connection and sends its client the reason. Also succeeds if the connection ends meanwhile.
pub(super) async fn close_connection(
    operator: Operator,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Result<Answer, OperationError> {
    let reason = headers.get("x-reason").and_then(|reason| reason.to_str().ok());
    let reason = reason.filter(|reason| !reason.is_empty()).unwrap_or(CLOSED);
    connections::close_connection(operator.broker(), &operator.identity, &name, reason).await?;
    Ok(Answer::done())
}

/// A connection as RabbitMQ shows it.
fn row(state: &AdminState, id: ConnectionId) -> Option<Value> {
    let shown = ConnectionFacts::of(&state.broker, id)?;
    let facts = &shown.client;
    let properties = client_properties(facts);
    let mut row = json!({
        "name": shown.name,
        "node": state.node,
        "type": "network",
        "protocol": facts.protocol,
        "user": facts.user,
        "user_who_performed_action": facts.user,
        "vhost": facts.vhost.map(|vhost| state.broker.vhost_name(vhost)),
        "state": shown.state.word(),
        "ssl": false,
        "host": shown.local.ip(),
        "port": shown.local.port(),
        "peer_host": shown.source.ip(),
        "peer_port": shown.source.port(),
        "connected_at": millis(shown.since.since(imori_core::time::Time::default())),
        "channels": shown.sessions,
        "recv_oct": shown.received_bytes,
        "send_oct": shown.sent_bytes,
        "send_pend": shown.unsent_bytes,
    });
    let optional = [
        ("container_id", json!(facts.name), facts.protocol == imori_amqp10::PROTOCOL),
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
    if let Value::Object(row) = &mut row {
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
