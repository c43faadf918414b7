//! Inquiries: `/inquiries`.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use imori_automation::value::{Map, Value};

use crate::answers::{Answer, ApiError, ListQuery, object, ok};
use crate::engine::Engine;
use crate::executions::Execution;
use crate::store::{Condition, EXECUTIONS};
use crate::workflows::AnswerError;

type Pairs = Query<Vec<(String, String)>>;
type Broker = State<Arc<Engine>>;

pub(super) async fn list(State(engine): Broker, Query(pairs): Pairs) -> Answer {
    let list = ListQuery::new(pairs);
    let query = list
        .stored(&EXECUTIONS, &[], "start_timestamp")?
        .with(Condition::Equal("runner", "inquirer".into()))
        .with(Condition::Equal("status", "pending".into()));
    let limit = list.limit()?;
    let rows = engine.store.find(query).await?;
    let page = rows.documents.iter().map(|document| list.shown(shape(document))).collect();
    list.answer(page, rows.total, limit)
}

pub(super) async fn show(State(engine): Broker, Path(id): Path<String>) -> Answer {
    ok(shape(find(&engine, &id).await?.document()))
}

pub(super) async fn respond(State(engine): Broker, Path(id): Path<String>, body: Bytes) -> Answer {
    let inquiry = find(&engine, &id).await?;
    let response = object(&body)?.remove("response").unwrap_or_default();
    match engine.answer(inquiry, response.clone(), engine.user()).await {
        Ok(()) => {}
        Err(AnswerError::Forbidden(reason)) => return Err(ApiError::new(StatusCode::FORBIDDEN, reason)),
        Err(AnswerError::Wrong(reason)) => return Err(ApiError::bad_request(reason)),
        Err(AnswerError::Store(error)) => return Err(error.into()),
    }
    let mut shown = Map::new();
    shown.insert("id", id);
    shown.insert("response", response);
    ok(shown)
}

/// The inquiry of this id, if it still waits for an answer.
async fn find(engine: &Engine, id: &str) -> Result<Execution, ApiError> {
    let document = engine.store.get(&EXECUTIONS, id).await?;
    let inquiry = Execution::stored(document.ok_or_else(|| ApiError::not_found("inquiry", id))?);
    let refused = |reason: &str| Err(ApiError::bad_request(format!("Inquiry \"{id}\" {reason}")));
    match (inquiry.text("runner"), inquiry.text("status")) {
        ("inquirer", "pending") => Ok(inquiry),
        ("inquirer", "timeout") => refused("timed out and cannot be responded to"),
        ("inquirer", _) => refused("has already been responded to"),
        _ => Err(ApiError::bad_request(format!("\"{id}\" is not an inquiry"))),
    }
}

fn shape(document: &Map) -> Map {
    let mut shown = Map::new();
    shown.insert("id", document.get("id").cloned().unwrap_or_default());
    let result = document.get("result");
    for key in ["route", "ttl", "users", "roles", "schema"] {
        shown.insert(key, result.and_then(|result| result.get(key)).cloned().unwrap_or(Value::Null));
    }
    shown
}
