//! `/api/policies` and `/api/operator-policies`: settings for queues and exchanges whose names match a pattern.

use axum::extract::Path;
use axum::http::StatusCode;
use imori_server::access::{PolicyKind, PolicyRow, SetPolicy};
use serde_json::{Value, json};

use crate::objects::operation_error::OperationError;
use crate::requests::answer::Answer;
use crate::requests::body::Body;
use crate::requests::operator::Operator;

/// Lists the policies of a kind in one vhost, or in all vhosts that the user may see, lowest priority first.
pub(super) async fn policies(kind: PolicyKind, operator: Operator) -> Result<Answer, OperationError> {
    let objects = operator.broker().access().objects();
    let mut rows = Vec::new();
    for vhost in operator.vhost_ids()? {
        let vhost = operator.broker().vhost_name(vhost);
        let of_kind = objects.policies_of_kind(kind, &vhost);
        rows.extend(of_kind.map(|(name, policy)| (policy.row.priority, row(&vhost, name, policy))));
    }
    rows.sort_by_key(|(priority, _)| *priority);
    let rows: Value = rows.into_iter().map(|(_, row)| row).collect();
    Ok(Answer::of(rows))
}

/// One policy.
pub(super) async fn policy(
    kind: PolicyKind,
    operator: Operator,
    Path((_, name)): Path<(String, String)>,
) -> Result<Answer, OperationError> {
    let vhost = operator.in_vhost()?.name;
    let found = operator.broker().access().policy((kind, &vhost, &name));
    let policy = found.ok_or_else(|| OperationError::Missing(kind.word(), name.clone()))?;
    Ok(Answer::of(row(&vhost, &name, &policy)))
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
    operator: Operator,
    Path((_, name)): Path<(String, String)>,
    Body(fields): Body,
) -> Result<Answer, OperationError> {
    let operator = operator.in_vhost()?;
    let row = PolicyRow::read(&fields)?;
    let without_effect: Vec<String> = row.without_effect().into_iter().map(str::to_owned).collect();
    let is_new = operator.put_policy(kind, name, row).await?;
    if without_effect.is_empty() {
        return Ok(Answer::put(is_new));
    }
    let status = if is_new { StatusCode::CREATED } else { StatusCode::OK };
    Ok(Answer::of(json!({"without_effect": without_effect})).with_status(status))
}

/// Deletes a policy; the next matching policy is in effect before this answers.
pub(super) async fn delete_policy(
    kind: PolicyKind,
    operator: Operator,
    Path((_, name)): Path<(String, String)>,
) -> Result<Answer, OperationError> {
    operator.in_vhost()?.delete_policy(kind, name).await?;
    Ok(Answer::done())
}
