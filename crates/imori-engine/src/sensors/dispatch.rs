//! Events of sensors: checked as StackStorm checks them, and on disk before the sensor goes on.

use std::sync::Arc;

use imori_automation::parameters::{Defaults, Schema};
use imori_automation::value::{Map, Value};
use tracing::warn;

use crate::engine::Engine;
use crate::events::EventError;
use crate::python::{DatastoreAnswer, SensorAnswer, SensorEvent};
use crate::registry::{Registry, Trigger};

/// Stores an event of a sensor and what the rules make of it.
pub(super) async fn dispatch(engine: &Arc<Engine>, sensor: &str, event: SensorEvent) -> SensorAnswer {
    let registry = engine.registry();
    let Some(reference) = trigger_reference(&event.trigger) else {
        let reason = format!("`{}` names no trigger; use the reference of one", event.trigger.to_json());
        warn!(sensor, reason, "an event of a sensor is refused");
        return SensorAnswer::Unknown(reason);
    };
    let Some(kind) = kind_of(&registry, &reference) else {
        let reason = format!(
            "trigger `{reference}` is unknown; list its type under `trigger_types` of the sensor and register the pack"
        );
        warn!(sensor, reason, "an event of a sensor is refused");
        return SensorAnswer::Unknown(reason);
    };
    let payload = match event.payload {
        Value::Null => Value::Map(Map::new()),
        payload => payload,
    };
    if let Err(reason) = check_payload(kind.get("payload_schema"), &payload) {
        let reason = format!("an event of trigger `{reference}` is dropped: {reason}");
        warn!(sensor, reason, "the payload of an event does not fit its trigger type");
        return SensorAnswer::Invalid(reason);
    }
    match engine.inject(&reference, payload, None).await {
        Ok(_) => {
            engine.sensors.change(sensor, |state| state.events += 1);
            SensorAnswer::Answer(DatastoreAnswer::Done)
        }
        Err(EventError::Wrong(reason)) => SensorAnswer::Unknown(reason),
        Err(EventError::Store(error)) => SensorAnswer::Error(format!("the event is not stored: {error}")),
    }
}

/// The reference of a trigger that a sensor names by it, or by an object.
pub fn trigger_reference(trigger: &Value) -> Option<String> {
    let text = |key: &str| trigger.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
    if let Some(reference) =
        trigger.as_str().filter(|reference| !reference.is_empty()).or_else(|| text("ref"))
    {
        return Some(reference.to_owned());
    }
    if let Some(kind) = text("type") {
        let parameters = trigger.get("parameters").and_then(Value::as_map).cloned().unwrap_or_default();
        return Some(Trigger::new(kind, parameters).reference);
    }
    Some(format!("{}.{}", text("pack")?, text("name")?))
}

/// The type of a trigger.
fn kind_of(registry: &Registry, reference: &str) -> Option<Arc<Map>> {
    let kind = registry.triggers.get(reference).map_or(reference, |trigger| trigger.kind.as_str());
    registry.trigger_types.get(kind).cloned()
}

/// Checks a payload by the schema of its trigger type.
pub fn check_payload(schema: Option<&Value>, payload: &Value) -> Result<(), String> {
    let Some(schema) = schema.filter(|schema| schema.as_map().is_some_and(|schema| !schema.is_empty()))
    else {
        return Ok(());
    };
    let schema = Schema::compile(schema).map_err(|error| error.to_string())?;
    schema.validate(payload, Defaults::AssignedOrNone).map(drop).map_err(|error| error.to_string())
}
