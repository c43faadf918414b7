//! Views: what the API derives from what it has. Files of packs and their indexes, services, timers, and traces, which
//! are what the executions with one trace tag have in common.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::{Path, Query, State};
use axum::http::{HeaderValue, Response, StatusCode, header};
use imori_automation::value::{Map, Value};

use crate::answers::{Answer, ApiError, ListQuery, object, ok};
use crate::engine::Engine;
use crate::limits::{PACK_FILE_BYTES_MAX, PACK_VIEW_BYTES_MAX, TRACED_EXECUTIONS_MAX};
use crate::packs::document::path_inside;
use crate::packs::read::pack_files;
use crate::packs::source::PackIndex;
use crate::registry::RegisteredPack;
use crate::store::{EXECUTIONS, Query as StoreQuery, StoreError};

type Pairs = Query<Vec<(String, String)>>;
type Broker = State<Arc<Engine>>;

/// The packs of all indexes, with the state of each index.
pub(super) async fn index(State(engine): Broker) -> Answer {
    let (packs, status) = indexed(&engine).await?;
    let mut body = Map::new();
    body.insert("index", packs);
    body.insert("status", status.into_iter().map(Value::Map).collect::<Vec<_>>());
    ok(body)
}

/// Whether the indexes can be fetched, and how many packs they have.
pub(super) async fn index_health(State(engine): Broker) -> Answer {
    let (_, status) = indexed(&engine).await?;
    let mut errors = Map::new();
    let (mut valid, mut count) = (0, 0);
    for index in &status {
        count += index.get("packs").and_then(Value::as_int).unwrap_or_default();
        match index.get("error").and_then(Value::as_str) {
            None => valid += 1,
            Some(error) => {
                let before = errors.get(error).and_then(Value::as_int).unwrap_or_default();
                errors.insert(error, before + 1);
            }
        }
    }
    let total = status.len() as i64;
    let mut indexes = Map::new();
    indexes.insert("count", total);
    indexes.insert("valid", valid);
    indexes.insert("invalid", total - valid);
    indexes.insert("errors", errors);
    indexes.insert("status", status.into_iter().map(Value::Map).collect::<Vec<_>>());
    let packs: Map = [("count", count)].into_iter().collect();
    ok([("indexes", indexes), ("packs", packs)].into_iter().collect::<Map>())
}

/// The packs of the indexes with a text in one of their fields, or the pack of a name.
pub(super) async fn index_search(State(engine): Broker, body: Bytes) -> Answer {
    let body = object(&body)?;
    let text = |key: &str| body.get(key).and_then(Value::as_str);
    let (packs, _) = indexed(&engine).await?;
    if let Some(name) = text("pack") {
        // StackStorm's client reads an empty list as none.
        return ok(packs.get(name).cloned().unwrap_or(Value::List(Vec::new())));
    }
    let query =
        text("query").ok_or_else(|| ApiError::bad_request("'query' or 'pack' is a required property"))?;
    let query = query.to_lowercase();
    let is_found = |pack: &Value| {
        let contains =
            |value: &Value| value.as_str().is_some_and(|text| text.to_lowercase().contains(&query));
        let mut fields = pack.as_map().into_iter().flat_map(Map::iter).map(|(_, value)| value);
        fields.any(|value| contains(value) || value.as_list().unwrap_or_default().iter().any(contains))
    };
    let found = packs.iter().map(|(_, pack)| pack).filter(|pack| is_found(pack)).cloned();
    ok(found.collect::<Vec<_>>())
}

/// The packs of all indexes, and the state of each; an index that cannot be fetched has an error and no packs.
async fn indexed(engine: &Arc<Engine>) -> Result<(Map, Vec<Map>), ApiError> {
    let installer = engine.installer();
    let fetched = tokio::task::spawn_blocking(move || {
        let (mut packs, mut status) = (PackIndex::default(), Vec::new());
        for address in &installer.indexes {
            let mut shown = Map::new();
            shown.insert("url", address.as_str());
            let index = (installer.fetch)(address)
                .and_then(|text| PackIndex::parse(&text).map_err(|error| error.to_string()));
            match index {
                Ok(index) => {
                    shown.insert("packs", index.packs().len() as i64);
                    shown.insert("message", "Success.");
                    shown.insert("error", Value::Null);
                    packs.merge(index);
                }
                Err(reason) => {
                    shown.insert("packs", 0);
                    shown.insert("message", reason);
                    shown.insert("error", "unresponsive");
                }
            }
            status.push(shown);
        }
        let all = packs.packs().iter().map(|(name, pack)| (name.as_str(), pack.clone())).collect();
        (all, status)
    });
    fetched.await.map_err(|error| ApiError::new(StatusCode::SERVICE_UNAVAILABLE, error.to_string()))
}

