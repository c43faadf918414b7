//! Actions and runner types: `/actions` and `/runnertypes`.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::{Path, Query, State};
use axum::http::{HeaderValue, Response, StatusCode, header};
use imori_automation::value::{Map, Value};

use crate::answers::{Answer, ApiError, ListQuery, created, no_content, object, ok};
use crate::engine::Engine;
use crate::registration::ActionError;

type Pairs = Query<Vec<(String, String)>>;
type Broker = State<Arc<Engine>>;

pub(super) async fn list(State(engine): Broker, Query(pairs): Pairs) -> Answer {
    let registry = engine.registry();
    let filters: [(&str, &[&str]); 7] = [
        ("id", &["id"]),
        ("ref", &["ref"]),
        ("name", &["name"]),
        ("pack", &["pack"]),
        ("enabled", &["enabled"]),
        ("runner_type", &["runner_type"]),
        ("entry_point", &["entry_point"]),
    ];
    ListQuery::new(pairs).page(registry.actions.values().map(|action| &**action), &filters)
}

pub(super) async fn show(State(engine): Broker, Path(name): Path<String>) -> Answer {
    ok(Map::clone(&*find(&engine, &name)?))
}

/// The parameters of an action, with those of its runner.
pub(super) async fn parameters(State(engine): Broker, Path(name): Path<String>) -> Answer {
    let action = find(&engine, &name)?;
    let registry = engine.registry();
    let runner = action.get("runner_type").and_then(Value::as_str).unwrap_or_default();
    let runner =
        registry.runners.get(runner).and_then(|runner| runner.get("runner_parameters")?.as_map().cloned());
    let mut parameters = runner.unwrap_or_default();
    for (name, parameter) in action.get("parameters").and_then(Value::as_map).into_iter().flat_map(Map::iter)
    {
        parameters.insert(name, parameter.clone());
    }
    let mut shown = Map::new();
    shown.insert("parameters", parameters);
    ok(shown)
}

/// The text of an action's file.
pub(super) async fn entry_point(State(engine): Broker, Path(name): Path<String>) -> Answer {
    let action = find(&engine, &name)?;
    let text =
        engine.entry_point_text(&action).map_err(|error| ApiError::new(StatusCode::NOT_FOUND, error))?;
    let mut response = Response::new(Body::from(text));
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    Ok(response)
}

pub(super) async fn create(State(engine): Broker, body: Bytes) -> Answer {
    let action = engine.create_action(object(&body)?, false).await?;
    created(Map::clone(&*action))
}

pub(super) async fn change(State(engine): Broker, Path(name): Path<String>, body: Bytes) -> Answer {
    find(&engine, &name)?;
    let action = engine.create_action(object(&body)?, true).await?;
    ok(Map::clone(&*action))
}

pub(super) async fn delete(State(engine): Broker, Path(name): Path<String>) -> Answer {
    let action = find(&engine, &name)?;
    engine.delete_action(&action).await?;
    no_content()
}

pub(super) async fn list_runners(State(engine): Broker, Query(pairs): Pairs) -> Answer {
    let registry = engine.registry();
    let filters: [(&str, &[&str]); 3] = [("name", &["name"]), ("id", &["id"]), ("enabled", &["enabled"])];
    ListQuery::new(pairs).page(registry.runners.values().map(|runner| &**runner), &filters)
}

pub(super) async fn show_runner(State(engine): Broker, Path(name): Path<String>) -> Answer {
    let registry = engine.registry();
    let by_id =
        || registry.runners.values().find(|runner| runner.get("id").and_then(Value::as_str) == Some(&name));
    let runner = registry.runners.get(&name).or_else(by_id);
    ok(Map::clone(&**runner.ok_or_else(|| ApiError::not_found("runner", &name))?))
}

fn find(engine: &Engine, name: &str) -> Result<Arc<Map>, ApiError> {
    let registry = engine.registry();
    let by_id =
        || registry.actions.values().find(|action| action.get("id").and_then(Value::as_str) == Some(name));
    registry.actions.get(name).or_else(by_id).cloned().ok_or_else(|| ApiError::not_found("action", name))
}

impl From<ActionError> for ApiError {
    fn from(error: ActionError) -> ApiError {
        match error {
            ActionError::Wrong(reason) => ApiError::bad_request(reason),
            ActionError::Exists(reference, id) => {
                ApiError::conflict(format!("action `{reference}` exists already"), &id)
            }
            ActionError::OfPack(pack) => ApiError::bad_request(format!(
                "the action belongs to the folder of pack `{pack}`; change its file there and register the pack"
            )),
            ActionError::Store(error) => error.into(),
        }
    }
}
