//! Executions: `/executions`.

use std::collections::VecDeque;
use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use futures_util::stream::unfold;
use imori_automation::value::{Map, Value};
use imori_automation::workflows::WorkflowEvent;
use tokio::fs::File;
use tokio::io::{AsyncReadExt as _, Take};

use crate::answers::{Answer, ApiError, ListQuery, created, json, object, ok};
use crate::engine::Engine;
use crate::executions::{Origin, Status};
use crate::limits::{DESCENDANTS_MAX, OUTPUT_READ_BYTES, WORKFLOW_DEPTH_MAX};
use crate::outputs::OutputStream;
use crate::parameters::masked_parameters;
use crate::requests::RequestError;
use crate::store::{Condition, EXECUTIONS, Parts, Query as StoreQuery};
use crate::workflows::is_workflow;

type Pairs = Query<Vec<(String, String)>>;
type Broker = State<Arc<Engine>>;

const FILTERS: [(&str, &str); 12] = [
    ("id", "id"),
    ("action", "action"),
    ("pack", "pack"),
    ("runner", "runner"),
    ("status", "status"),
    ("rule", "rule"),
    ("trigger", "trigger_ref"),
    ("trigger_type", "trigger_type"),
    ("trigger_instance", "trigger_instance"),
    ("parent", "parent"),
    ("user", "user"),
    ("liveaction", "id"),
];

pub(super) async fn list(State(engine): Broker, Query(pairs): Pairs) -> Answer {
    let list = ListQuery::new(pairs);
    let query = list.stored(&EXECUTIONS, &FILTERS, "start_timestamp")?;
    let mut query = list.between(query, "timestamp", "start_timestamp")?;
    if list.get("parent") == Some("null") {
        query.conditions.retain(|condition| !matches!(condition, Condition::OneOf("parent", _)));
        query = query.with(Condition::Absent("parent"));
    }
    let limit = list.limit()?;
    let rows = engine.store.find(query).await?;
    let secrets = list.is_set("show_secrets");
    let page =
        rows.documents.into_iter().map(|document| list.shown(shape(&engine, document, secrets))).collect();
    list.answer(page, rows.total, limit)
}

pub(super) async fn create(State(engine): Broker, Query(pairs): Pairs, body: Bytes) -> Answer {
    let list = ListQuery::new(pairs);
    let mut body = object(&body)?;
    let action = body.remove("action").unwrap_or_default();
    let Some(action) = action.as_str() else {
        return Err(ApiError::bad_request("'action' is a required property"));
    };
    let parameters = match body.remove("parameters") {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Map(parameters)) => parameters,
        Some(other) => {
            return Err(ApiError::bad_request(format!("`parameters` is a JSON {}", other.type_name())));
        }
    };
    let user = body.get("user").and_then(Value::as_str).unwrap_or(engine.user());
    let context = body.get("context").and_then(Value::as_map).cloned().unwrap_or_default();
    let delay_ms = delay_ms(&body)?;
    let origin = Origin { user: user.to_owned(), context, delay_ms, ..Origin::default() };
    let execution = engine.request(action, parameters, origin).await?;
    created(shape(&engine, execution.document().clone(), list.is_set("show_secrets")))
}

pub(super) async fn show(State(engine): Broker, Path(id): Path<String>, Query(pairs): Pairs) -> Answer {
    let list = ListQuery::new(pairs);
    let document = find(&engine, &id).await?;
    let runner = document.get("runner").and_then(Value::as_str).unwrap_or_default();
    let found = match is_workflow(runner) {
        true => {
            let id = document.get("id").and_then(Value::as_str).unwrap_or(&id);
            children_of(&engine, id, Parts::Only(Vec::new())).await?
        }
        false => Vec::new(),
    };
    let children: Vec<Value> =
        found.iter().map(|child| child.get("id").cloned().unwrap_or_default()).collect();
    let mut shown = shape(&engine, document, list.is_set("show_secrets"));
    shown.insert("children", children);
    ok(list.shown(shown))
}

pub(super) async fn attribute(State(engine): Broker, Path((id, name)): Path<(String, String)>) -> Answer {
    let document = shape(&engine, find(&engine, &id).await?, false);
    ok(document.get(&name).cloned().unwrap_or_default())
}

pub(super) async fn result(State(engine): Broker, Path(id): Path<String>) -> Answer {
    let document = find(&engine, &id).await?;
    ok(document.get("result").cloned().unwrap_or_default())
}