/// The texts among the files of a pack.
pub(super) async fn files(State(engine): Broker, Path(name): Path<String>) -> Answer {
    let pack = find(&engine, &name)?;
    let read = tokio::task::spawn_blocking(move || {
        let folder = &pack.pack.folder;
        let (mut shown, mut bytes) = (Vec::new(), 0);
        for file in pack_files(folder).map_err(|problem| problem.to_string())? {
            let Ok(content) = read(folder, &file) else { continue };
            // A NUL is in no text.
            let Ok(text) = String::from_utf8(content) else { continue };
            bytes += text.len();
            if text.contains('\0') || bytes > PACK_VIEW_BYTES_MAX {
                continue;
            }
            let mut item = Map::new();
            item.insert("file_path", file);
            item.insert("content", text);
            shown.push(Value::Map(item));
        }
        Ok::<_, String>(shown)
    });
    let shown = read.await.map_err(|error| ApiError::bad_request(error.to_string()))?;
    ok(shown.map_err(ApiError::bad_request)?)
}

/// A file of a pack as it is.
pub(super) async fn file(State(engine): Broker, Path((name, file)): Path<(String, String)>) -> Answer {
    let pack = find(&engine, &name)?;
    let content = read(&pack.pack.folder, &file);
    let content = content.map_err(|reason| ApiError::new(StatusCode::NOT_FOUND, reason))?;
    let kind = match file.rsplit_once('.').map(|(_, extension)| extension) {
        Some("png") => "image/png",
        Some("yaml" | "yml") => "application/x-yaml",
        Some("json") => "application/json",
        _ if std::str::from_utf8(&content).is_ok() => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    };
    let mut response = Response::new(Body::from(content));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    // A pack's file is no page of this origin.
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    Ok(response)
}

fn read(folder: &std::path::Path, file: &str) -> Result<Vec<u8>, String> {
    let path = path_inside(folder, file)?;
    let size = path.metadata().ok().filter(std::fs::Metadata::is_file).map(|found| found.len());
    let size = size.ok_or_else(|| format!("File \"{file}\" not found"))?;
    if size > PACK_FILE_BYTES_MAX {
        return Err(format!("File {file} exceeds maximum allowed file size ({PACK_FILE_BYTES_MAX} bytes)"));
    }
    std::fs::read(path).map_err(|error| format!("file `{file}` cannot be read: {error}"))
}

fn find(engine: &Engine, name: &str) -> Result<Arc<RegisteredPack>, ApiError> {
    let registry = engine.registry();
    let has_id = |pack: &&Arc<RegisteredPack>| pack.document.get("id").and_then(Value::as_str) == Some(name);
    let found = registry.packs.get(name).or_else(|| registry.packs.values().find(has_id));
    found.cloned().ok_or_else(|| ApiError::not_found("pack", name))
}

/// The one process of the engine, in StackStorm's words for its services.
const GROUPS: [&str; 2] = ["api", "workflowengine"];

pub(super) async fn groups() -> Answer {
    let groups: Vec<Value> = GROUPS.into_iter().map(Value::from).collect();
    ok([("groups", groups)].into_iter().collect::<Map>())
}

pub(super) async fn members(Path(group): Path<String>) -> Answer {
    if !GROUPS.contains(&group.as_str()) {
        let reason = format!("Group with ID \"{group}\" not found.");
        return Err(ApiError::new(StatusCode::NOT_FOUND, reason));
    }
    let pid = i64::from(std::process::id());
    let mut capabilities = Map::new();
    capabilities.insert("hostname", "localhost");
    capabilities.insert("pid", pid);
    capabilities.insert("name", group.as_str());
    let mut member = Map::new();
    member.insert("group_id", group);
    member.insert("member_id", format!("imori_{pid}"));
    member.insert("capabilities", capabilities);
    ok([("members", vec![Value::Map(member)])].into_iter().collect::<Map>())
}

