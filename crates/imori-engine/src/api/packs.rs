//! Packs and their configurations: `/packs`, `/configs` and `/config_schemas`.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use imori_automation::value::{Map, Value};

use crate::answers::{Answer, ApiError, ListQuery, json, object, ok};
use crate::engine::Engine;
use crate::executions::Origin;
use crate::registry::RegisteredPack;

type Pairs = Query<Vec<(String, String)>>;
type Broker = State<Arc<Engine>>;

pub(super) async fn list(State(engine): Broker, Query(pairs): Pairs) -> Answer {
    let registry = engine.registry();
    let filters: [(&str, &[&str]); 3] = [("id", &["id"]), ("ref", &["ref"]), ("name", &["name"])];
    ListQuery::new(pairs).page(registry.packs.values().map(|pack| &pack.document), &filters)
}

pub(super) async fn show(State(engine): Broker, Path(name): Path<String>) -> Answer {
    ok(find(&engine, &name)?.document.clone())
}

/// Installs packs by the action `packs.install`.
pub(super) async fn install(State(engine): Broker, body: Bytes) -> Answer {
    let body = object(&body)?;
    let mut parameters = Map::new();
    for key in ["packs", "force", "skip_dependencies"] {
        if let Some(value) = body.get(key) {
            parameters.insert(key, value.clone());
        }
    }
    start(&engine, "packs.install", parameters).await
}

/// Removes packs by the action `packs.uninstall`.
pub(super) async fn uninstall(State(engine): Broker, body: Bytes) -> Answer {
    let body = object(&body)?;
    let parameters = [("packs", body.get("packs").cloned().unwrap_or_default())].into_iter().collect();
    start(&engine, "packs.uninstall", parameters).await
}

async fn start(engine: &Arc<Engine>, action: &str, parameters: Map) -> Answer {
    let origin = Origin { user: engine.user().to_owned(), ..Origin::default() };
    let execution = engine.request(action, parameters, origin).await?;
    let body: Map = [("execution_id", execution.text("id"))].into_iter().collect();
    Ok(json(StatusCode::ACCEPTED, &Value::Map(body)))
}

/// Reads the folders of packs again.
pub(super) async fn register(State(engine): Broker, body: Bytes) -> Answer {
    let body = if body.is_empty() { Map::new() } else { object(&body)? };
    let names = body.get("packs").and_then(Value::as_list).unwrap_or_default();
    let names: Vec<String> = names.iter().filter_map(|name| name.as_str().map(str::to_owned)).collect();
    let registered = engine.register_packs(&names).await?;
    if let Some((pack, problem)) =
        registered.problems.first().filter(|_| body.get("fail_on_failure") != Some(&false.into()))
    {
        return Err(ApiError::bad_request(format!("{pack}: {problem}")));
    }
    ok(registered.counts)
}

pub(super) async fn list_configs(State(engine): Broker, Query(pairs): Pairs) -> Answer {
    let registry = engine.registry();
    let configs: Vec<Map> = registry.packs.values().filter_map(|pack| engine.stored_config(pack)).collect();
    ListQuery::new(pairs).page(configs.iter(), &[("pack", &["pack"])])
}

pub(super) async fn show_config(State(engine): Broker, Path(name): Path<String>) -> Answer {
    let pack = find(&engine, &name)?;
    ok(engine.stored_config(&pack).ok_or_else(|| ApiError::not_found("configuration of pack", &name))?)
}

pub(super) async fn set_config(State(engine): Broker, Path(name): Path<String>, body: Bytes) -> Answer {
    let pack = find(&engine, &name)?;
    let values = object(&body)?;
    let set = engine.set_config(&pack, values).map_err(ApiError::bad_request)?;
    engine.register_packs(std::slice::from_ref(&pack.pack.manifest.reference)).await?;
    ok(set)
}

pub(super) async fn list_config_schemas(State(engine): Broker, Query(pairs): Pairs) -> Answer {
    let registry = engine.registry();
    let schemas: Vec<Map> = registry.packs.values().filter_map(|pack| config_schema(pack)).collect();
    ListQuery::new(pairs).page(schemas.iter(), &[("pack", &["pack"])])
}

pub(super) async fn show_config_schema(State(engine): Broker, Path(name): Path<String>) -> Answer {
    let pack = find(&engine, &name)?;
    ok(config_schema(&pack).ok_or_else(|| ApiError::not_found("configuration schema of pack", &name))?)
}

fn config_schema(pack: &RegisteredPack) -> Option<Map> {
    let attributes = pack.pack.config_schema.clone()?;
    let name = pack.document.get("ref").cloned().unwrap_or_default();
    let id = pack.document.get("id").cloned().unwrap_or_default();
    Some([("id", id), ("pack", name), ("attributes", attributes.into())].into_iter().collect())
}

fn find(engine: &Engine, name: &str) -> Result<Arc<RegisteredPack>, ApiError> {
    let registry = engine.registry();
    let by_id =
        || registry.packs.values().find(|pack| pack.document.get("id").and_then(Value::as_str) == Some(name));
    registry.packs.get(name).or_else(by_id).cloned().ok_or_else(|| ApiError::not_found("pack", name))
}
