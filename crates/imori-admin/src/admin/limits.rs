//! `/api/vhost-limits` and `/api/user-limits`: the limits of vhosts and users.

use axum::extract::Path;
use imori_server::broker::Broker;
use serde_json::{Value, json};

use crate::objects::operation_error::OperationError;
use crate::operations::limits::{Limited, Limits, set_limit};
use crate::requests::answer::Answer;
use crate::requests::body::Body;
use crate::requests::operator::Operator;

/// Lists the limits of all vhosts or users that have any.
pub(super) async fn all(of: Limited, operator: Operator) -> Answer {
    let broker = operator.broker();
    let all = of.all(&broker.access().objects());
    let rows: Value = all
        .iter()
        .filter(|(_, limits)| !limits.is_empty())
        .map(|(name, limits)| row(of, broker, name, limits))
        .collect();
    Answer::of(rows)
}

/// The limits of one vhost or user, as a list with one row or none.
pub(super) async fn one(
    of: Limited,
    operator: Operator,
    Path(name): Path<String>,
) -> Result<Answer, OperationError> {
    let found = of.find(&operator.broker().access().objects(), &name);
    let limits = found.ok_or_else(|| OperationError::Missing(of.word(), name.clone()))?;
    let row = (!limits.is_empty()).then(|| row(of, operator.broker(), &name, &limits));
    Ok(Answer::of(row.into_iter().collect()))
}

/// A row in RabbitMQ's shape, plus the current use of each limit.
fn row(of: Limited, broker: &Broker, name: &str, limits: &Limits) -> Value {
    let mut used = of.used(broker, name).unwrap_or_default();
    used.retain(|limit, _| limits.contains_key(*limit));
    json!({of.word(): name, "value": limits, "used": used})
}

/// Sets a limit.
pub(super) async fn put(
    of: Limited,
    operator: Operator,
    Path(names): Path<(String, String)>,
    body: Body,
) -> Result<Answer, OperationError> {
    let value: i64 = body.required("value")?;
    set_limit(operator.broker(), &operator.identity, of, names, Some(value)).await?;
    Ok(Answer::done())
}

/// Removes a limit.
pub(super) async fn delete(
    of: Limited,
    operator: Operator,
    Path(names): Path<(String, String)>,
) -> Result<Answer, OperationError> {
    set_limit(operator.broker(), &operator.identity, of, names, None).await?;
    Ok(Answer::done())
}