pub(super) async fn show_timer(State(engine): Broker, Path(name): Path<String>) -> Answer {
    let registry = engine.registry();
    let is_it = |trigger: &&Arc<crate::registry::Trigger>| {
        crate::registry::TIMER_TYPES.contains(&trigger.kind.as_str())
            && (trigger.reference == name || trigger.id == name)
    };
    let found = registry.triggers.values().find(is_it);
    ok(found.ok_or_else(|| ApiError::not_found("timer", &name))?.document(&registry.trigger_types))
}

pub(super) async fn list_traces(State(engine): Broker, Query(pairs): Pairs) -> Answer {
    let list = ListQuery::new(pairs);
    let has_component = |trace: &Map| {
        let parts = [
            ("execution", "action_executions"),
            ("rule", "rules"),
            ("trigger_instance", "trigger_instances"),
        ];
        parts.into_iter().all(|(filter, part)| {
            list.get(filter).is_none_or(|wanted| {
                let components = trace.get(part).and_then(Value::as_list).unwrap_or_default();
                components.iter().any(|component| {
                    ["object_id", "ref"]
                        .iter()
                        .any(|key| component.get(key).and_then(Value::as_str) == Some(wanted))
                })
            })
        })
    };
    let traces = traces(&engine).await?;
    let found = traces.iter().filter(|trace| has_component(trace));
    list.page(found, &[("id", &["id"]), ("trace_tag", &["trace_tag"])])
}

pub(super) async fn show_trace(State(engine): Broker, Path(id): Path<String>) -> Answer {
    let found = traces(&engine).await?;
    let found = found.into_iter().find(|trace| trace.get("id").and_then(Value::as_str) == Some(&id));
    ok(found.ok_or_else(|| ApiError::not_found("trace", &id))?)
}

/// The traces of the newest executions, newest first.
async fn traces(engine: &Engine) -> Result<Vec<Map>, StoreError> {
    let query = StoreQuery::all(&EXECUTIONS, TRACED_EXECUTIONS_MAX).by("start_timestamp", true);
    let rows = engine.store.find(query).await?;
    Ok(traced(&rows.documents))
}

/// The traces of executions that are given newest first.
pub fn traced(executions: &[Map]) -> Vec<Map> {
    let mut traces: BTreeMap<String, Map> = BTreeMap::new();
    let mut order = Vec::new();
    // The oldest execution gives a trace its id.
    for execution in executions.iter().rev() {
        let text = |key: &str| execution.get(key).and_then(Value::as_str).unwrap_or_default();
        let context = execution.get("context").and_then(|context| context.get("trace_context"));
        let given = |key: &str| context.and_then(|context| context.get(key)?.as_str());
        let Some(tag) = given("trace_tag").or_else(|| given("id_")) else { continue };
        let trace = traces.entry(tag.to_owned()).or_insert_with(|| {
            order.push(tag.to_owned());
            let mut trace = Map::new();
            trace.insert("id", text("id"));
            trace.insert("uid", format!("trace:{}:{tag}", text("id")));
            trace.insert("trace_tag", tag);
            trace.insert("start_timestamp", text("start_timestamp"));
            for part in ["action_executions", "rules", "trigger_instances"] {
                trace.insert(part, Vec::new());
            }
            trace
        });
        let components = [
            ("action_executions", text("id"), text("action")),
            ("rules", text("rule"), text("rule")),
            ("trigger_instances", text("trigger_instance"), text("trigger")),
        ];
        for (part, id, reference) in components {
            let Some(Value::List(list)) = trace.get_mut(part).filter(|_| !id.is_empty()) else { continue };
            if list.iter().any(|known| known.get("object_id").and_then(Value::as_str) == Some(id)) {
                continue;
            }
            let mut component = Map::new();
            component.insert("object_id", id);
            component.insert("ref", reference);
            component.insert("updated_at", text("start_timestamp"));
            component.insert("caused_by", Map::new());
            list.push(Value::Map(component));
        }
    }
    order.iter().rev().filter_map(|tag| traces.remove(tag)).collect()
}
