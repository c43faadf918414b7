//! Trigger types, triggers, timers and events.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use imori_automation::value::{Map, Value};

use crate::answers::{Answer, ApiError, ListQuery, created, json, no_content, object, ok};
use crate::engine::Engine;
use crate::events::EventError;
use crate::registry::TIMER_TYPES;
use crate::store::{Condition, TRIGGER_INSTANCES};

type Pairs = Query<Vec<(String, String)>>;
type Broker = State<Arc<Engine>>;

pub(super) async fn list_types(State(engine): Broker, Query(pairs): Pairs) -> Answer {
    let registry = engine.registry();
    let filters: [(&str, &[&str]); 4] =
        [("id", &["id"]), ("ref", &["ref"]), ("name", &["name"]), ("pack", &["pack"])];
    ListQuery::new(pairs).page(registry.trigger_types.values().map(|kind| &**kind), &filters)
}

pub(super) async fn show_type(State(engine): Broker, Path(name): Path<String>) -> Answer {
    ok(Map::clone(&*find_type(&engine, &name)?))
}

pub(super) async fn create_type(State(engine): Broker, body: Bytes) -> Answer {
    created(Map::clone(&*engine.create_trigger_type(object(&body)?).await?))
}

pub(super) async fn delete_type(State(engine): Broker, Path(name): Path<String>) -> Answer {
    let kind = find_type(&engine, &name)?;
    engine.delete_trigger_type(&kind).await?;
    no_content()
}

fn find_type(engine: &Engine, name: &str) -> Result<Arc<Map>, ApiError> {
    let registry = engine.registry();
    let by_id =
        || registry.trigger_types.values().find(|kind| kind.get("id").and_then(Value::as_str) == Some(name));
    let found = registry.trigger_types.get(name).or_else(by_id).cloned();
    found.ok_or_else(|| ApiError::not_found("trigger type", name))
}

pub(super) async fn list(State(engine): Broker, Query(pairs): Pairs) -> Answer {
    let registry = engine.registry();
    let triggers: Vec<Map> =
        registry.triggers.values().map(|trigger| trigger.document(&registry.trigger_types)).collect();
    ListQuery::new(pairs)
        .page(triggers.iter(), &[("type", &["type"]), ("pack", &["pack"]), ("ref", &["ref"])])
}

pub(super) async fn show(State(engine): Broker, Path(id): Path<String>) -> Answer {
    let registry = engine.registry();
    let found = registry.triggers.values().find(|trigger| trigger.reference == id || trigger.id == id);
    ok(found.ok_or_else(|| ApiError::not_found("trigger", &id))?.document(&registry.trigger_types))
}

pub(super) async fn list_timers(State(engine): Broker, Query(pairs): Pairs) -> Answer {
    let registry = engine.registry();
    let timers = registry.triggers.values().filter(|trigger| TIMER_TYPES.contains(&trigger.kind.as_str()));
    let timers: Vec<Map> = timers.map(|trigger| trigger.document(&registry.trigger_types)).collect();
    ListQuery::new(pairs).page(timers.iter(), &[("type", &["type"])])
}

pub(super) async fn list_instances(State(engine): Broker, Query(pairs): Pairs) -> Answer {
    let list = ListQuery::new(pairs);
    let filters = [("id", "id"), ("trigger", "trigger_ref"), ("status", "status")];
    let query = list.stored(&TRIGGER_INSTANCES, &filters, "occurrence_time")?;
    let mut query = list.between(query, "timestamp", "occurrence_time")?;
    if let Some(kind) = list.get("trigger_type") {
        let registry = engine.registry();
        let of_kind = registry.triggers.values().filter(|trigger| trigger.kind == kind);
        let references = of_kind.map(|trigger| Value::from(trigger.reference.as_str())).collect();
        query = query.with(Condition::OneOf("trigger_ref", references));
    }
    let limit = list.limit()?;
    let rows = engine.store.find(query).await?;
    let shows_secrets = list.is_set("show_secrets");
    let shown = |document| list.shown(instance(&engine, document, shows_secrets));
    let page = rows.documents.into_iter().map(shown).collect();
    list.answer(page, rows.total, limit)
}

pub(super) async fn show_instance(
    State(engine): Broker,
    Path(id): Path<String>,
    Query(pairs): Pairs,
) -> Answer {
    let shows_secrets = ListQuery::new(pairs).is_set("show_secrets");
    match engine.store.get(&TRIGGER_INSTANCES, &id).await? {
        Some(document) => ok(instance(&engine, document, shows_secrets)),
        None => Err(ApiError::not_found("trigger instance", &id)),
    }
}

/// A stored event as the API shows it, without the secrets of its payload.
fn instance(engine: &Engine, mut document: Map, shows_secrets: bool) -> Map {
    let registry = engine.registry();
    let trigger = document.get("trigger").and_then(Value::as_str).unwrap_or_default();
    if !shows_secrets
        && let Some(trigger) = registry.triggers.get(trigger)
        && let Some(payload) = document.get("payload")
    {
        let masked = trigger.masked_payload(&registry.trigger_types, payload);
        document.insert("payload", masked);
    }
    document
}

/// Sends a stored event to the rules again, as a new event.
pub(super) async fn emit_again(State(engine): Broker, Path(id): Path<String>) -> Answer {
    let Some(document) = engine.store.get(&TRIGGER_INSTANCES, &id).await? else {
        return Err(ApiError::not_found("trigger instance", &id));
    };
    let trigger = document.get("trigger").and_then(Value::as_str).unwrap_or_default();
    let payload = document.get("payload").cloned().unwrap_or_default();
    engine.inject(trigger, payload, None).await?;
    let message = format!("Trigger instance {id} successfully re-sent.");
    let shown = instance(&engine, document, false);
    let body: Map = [("message", Value::from(message)), ("payload", Value::Map(shown))].into_iter().collect();
    Ok(json(StatusCode::OK, &Value::Map(body)))
}

impl From<EventError> for ApiError {
    fn from(error: EventError) -> ApiError {
        match error {
            EventError::Wrong(reason) => ApiError::bad_request(reason),
            EventError::Store(error) => error.into(),
        }
    }
}
