//! `/api/vhosts`: lists, creates and deletes vhosts while the broker runs.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use imori_core::authorize::Identity;
use imori_core::id::VhostId;
use serde_json::{Value, json};

use crate::operations::vhosts::{self, Totals};
use crate::requests::administered::Administered;
use crate::requests::answer::{created, done, json_with, not_found};
use crate::requests::body::Body;
use crate::requests::list::{ListQuery, list};
use crate::requests::operation_error::OperationError;

/// Lists the vhosts that the user may see.
pub(super) async fn vhosts(
    State(broker): State<Arc<Administered>>,
    Extension(identity): Extension<Identity>,
    Query(pairs): Query<Vec<(String, String)>>,
) -> Response {
    let mut rows = Vec::new();
    for (name, id) in broker.vhosts(&identity) {
        rows.push((name.to_string(), row(&broker, &name.to_string(), id).await));
    }
    list(ListQuery::read(&pairs), rows, |(name, _)| Some(name.clone()), |(_, row)| Some(row.clone())).await
}

/// One vhost.
pub(super) async fn vhost(
    State(broker): State<Arc<Administered>>,
    Extension(identity): Extension<Identity>,
    Path(name): Path<String>,
) -> Response {
    match broker.vhost(&identity, &name) {
        Some(id) => json_with(StatusCode::OK, &row(&broker, &name, id).await),
        None => not_found(),
    }
}

async fn row(broker: &Administered, name: &str, id: VhostId) -> Value {
    let Totals { ready, unsettled } = Totals::of(broker, &[id]).await;
    let facts = broker.shared.access.objects().vhosts.get(name).cloned().unwrap_or_default();
    json!({
        "name": name,
        "description": facts.description,
        "tags": facts.tags,
        "metadata": {"description": facts.description, "tags": facts.tags},
        "tracing": false,
        "default_queue_type": "classic",
        "cluster_state": {broker.node.as_str(): "running"},
        "messages": ready + unsettled,
        "messages_ready": ready,
        "messages_unacknowledged": unsettled,
    })
}

/// Creates a vhost, or changes its description and tags.
pub(super) async fn put_vhost(
    State(broker): State<Arc<Administered>>,
    Path(name): Path<String>,
    body: Body,
) -> Result<Response, OperationError> {
    let (description, tags) = (body.get("description")?, body.words("tags")?);
    let is_new = vhosts::put_vhost(&broker, name, description, tags).await?;
    Ok(if is_new { created() } else { done() })
}

/// Deletes a vhost with its connections, queues, exchanges and permissions.
pub(super) async fn delete_vhost(
    State(broker): State<Arc<Administered>>,
    Path(name): Path<String>,
) -> Result<Response, OperationError> {
    vhosts::delete_vhost(&broker, name).await?;
    Ok(done())
}
