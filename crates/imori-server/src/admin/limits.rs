//! `/api/vhost-limits` and `/api/user-limits`: the limits of vhosts and users.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use imori_core::authorize::Identity;
use serde_json::{Value, json};

use crate::operations::limits::{Limited, Limits, set_limit};
use crate::requests::administered::Administered;
use crate::requests::answer::{done, json_with, not_found};
use crate::requests::body::Body;
use crate::requests::operation_error::OperationError;

type Broker = State<Arc<Administered>>;

/// Lists the limits of all vhosts or users that have any.
pub(super) async fn all(of: Limited, State(broker): Broker) -> Response {
    let all = of.all(&broker.shared.access.objects());
    let rows: Value = all
        .iter()
        .filter(|(_, limits)| !limits.is_empty())
        .map(|(name, limits)| row(of, &broker, name, limits))
        .collect();
    json_with(StatusCode::OK, &rows)
}

/// The limits of one vhost or user, as a list with one row or none.
pub(super) async fn one(of: Limited, State(broker): Broker, Path(name): Path<String>) -> Response {
    match of.find(&broker.shared.access.objects(), &name) {
        Some(limits) if limits.is_empty() => json_with(StatusCode::OK, &json!([])),
        Some(limits) => json_with(StatusCode::OK, &json!([row(of, &broker, &name, &limits)])),
        None => not_found(),
    }
}

/// A row in RabbitMQ's shape, plus the current use of each limit.
fn row(of: Limited, broker: &Administered, name: &str, limits: &Limits) -> Value {
    let mut used = of.used(&broker.shared, name).unwrap_or_default();
    used.retain(|limit, _| limits.contains_key(*limit));
    json!({of.word(): name, "value": limits, "used": used})
}

/// Sets a limit.
pub(super) async fn put(
    of: Limited,
    State(broker): Broker,
    Extension(identity): Extension<Identity>,
    Path(names): Path<(String, String)>,
    body: Body,
) -> Result<Response, OperationError> {
    let value: i64 = body.required("value")?;
    set_limit(&broker, &identity, of, names, Some(value)).await?;
    Ok(done())
}

/// Removes a limit.
pub(super) async fn delete(
    of: Limited,
    State(broker): Broker,
    Extension(identity): Extension<Identity>,
    Path(names): Path<(String, String)>,
) -> Result<Response, OperationError> {
    set_limit(&broker, &identity, of, names, None).await?;
    Ok(done())
}
