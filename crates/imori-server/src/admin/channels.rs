//! `/api/channels`: the sessions that clients opened.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Query, State};
use axum::response::Response;
use imori_core::authorize::Identity;
use imori_core::id::ConnectionId;
use imori_core::outbound::SessionInspection;
use serde_json::{Value, json};

use crate::http::rest_at;
use crate::operations::connections::{connection_ids, name};
use crate::requests::administered::Administered;
use crate::requests::list::{ListQuery, list};

/// A session of a connection.
struct Key {
    connection: ConnectionId,
    session: SessionInspection,
}

/// The list of channels. A mode of a channel, and what it has published, is known to its connection alone.
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
