//! `/api/vhosts` and `/api/whoami`.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use imori_core::authorize::Identity;
use imori_core::id::VhostId;
use serde_json::{Value, json};

use super::administered::Administered;
use super::answer::{json_with, not_found};
use super::list::{ListQuery, list};
use super::queues::queue_ids;
use crate::http::rest_at;
use crate::shared::queue_key;

/// Messages of queues, added up.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Totals {
    pub(super) ready: usize,
    pub(super) unsettled: usize,
}

impl Totals {
    /// The sums of these vhosts. Each queue is locked for two loads, one after the other.
    pub(super) async fn of(broker: &Administered, vhosts: &[VhostId]) -> Totals {
        let mut totals = Totals::default();
        for (index, (_, id)) in queue_ids(broker, vhosts).into_iter().enumerate() {
            let counted =
                broker.shared.queues.with(queue_key(id), |queue| (queue.ready_len(), queue.unsettled_len()));
            let (ready, unsettled) = counted.unwrap_or_default();
            totals.ready += ready;
            totals.unsettled += unsettled;
            rest_at(index).await;
        }
        totals
    }
}

/// The list of vhosts.
pub(super) async fn vhosts(
    State(broker): State<Arc<Administered>>,
    Query(pairs): Query<Vec<(String, String)>>,
) -> Response {
    let mut rows = Vec::new();
    for (name, id) in broker.vhosts() {
        rows.push((name.to_string(), row(&broker, &name.to_string(), id).await));
    }
    list(ListQuery::read(&pairs), rows, |(name, _)| Some(name.clone()), |(_, row)| Some(row.clone())).await
}

/// One vhost.
pub(super) async fn vhost(State(broker): State<Arc<Administered>>, Path(name): Path<String>) -> Response {
    match broker.vhost(&name) {
        Some(id) => json_with(StatusCode::OK, &row(&broker, &name, id).await),
        None => not_found(),
    }
}

async fn row(broker: &Administered, name: &str, id: VhostId) -> Value {
    let Totals { ready, unsettled } = Totals::of(broker, &[id]).await;
    json!({
        "name": name,
        "description": "",
        "tags": [],
        "tracing": false,
        "default_queue_type": "classic",
        "cluster_state": {broker.node.as_str(): "running"},
        "messages": ready + unsettled,
        "messages_ready": ready,
        "messages_unacknowledged": unsettled,
    })
}

/// The user of the request.
pub(super) async fn whoami(Extension(identity): Extension<Identity>) -> Response {
    json_with(StatusCode::OK, &json!({"name": identity.user.to_string(), "tags": ["administrator"]}))
}
