//! Trials of rules: what a rule would make of an event. Nothing runs, and nothing is counted or stored.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::State;
use imori_automation::criteria::TriggerInstance;
use imori_automation::rules::ActionCall;
use imori_automation::value::{Map, Value};

use super::executions::shape;
use super::rules::find;
use crate::answers::{Answer, ApiError, object, ok};
use crate::engine::Engine;
use crate::executions::Origin;
use crate::limits::{PAGE_MAX, RULE_TRIAL_EVENTS};
use crate::registry::RegisteredRule;
use crate::requests::DraftError;
use crate::store::{Condition, Query, TRIGGER_INSTANCES};

const KEYS: [&str; 7] = ["rule", "ref", "trigger_instance", "payload", "since", "until", "limit"];

/// Tries a rule, stored (`ref`) or not (`rule`), on a `payload`, on a stored event (`trigger_instance`), or on the stored
/// events of its trigger from `since` to `until`.
pub(super) async fn test(State(engine): State<Arc<Engine>>, body: Bytes) -> Answer {
    let mut body = object(&body)?;
    if let Some((key, _)) = body.iter().find(|(key, _)| !KEYS.contains(key)) {
        return Err(ApiError::bad_request(format!("key `{key}` is unknown; use one of {}", KEYS.join(", "))));
    }
    let rule = match (body.remove("rule"), text(&body, "ref")?) {
        (Some(Value::Map(document)), None) => {
            let rule = RegisteredRule::read(document, &engine.registry().trigger_types);
            Arc::new(rule.map_err(ApiError::bad_request)?)
        }
        (None, Some(name)) => find(&engine, name)?,
        _ => {
            return Err(ApiError::bad_request(
                "send either `rule`, a rule, or `ref`, the reference of a stored one",
            ));
        }
    };
    match (body.remove("payload"), text(&body, "trigger_instance")?) {
        (Some(payload), None) => ok(explain(&engine, &rule, &payload)),
        (None, Some(id)) => {
            let stored = engine.store.get(&TRIGGER_INSTANCES, id).await?;
            let event = stored.ok_or_else(|| ApiError::not_found("trigger instance", id))?;
            let trigger = event.get("trigger").and_then(Value::as_str).unwrap_or_default();
            if trigger != rule.trigger.reference {
                return Err(ApiError::bad_request(format!(
                    "trigger instance `{id}` is one of trigger `{trigger}`, and the rule waits for `{}`; send its \
                     payload as `payload` to try it all the same",
                    rule.trigger.reference
                )));
            }
            ok(explain(&engine, &rule, event.get("payload").unwrap_or(&Value::Null)))
        }
        (None, None) => replay(&engine, &rule, &body).await,
        (Some(_), Some(_)) => Err(ApiError::bad_request("send either `payload` or `trigger_instance`")),
    }
}

/// Tries a rule on the stored events of its trigger, the newest first.
async fn replay(engine: &Arc<Engine>, rule: &RegisteredRule, body: &Map) -> Answer {
    let limit = match body.get("limit") {
        None => PAGE_MAX,
        Some(limit) => limit
            .as_int()
            .and_then(|limit| usize::try_from(limit).ok())
            .filter(|limit| (1..=RULE_TRIAL_EVENTS).contains(limit))
            .ok_or_else(|| {
                ApiError::bad_request(format!("`limit` is no number from 1 to {RULE_TRIAL_EVENTS}"))
            })?,
    };
    let mut query = Query::all(&TRIGGER_INSTANCES, limit)
        .with(Condition::Equal("trigger_ref", rule.trigger.reference.as_str().into()))
        .by("occurrence_time", true);
    for (key, is_after) in [("since", true), ("until", false)] {
        let Some(time) = text(body, key)? else { continue };
        let time =
            crate::times::parse(time).map_err(|error| ApiError::bad_request(format!("`{key}`: {error}")))?;
        let time = Value::from(time.to_string());
        query = query.with(match is_after {
            true => Condition::After("occurrence_time", time),
            false => Condition::Before("occurrence_time", time),
        });
    }
    let rows = engine.store.find(query).await?;
    let mut matched = 0;
    let mut events = Vec::new();
    for event in &rows.documents {
        let outcome = rule
            .rule
            .evaluate(&TriggerInstance::new(event.get("payload").unwrap_or(&Value::Null), engine.now()));
        matched += i64::from(outcome.is_match);
        let mut shown = Map::new();
        shown.insert("trigger_instance", event.get("id").cloned().unwrap_or_default());
        shown.insert("occurrence_time", event.get("occurrence_time").cloned().unwrap_or_default());
        shown.insert("match", outcome.is_match);
        if let Some(failure) = outcome.failure {
            shown.insert("error", failure.to_string());
        }
        events.push(Value::Map(shown));
    }
    let mut shown = Map::new();
    shown.insert("rule", rule.reference());
    shown.insert("tested", i64::try_from(events.len()).unwrap_or(i64::MAX));
    shown.insert("matched", matched);
    shown.insert("events", events);
    ok(shown)
}

/// Tells what each criterion of a rule gives for a payload, and the parameters that its actions would get.
fn explain(engine: &Arc<Engine>, rule: &RegisteredRule, payload: &Value) -> Map {
    let explanation = rule.rule.explain(&TriggerInstance::new(payload, engine.now()));
    let mut shown = Map::new();
    shown.insert("rule", rule.reference());
    shown.insert("enabled", rule.rule.is_enabled);
    shown.insert("match", explanation.is_match);
    let criteria = explanation.criteria.to_value();
    shown.insert("criteria", criteria.get("criteria").cloned().unwrap_or_default());
    if !explanation.any_of.is_empty() {
        shown.insert("any_of", explanation.any_of.iter().map(|set| set.to_value()).collect::<Vec<_>>());
    }
    shown.insert(
        "actions",
        rule.rule.actions().map(|action| Value::Map(call(engine, action, payload))).collect::<Vec<_>>(),
    );
    shown
}

/// What an action would be called with.
fn call(engine: &Arc<Engine>, action: &ActionCall, payload: &Value) -> Map {
    let mut shown = Map::new();
    shown.insert("ref", action.reference.as_str());
    let origin = Origin { user: engine.user().to_owned(), ..Origin::default() };
    let contexts = [("trigger", payload.clone())];
    match engine.draft("", &action.reference, &action.parameters, origin, &contexts) {
        Ok(execution) => {
            let masked = shape(engine, execution.document().clone(), false);
            shown.insert("parameters", masked.get("parameters").cloned().unwrap_or_default());
        }
        Err(DraftError::Failed(reason, _)) => drop(shown.insert("error", reason)),
        Err(DraftError::Refused(error)) => drop(shown.insert("error", error.to_string())),
    }
    shown
}

fn text<'a>(body: &'a Map, key: &str) -> Result<Option<&'a str>, ApiError> {
    match body.get(key) {
        None => Ok(None),
        Some(value) => {
            let wrong =
                || ApiError::bad_request(format!("`{key}` is a JSON {}; send a text", value.type_name()));
            value.as_str().map(Some).ok_or_else(wrong)
        }
    }
}