/// What the action has printed: while it runs, all that is recorded, and after its end what its result keeps.
pub(super) async fn output(State(engine): Broker, Path(id): Path<String>) -> Answer {
    let document = find(&engine, &id).await?;
    let result = document.get("result");
    let id = document.get("id").and_then(Value::as_str).unwrap_or(&id);
    let mut parts = VecDeque::new();
    for stream in OutputStream::ALL {
        match result.and_then(|result| result.get(stream.name())) {
            Some(Value::String(text)) => parts.push_back(Part::Text(text.clone())),
            Some(Value::Null) | None => {
                let Some(path) = engine.output_file(id, stream) else { continue };
                // There is no file before the action has started.
                let Ok(file) = File::open(path).await else { continue };
                // What is printed meanwhile is left to the next request.
                let length = file.metadata().await.map_or(0, |metadata| metadata.len());
                parts.push_back(Part::File(file.take(length)));
            }
            Some(other) => parts.push_back(Part::Text(other.to_json())),
        }
    }
    let body = axum::body::Body::from_stream(unfold(parts, next_piece));
    let mut response = axum::http::Response::new(body);
    let kind = axum::http::HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(axum::http::header::CONTENT_TYPE, kind);
    Ok(response)
}

/// A part of what an action has printed.
enum Part {
    Text(String),
    File(Take<File>),
}

/// The next piece of these parts, so that a long file is never in memory.
async fn next_piece(mut parts: VecDeque<Part>) -> Option<(std::io::Result<Bytes>, VecDeque<Part>)> {
    loop {
        match parts.pop_front()? {
            Part::Text(text) if text.is_empty() => {}
            Part::Text(text) => return Some((Ok(Bytes::from(text)), parts)),
            Part::File(mut file) => {
                let mut piece = vec![0; OUTPUT_READ_BYTES];
                match file.read(&mut piece).await {
                    Ok(0) => {}
                    Ok(count) => {
                        piece.truncate(count);
                        parts.push_front(Part::File(file));
                        return Some((Ok(Bytes::from(piece)), parts));
                    }
                    Err(error) => return Some((Err(error), VecDeque::new())),
                }
            }
        }
    }
}

pub(super) async fn children(State(engine): Broker, Path(id): Path<String>, Query(pairs): Pairs) -> Answer {
    let list = ListQuery::new(pairs);
    find(&engine, &id).await?;
    let page: Vec<Value> = children_of(&engine, &id, list.parts())
        .await?
        .into_iter()
        .map(|document| Value::Map(list.shown(shape(&engine, document, false))))
        .collect();
    ok(page)
}

/// The children of an execution, their children and so on; `depth` bounds the levels.
pub(super) async fn descendants(
    State(engine): Broker,
    Path(id): Path<String>,
    Query(pairs): Pairs,
) -> Answer {
    let list = ListQuery::new(pairs);
    find(&engine, &id).await?;
    let depth = match list.get("depth").map(str::parse::<i64>) {
        None | Some(Ok(-1)) => WORKFLOW_DEPTH_MAX + 1,
        Some(Ok(depth)) if depth >= 0 => depth.min(WORKFLOW_DEPTH_MAX + 1),
        Some(_) => return Err(ApiError::bad_request("`depth` is no number of levels; use -1 for all")),
    };
    let (mut level, mut found) = (vec![id], Vec::new());
    for _ in 0..depth {
        let mut below = Vec::new();
        for id in std::mem::take(&mut level) {
            below.extend(children_of(&engine, &id, list.parts()).await?);
        }
        let is_parent = |child: &&Map| child.get("runner").and_then(Value::as_str).is_some_and(is_workflow);
        let ids = below.iter().filter(is_parent).filter_map(|child| child.get("id")?.as_str());
        level = ids.map(str::to_owned).collect();
        found.append(&mut below);
        if level.is_empty() || found.len() > DESCENDANTS_MAX {
            break;
        }
    }
    found.truncate(DESCENDANTS_MAX);
    let page: Vec<Value> =
        found.into_iter().map(|document| Value::Map(list.shown(shape(&engine, document, false)))).collect();
    ok(page)
}

/// The executions that a workflow has asked for, oldest first, with these of their large parts.
async fn children_of(engine: &Engine, id: &str, parts: Parts) -> Result<Vec<Map>, ApiError> {
    let query = StoreQuery::all(&EXECUTIONS, DESCENDANTS_MAX)
        .with(Condition::Equal("parent", id.into()))
        .by("start_timestamp", false)
        .reading(parts);
    Ok(engine.store.find(query).await?.documents)
}

