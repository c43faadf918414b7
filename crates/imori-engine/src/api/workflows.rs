//! The inspection of workflows: `/workflows/inspect`.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::State;
use imori_automation::orquesta::Workflow;
use imori_automation::value::Value;

use crate::answers::{Answer, ApiError, ok};
use crate::engine::Engine;
use crate::parameters::RegisteredActions;

/// All errors of a workflow of orquesta: of its document, and of its calls of the actions that are registered. The body is
/// the document as text, or as a JSON text.
pub(super) async fn inspect(State(engine): State<Arc<Engine>>, body: Bytes) -> Answer {
    let text = match Value::from_json(&body) {
        Ok(Value::String(text)) => text,
        _ => {
            String::from_utf8(body.to_vec()).map_err(|_| ApiError::bad_request("the workflow is no UTF-8"))?
        }
    };
    let actions = RegisteredActions(engine.registry());
    let problems = Workflow::read_with(&text, &actions).err().unwrap_or_default();
    ok(problems.iter().map(|problem| problem.to_value()).collect::<Vec<_>>())
}
