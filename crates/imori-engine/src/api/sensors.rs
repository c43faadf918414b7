//! Sensors: `/sensortypes`. Beyond StackStorm's, `x-imori` says what a sensor does at the moment.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Path, Query, State};
use imori_automation::value::{Map, Value};

use crate::answers::{Answer, ApiError, ListQuery, object, ok};
use crate::engine::Engine;
use crate::registry::RegisteredSensor;

type Pairs = Query<Vec<(String, String)>>;
type Broker = State<Arc<Engine>>;

pub(super) async fn list(State(engine): Broker, Query(pairs): Pairs) -> Answer {
    let list = ListQuery::new(pairs);
    let registry = engine.registry();
    let has_trigger = |sensor: &&Arc<RegisteredSensor>| match list.get("trigger") {
        None => true,
        Some(wanted) => sensor.definition.trigger_types.iter().any(|kind| kind == wanted),
    };
    let sensors: Vec<Map> =
        registry.sensors.values().filter(has_trigger).map(|sensor| shown(&engine, sensor)).collect();
    let filters: [(&str, &[&str]); 5] = [
        ("id", &["id"]),
        ("ref", &["ref"]),
        ("name", &["name"]),
        ("pack", &["pack"]),
        ("enabled", &["enabled"]),
    ];
    list.page(sensors.iter(), &filters)
}

pub(super) async fn show(State(engine): Broker, Path(name): Path<String>) -> Answer {
    ok(shown(&engine, &*find(&engine, &name)?))
}

/// Enables or disables a sensor; as in StackStorm, nothing else of it can be changed.
pub(super) async fn change(State(engine): Broker, Path(name): Path<String>, body: Bytes) -> Answer {
    let sensor = find(&engine, &name)?;
    let body = object(&body)?;
    let enabled = match body.get("enabled") {
        Some(Value::Bool(enabled)) => *enabled,
        None => true,
        Some(other) => {
            let reason = format!("`enabled` is `{}`; use true or false", other.to_json());
            return Err(ApiError::bad_request(reason));
        }
    };
    let changed = engine.enable_sensor(&sensor, enabled).await?;
    ok(shown(&engine, &changed))
}

fn shown(engine: &Engine, sensor: &RegisteredSensor) -> Map {
    let mut document = sensor.document.clone();
    document.insert("x-imori", engine.sensors.of(&sensor.reference()).document());
    document
}

fn find(engine: &Engine, name: &str) -> Result<Arc<RegisteredSensor>, ApiError> {
    let registry = engine.registry();
    let by_id = || {
        registry
            .sensors
            .values()
            .find(|sensor| sensor.document.get("id").and_then(Value::as_str) == Some(name))
    };
    registry.sensors.get(name).or_else(by_id).cloned().ok_or_else(|| ApiError::not_found("sensor type", name))
}