/// Pauses, resumes or cancels an execution by the status that the client asks for.
pub(super) async fn change(State(engine): Broker, Path(id): Path<String>, body: Bytes) -> Answer {
    let document = find(&engine, &id).await?;
    let body = object(&body)?;
    let text =
        |document: &Map, key: &str| document.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let (id, status, runner) = (text(&document, "id"), text(&document, "status"), text(&document, "runner"));
    if Status::is_final(&status) {
        return Err(ApiError::bad_request("Execution is already in completed state."));
    }
    let event = match text(&body, "status").as_str() {
        "canceling" | "canceled" => {
            engine.cancel(&id).await;
            let shown = find(&engine, &id).await?;
            return ok(shape(&engine, shown, false));
        }
        "pausing" | "paused" => WorkflowEvent::PauseRequested,
        "resuming" | "running" => WorkflowEvent::ResumeRequested,
        other => {
            return Err(ApiError::bad_request(format!(
                "status `{other}` cannot be set; use `pausing`, `resuming` or `canceling`"
            )));
        }
    };
    if !is_workflow(&runner) {
        return Err(ApiError::bad_request(format!(
            "Failed updating execution. Runner \"{runner}\" does not support pause and resume."
        )));
    }
    if !matches!(status.as_str(), "running" | "pausing" | "paused") {
        return Err(ApiError::bad_request(format!(
            "Failed updating execution. Execution \"{id}\" is in status \"{status}\" and cannot be paused or resumed."
        )));
    }
    engine.tell_workflow(&id, event).await?;
    let shown = find(&engine, &id).await?;
    ok(shape(&engine, shown, false))
}

pub(super) async fn cancel(State(engine): Broker, Path(id): Path<String>) -> Answer {
    let document = find(&engine, &id).await?;
    let status = document.get("status").and_then(Value::as_str).unwrap_or_default();
    if Status::is_final(status) {
        let mut shown = shape(&engine, document.clone(), false);
        let reason = format!("Action is already in completed state: {status}");
        shown.insert("faultstring", reason);
        return Ok(json(StatusCode::OK, &Value::Map(shown)));
    }
    engine.cancel(&id).await;
    let mut shown = shape(&engine, document, false);
    shown.insert("status", Status::Canceling.as_str());
    ok(shown)
}

/// Runs the action of an execution again, or tasks of its workflow.
pub(super) async fn run_again(
    State(engine): Broker,
    Path(id): Path<String>,
    Query(pairs): Pairs,
    body: Bytes,
) -> Answer {
    let list = ListQuery::new(pairs);
    let document = find(&engine, &id).await?;
    let body = if body.is_empty() { Map::new() } else { object(&body)? };
    let text = |key: &str| document.get(key).and_then(Value::as_str).unwrap_or_default();
    let (tasks, reset) = (task_names(&body, "tasks")?, task_names(&body, "reset")?);
    let none = Map::new();
    let changed = match body.get("parameters") {
        None | Some(Value::Null) => &none,
        Some(Value::Map(changed)) => changed,
        Some(other) => {
            let reason = format!("`parameters` is a JSON {}; send an object", other.type_name());
            return Err(ApiError::bad_request(reason));
        }
    };
    let names_tasks = !tasks.is_empty() || !reset.is_empty();
    if names_tasks && !changed.is_empty() {
        return Err(ApiError::bad_request(
            "Parameters override is not supported when re-running task(s) for a workflow.",
        ));
    }
    if reset.iter().any(|task| !tasks.contains(task)) {
        return Err(ApiError::bad_request("List of tasks to reset does not match the tasks to rerun."));
    }
    if !tasks.is_empty() && text("runner") != "orquesta" {
        return Err(ApiError::bad_request("Task option is only supported for Orquesta workflows."));
    }
    let literals = document.get("parameters").and_then(Value::as_map).cloned().unwrap_or_default();
    let mut link = Map::new();
    link.insert("ref", text("id"));
    for (key, names) in [("tasks", tasks), ("reset", reset)] {
        if !names.is_empty() {
            link.insert(key, names);
        }
    }
    let context: Map = [("re-run", link)].into_iter().collect();
    let delay_ms = delay_ms(&body)?;
    let origin = Origin { user: engine.user().to_owned(), context, delay_ms, literals, ..Origin::default() };
    let execution = engine.request(text("action"), changed.clone(), origin).await?;
    created(shape(&engine, execution.document().clone(), list.is_set("show_secrets")))
}

/// The names of tasks in a request.
fn task_names(body: &Map, key: &str) -> Result<Vec<Value>, ApiError> {
    match body.get(key) {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::List(names)) if names.iter().all(|name| name.as_str().is_some()) => Ok(names.clone()),
        Some(_) => Err(ApiError::bad_request(format!("`{key}` is no list of names of tasks"))),
    }
}

