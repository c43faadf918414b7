//! `/api/channels`, and `/api/connections/{name}/sessions`: the open sessions of clients.

use axum::extract::{Path, Query};
use axum::response::Response;
use imori_amqp10::connection::{LinkDirection, SessionDetails};
use imori_core::id::ConnectionId;
use imori_core::outbound::SessionInspection;
use serde_json::{Value, json};

use crate::http::rest_at;
use crate::objects::operation_error::OperationError;
use crate::operations::connections::{connection_ids, name};
use crate::operations::readers::session_details;
use crate::requests::admin_state::AdminState;
use crate::requests::answer::Answer;
use crate::requests::list::{ListQuery, list};
use crate::requests::operator::Operator;

/// A session of a connection.
struct Key {
    connection: ConnectionId,
    session: SessionInspection,
}

/// Lists the channels. Rows lack a channel's mode and publish counts, which only its connection knows.
pub(super) async fn channels(operator: Operator, Query(pairs): Query<Vec<(String, String)>>) -> Response {
    let mut keys = Vec::new();
    for (index, id) in connection_ids(operator.broker(), &operator.identity).into_iter().enumerate() {
        operator.broker().with_connection(id, |connection| {
            let sessions = connection.outbound().open_sessions();
            keys.extend(sessions.map(|session| Key { connection: id, session }));
        });
        rest_at(index).await;
    }
    let (named, shown) = (operator.broker().clone(), operator.state);
    let name_of = move |key: &Key| {
        named.with_connection(key.connection, |connection| channel_name(&name(connection), key))
    };
    list(ListQuery::read(&pairs), keys, name_of, move |key| row(&shown, key)).await
}

/// Lists the sessions of an AMQP 1.0 connection with their links.
pub(super) async fn sessions(operator: Operator, Path(name): Path<String>) -> Result<Answer, OperationError> {
    let sessions = session_details(operator.broker(), &operator.identity, &name).await?;
    Ok(Answer::of(sessions.iter().map(session_row).collect()))
}

/// A session as RabbitMQ shows it. The `handle` of a link is the same at both ends.
fn session_row(session: &SessionDetails) -> Value {
    let of = |direction| session.links.iter().filter(move |link| link.direction == direction);
    let incoming = of(LinkDirection::Incoming).map(|link| {
        json!({
            "handle": link.handle,
            "link_name": link.name,
            "snd_settle_mode": link.snd_settle_mode,
            "rcv_settle_mode": link.rcv_settle_mode,
            "target_address": link.address,
            "max_message_size": link.message_bytes_max,
            "delivery_count": link.delivery_count,
            "credit": link.credit,
        })
    });
    let outgoing = of(LinkDirection::Outgoing).map(|link| {
        json!({
            "handle": link.handle,
            "link_name": link.name,
            "snd_settle_mode": link.snd_settle_mode,
            "rcv_settle_mode": link.rcv_settle_mode,
            "send_settled": link.snd_settle_mode == "settled",
            "source_address": link.address,
            "queue_name": link.queue.as_ref().map(ToString::to_string),
            "max_message_size": link.message_bytes_max,
            "delivery_count": link.delivery_count,
            "credit": link.credit,
            "unsettled_deliveries": link.unsettled,
        })
    });
    json!({
        "channel_number": session.channel,
        "handle_max": session.handle_max,
        "next_incoming_id": session.next_incoming_id,
        "incoming_window": session.incoming_window,
        "next_outgoing_id": session.next_outgoing_id,
        "remote_incoming_window": session.remote_incoming_window,
        "outgoing_unsettled_deliveries": session.unsettled,
        "incoming_links": incoming.collect::<Value>(),
        "outgoing_links": outgoing.collect::<Value>(),
    })
}

fn channel_name(connection: &str, key: &Key) -> String {
    format!("{connection} ({})", key.session.id.0)
}

fn row(state: &AdminState, key: &Key) -> Option<Value> {
    let seen = state.broker.with_connection(key.connection, |connection| {
        let facts = connection.facts();
        (name(connection), facts.user.clone(), facts.vhost, connection.source())
    });
    let (connection, user, vhost, source) = seen?;
    let SessionInspection { id, window, unsettled, readers, .. } = key.session;
    Some(json!({
        "name": channel_name(&connection, key),
        "number": id.0,
        "node": state.node,
        "user": user,
        "user_who_performed_action": user,
        "vhost": vhost.map(|vhost| state.broker.vhost_name(vhost)),
        "state": "running",
        "consumer_count": readers,
        "messages_unacknowledged": unsettled,
        "global_prefetch_count": window.unwrap_or(0),
        "connection_details": {
            "name": connection,
            "peer_host": source.ip().to_canonical(),
            "peer_port": source.port(),
        },
    }))
}
