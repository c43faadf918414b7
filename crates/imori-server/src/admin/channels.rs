//! `/api/channels`, and `/api/connections/{name}/sessions`: the open sessions of clients.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use imori_amqp10::connection::{LinkDirection, SessionDetails};
use imori_core::authorize::Identity;
use imori_core::id::ConnectionId;
use imori_core::outbound::SessionInspection;
use serde_json::{Value, json};

use crate::http::rest_at;
use crate::operations::connections::{connection_ids, name};
use crate::operations::links::session_details;
use crate::requests::administered::Administered;
use crate::requests::answer::json_with;
use crate::requests::list::{ListQuery, list};
use crate::requests::operation_error::OperationError;

/// A session of a connection.
struct Key {
    connection: ConnectionId,
    session: SessionInspection,
}

/// Lists the channels. Rows lack a channel's mode and publish counts, which only its connection knows.
pub(super) async fn channels(
    State(broker): State<Arc<Administered>>,
    Extension(identity): Extension<Identity>,
    Query(pairs): Query<Vec<(String, String)>>,
) -> Response {
    let mut keys = Vec::new();
    for (index, connection) in connection_ids(&broker, &identity).into_iter().enumerate() {
        broker.shared.with_link(connection, |link| {
            keys.extend(link.outbound.open_sessions().map(|session| Key { connection, session }));
        });
        rest_at(index).await;
    }
    let (named, shown) = (Arc::clone(&broker), broker);
    let name_of =
        move |key: &Key| named.shared.with_link(key.connection, |link| channel_name(&name(link), key));
    list(ListQuery::read(&pairs), keys, name_of, move |key| row(&shown, key)).await
}

/// Lists the sessions of an AMQP 1.0 connection with their links.
pub(super) async fn sessions(
    State(broker): State<Arc<Administered>>,
    Extension(identity): Extension<Identity>,
    Path(name): Path<String>,
) -> Result<Response, OperationError> {
    let sessions = session_details(&broker, &identity, &name).await?;
    Ok(json_with(StatusCode::OK, &sessions.iter().map(session_row).collect()))
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

fn row(broker: &Administered, key: &Key) -> Option<Value> {
    let seen = broker.shared.with_link(key.connection, |link| {
        let client = &link.wire.client;
        (name(link), client.facts.user.clone(), client.facts.vhost, client.source)
    });
    let (connection, user, vhost, source) = seen?;
    let SessionInspection { id, window, unsettled, readers, .. } = key.session;
    Some(json!({
        "name": channel_name(&connection, key),
        "number": id.0,
        "node": broker.node,
        "user": user,
        "user_who_performed_action": user,
        "vhost": vhost.map(|vhost| broker.vhost_name(vhost)),
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