/// The milliseconds for which a request is to wait.
fn delay_ms(body: &Map) -> Result<u64, ApiError> {
    match body.get("delay") {
        None | Some(Value::Null) => Ok(0),
        Some(delay) => delay
            .as_int()
            .and_then(|delay| u64::try_from(delay).ok())
            .ok_or_else(|| ApiError::bad_request("`delay` is no number of milliseconds from 0 on")),
    }
}

/// The values that filters can have.
pub(super) async fn filters(State(engine): Broker) -> Answer {
    let registry = engine.registry();
    let mut filters = Map::new();
    filters
        .insert("action", registry.actions.keys().map(|name| Value::from(name.as_str())).collect::<Vec<_>>());
    filters.insert("rule", registry.rules.keys().map(|name| Value::from(name.as_str())).collect::<Vec<_>>());
    filters
        .insert("runner", registry.runners.keys().map(|name| Value::from(name.as_str())).collect::<Vec<_>>());
    let status = ["requested", "running", "succeeded", "failed", "timeout", "abandoned", "canceled"];
    filters.insert("status", status.map(Value::from).to_vec());
    ok(filters)
}

pub(super) async fn find(engine: &Engine, id: &str) -> Result<Map, ApiError> {
    let document = match id {
        "last" => {
            let query = StoreQuery::all(&EXECUTIONS, 1).by("start_timestamp", true);
            engine.store.find(query).await?.documents.pop()
        }
        id => engine.store.get(&EXECUTIONS, id).await?,
    };
    document.ok_or_else(|| ApiError::not_found("execution", id))
}

/// An execution as StackStorm shows it: with the definitions of its action, runner, rule and trigger.
pub(super) fn shape(engine: &Engine, mut document: Map, shows_secrets: bool) -> Map {
    let registry = engine.registry();
    let text =
        |document: &Map, key: &str| document.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let (action_ref, runner_name) = (text(&document, "action"), text(&document, "runner"));
    let unknown = |key: &str, name: &str| -> Map { [(key, name)].into_iter().collect() };
    let action = registry.actions.get(&action_ref);
    let runner = registry.runners.get(&runner_name);
    if !shows_secrets && document.contains_key("parameters") {
        document.insert("parameters", masked_parameters(&registry, &document));
    }
    let mut live = Map::new();
    live.insert("id", text(&document, "id"));
    live.insert("action", action_ref.as_str());
    live.insert("action_is_workflow", is_workflow(&runner_name));
    live.insert("parameters", document.get("parameters").cloned().unwrap_or_default());
    live.insert("callback", Map::new());
    live.insert("runner_info", Map::new());
    if let Some(notify) = document.remove("notify") {
        live.insert("notify", notify);
    }
    document.insert("liveaction", live);
    document
        .insert("action", action.map_or_else(|| unknown("ref", &action_ref), |action| Map::clone(action)));
    document
        .insert("runner", runner.map_or_else(|| unknown("name", &runner_name), |runner| Map::clone(runner)));
    document.remove("pack");
    document.remove("call");
    document.remove("boot");
    let trigger_ref = text(&document, "trigger");
    if !trigger_ref.is_empty() {
        let trigger =
            registry.triggers.get(&trigger_ref).map(|trigger| trigger.document(&registry.trigger_types));
        document.insert("trigger", trigger.unwrap_or_else(|| unknown("ref", &trigger_ref)));
        let type_ref = text(&document, "trigger_type");
        let shown = registry.trigger_types.get(&type_ref).map(|kind| Map::clone(kind));
        document.insert("trigger_type", shown.unwrap_or_else(|| unknown("ref", &type_ref)));
        let instance = text(&document, "trigger_instance");
        document.insert("trigger_instance", unknown("id", &instance));
        let rule_ref = text(&document, "rule");
        let rule = registry.rules.get(&rule_ref).map(|rule| rule.masked_document(&registry.trigger_types));
        document.insert("rule", rule.unwrap_or_else(|| unknown("ref", &rule_ref)));
    }
    let id = text(&document, "id");
    document.insert("web_url", format!("http://127.0.0.1/#/history/{id}/general"));
    if !document.contains_key("children") {
        document.insert("children", Vec::new());
    }
    document
}

impl From<RequestError> for ApiError {
    fn from(error: RequestError) -> ApiError {
        match error {
            RequestError::UnknownAction(action) => {
                ApiError::bad_request(format!("Action \"{action}\" cannot be found."))
            }
            RequestError::Disabled(action) => {
                ApiError::bad_request(format!("Unable to execute. Action \"{action}\" is disabled."))
            }
            RequestError::Parameters(reason) => ApiError::bad_request(reason),
            RequestError::Store(error) => error.into(),
        }
    }
}
