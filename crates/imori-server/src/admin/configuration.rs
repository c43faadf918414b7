//! `/v1/config`: the configuration in force, and reading it again.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde_json::{Value, json};

use crate::config::KeyChange;
use crate::operations::configuration::{KeyFacts, effect_word, in_force, reload};
use crate::requests::administered::Administered;
use crate::requests::answer::json_with;
use crate::requests::operation_error::OperationError;

/// Every key with its value, and when a reload takes another one over.
pub(super) async fn show(State(broker): State<Arc<Administered>>) -> Response {
    let row = |KeyFacts { key, value, effect }: KeyFacts| json!({"key": key, "value": value, "reload": effect_word(effect)});
    let keys: Vec<Value> = in_force(&broker).into_iter().map(row).collect();
    json_with(StatusCode::OK, &json!({"keys": keys}))
}

/// Reads the configuration again, and answers what was taken over and what waits for a restart.
pub(super) async fn reload_all(State(broker): State<Arc<Administered>>) -> Result<Response, OperationError> {
    let row = |change: &KeyChange| json!({"key": change.key, "from": change.from, "to": change.to});
    let reloaded = reload(&broker).await?;
    let rows = |changes: &[KeyChange]| changes.iter().map(row).collect::<Vec<_>>();
    let answer = json!({"taken_over": rows(&reloaded.taken_over), "waiting": rows(&reloaded.waiting)});
    Ok(json_with(StatusCode::OK, &answer))
}
