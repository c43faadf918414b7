//! `/api/vhosts`: lists, creates and deletes vhosts while the broker runs.

use axum::extract::{Path, Query};
use axum::response::Response;
use imori_core::id::VhostId;
use serde_json::{Value, json};

use crate::objects::operation_error::OperationError;
use crate::operations::vhost_operator::VhostOperator;
use crate::operations::vhosts;
use crate::operations::vhosts::Totals;
use crate::requests::admin_state::AdminState;
use crate::requests::answer::Answer;
use crate::requests::body::Body;
use crate::requests::list::{ListQuery, list};
use crate::requests::operator::Operator;

/// Lists the vhosts that the user may see.
pub(super) async fn vhosts(operator: Operator, Query(pairs): Query<Vec<(String, String)>>) -> Response {
    let mut rows = Vec::new();
    for (name, id) in operator.vhosts() {
        rows.push((name.to_string(), row(&operator.state, &name.to_string(), id).await));
    }
    list(ListQuery::read(&pairs), rows, |(name, _)| Some(name.clone()), |(_, row)| Some(row.clone())).await
}

/// One vhost.
pub(super) async fn vhost(operator: Operator) -> Result<Answer, OperationError> {
    let VhostOperator { vhost, name, .. } = operator.in_vhost()?;
    Ok(Answer::of(row(&operator.state, &name, vhost).await))
}

async fn row(state: &AdminState, name: &str, id: VhostId) -> Value {
    let Totals { ready, unsettled } = Totals::of(&state.broker, &[id]).await;
    let facts = state.broker.access().objects().vhosts.get(name).cloned().unwrap_or_default();
    json!({
        "name": name,
        "description": facts.description,
        "tags": facts.tags,
        "metadata": {"description": facts.description, "tags": facts.tags},
        "tracing": false,
        "default_queue_type": "classic",
        "cluster_state": {state.node.as_str(): "running"},
        "messages": ready + unsettled,
        "messages_ready": ready,
        "messages_unacknowledged": unsettled,
    })
}

/// Creates a vhost, or changes its description and tags.
pub(super) async fn put_vhost(
    operator: Operator,
    Path(name): Path<String>,
    body: Body,
) -> Result<Answer, OperationError> {
    let described = (body.get("description")?, body.words("tags")?);
    let is_new = vhosts::put_vhost(operator.broker(), &operator.identity, name, described).await?;
    Ok(Answer::put(is_new))
}

/// Deletes a vhost with its connections, queues, exchanges and permissions.
pub(super) async fn delete_vhost(
    operator: Operator,
    Path(name): Path<String>,
) -> Result<Answer, OperationError> {
    vhosts::delete_vhost(operator.broker(), name).await?;
    Ok(Answer::done())
}
