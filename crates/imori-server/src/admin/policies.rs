//! `/api/policies` and `/api/operator-policies`: settings for queues and exchanges whose names match a pattern.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use imori_core::authorize::Identity;
use serde_json::{Value, json};

use crate::access::{PolicyKind, PolicyRow, SetPolicy};
use crate::operations::vhost_operator::VhostOperator;
use crate::requests::administered::Administered;
use crate::requests::answer::{created, done, json_with, not_found};
use crate::requests::body::Body;
use crate::requests::operation_error::OperationError;

type Broker = State<Arc<Administered>>;

/// Lists the policies of a kind in one vhost, or in all vhosts that the user may see, lowest priority first.
pub(super) async fn policies(
    kind: PolicyKind,
    State(broker): Broker,
    Extension(identity): Extension<Identity>,
    vhost: Option<Path<String>>,
) -> Response {
    let objects = broker.shared.access.objects();
    let vhosts: Vec<String> = match vhost {
        Some(Path(name)) if broker.vhost(&identity, &name).is_some() => vec![name],
        Some(_) => return not_found(),
        None => broker.vhosts(&identity).iter().map(|(name, _)| name.to_string()).collect(),
    };
    let mut rows = Vec::new();
    for vhost in &vhosts {
        let of_kind = objects.policies_of_kind(kind, vhost);
        rows.extend(of_kind.map(|(name, policy)| (policy.row.priority, row(vhost, name, policy))));
    }
    rows.sort_by_key(|(priority, _)| *priority);
    let rows: Value = rows.into_iter().map(|(_, row)| row).collect();
    json_with(StatusCode::OK, &rows)
}

/// One policy.
pub(super) async fn policy(
    kind: PolicyKind,
    State(broker): Broker,
    Extension(identity): Extension<Identity>,
    Path((vhost, name)): Path<(String, String)>,
) -> Response {
    let found = broker.vhost(&identity, &vhost);
    match found.and_then(|_| broker.shared.access.policy((kind, &vhost, &name))) {
        Some(policy) => json_with(StatusCode::OK, &row(&vhost, &name, &policy)),
        None => not_found(),
    }
}

/// A policy as RabbitMQ shows it.
pub(super) fn row(vhost: &str, name: &str, SetPolicy { row, .. }: &SetPolicy) -> Value {
    json!({
        "vhost": vhost,
        "name": name,
        "pattern": row.pattern,
        "apply-to": row.apply_to,
        "definition": row.definition,
        "priority": row.priority,
    })
}

/// Sets a policy, which is in effect before this answers. The answer lists the keys that have no effect in this
/// broker.
pub(super) async fn put_policy(
    kind: PolicyKind,
    State(broker): Broker,
    Extension(identity): Extension<Identity>,
    Path((vhost, name)): Path<(String, String)>,
    Body(fields): Body,
) -> Result<Response, OperationError> {
    let operator = VhostOperator::of(&broker, identity, &vhost)?;
    let row = PolicyRow::read(&fields)?;
    let without_effect: Vec<String> = row.without_effect().into_iter().map(str::to_owned).collect();
    let is_new = operator.put_policy(kind, name, row).await?;
    if without_effect.is_empty() {
        return Ok(if is_new { created() } else { done() });
    }
    let status = if is_new { StatusCode::CREATED } else { StatusCode::OK };
    Ok(json_with(status, &json!({"without_effect": without_effect})))
}

/// Deletes a policy; the next matching policy is in effect before this answers.
pub(super) async fn delete_policy(
    kind: PolicyKind,
    State(broker): Broker,
    Extension(identity): Extension<Identity>,
    Path((vhost, name)): Path<(String, String)>,
) -> Result<Response, OperationError> {
    VhostOperator::of(&broker, identity, &vhost)?.delete_policy(kind, name).await?;
    Ok(done())
}
