//! The store of the automation: `/imori/store`.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use imori_automation::value::{Map, Value};
use tracing::warn;

use crate::answers::{Answer, ApiError, ok};
use crate::engine::{Engine, Standing};

/// Makes the definitions know the store that there is, or a new one if it is missing, and lets the engine start with it.
pub(super) async fn adopt(State(engine): State<Arc<Engine>>) -> Answer {
    let is_adoptable = matches!(&*engine.standing(), Standing::Away { is_adoptable: true, .. });
    if !is_adoptable {
        let reason = "the automation has no store to adopt: it uses its store, or waits for it; see the log of the broker";
        return Err(ApiError::new(StatusCode::CONFLICT, reason));
    }
    let found = engine.found_store().await?;
    if let Err(error) = engine.mark_store(found).await {
        return Err(ApiError::unavailable(error.to_string()));
    }
    warn!(user = engine.user(), "the automation's store is adopted");
    engine.note_adoption();
    let adopted: Map = [("adopted", Value::Bool(true))].into_iter().collect();
    ok(adopted)
}
