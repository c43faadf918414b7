//! Rules, their types and their enforcements.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Path, Query, State};
use imori_automation::value::{Map, Value};

use crate::access::Resource;
use crate::answers::{Answer, ApiError, ListQuery, created, no_content, object, ok};
use crate::authorization::may;
use crate::engine::Engine;
use crate::registration::RuleChangeError;
use crate::registry::RegisteredRule;
use crate::store::ENFORCEMENTS;

type Pairs = Query<Vec<(String, String)>>;
type Broker = State<Arc<Engine>>;

pub(super) async fn list(State(engine): Broker, Query(pairs): Pairs) -> Answer {
    let registry = engine.registry();
    let filters: [(&str, &[&str]); 8] = [
        ("id", &["id"]),
        ("ref", &["ref"]),
        ("name", &["name"]),
        ("pack", &["pack"]),
        ("action", &["action", "ref"]),
        ("trigger", &["trigger", "type"]),
        ("enabled", &["enabled"]),
        ("user", &["context", "user"]),
    ];
    let shown: Vec<Map> = registry.rules.values().map(|rule| shape(&engine, rule)).collect();
    ListQuery::new(pairs).page(shown.iter(), &filters)
}

pub(super) async fn show(State(engine): Broker, Path(name): Path<String>) -> Answer {
    ok(shape(&engine, &*find(&engine, &name)?))
}

pub(super) async fn create(State(engine): Broker, body: Bytes) -> Answer {
    created(engine.create_rule(object(&body)?).await?.document.clone())
}

pub(super) async fn change(State(engine): Broker, Path(name): Path<String>, body: Bytes) -> Answer {
    let rule = find(&engine, &name)?;
    ok(engine.change_rule(&rule, object(&body)?).await?.document.clone())
}

pub(super) async fn delete(State(engine): Broker, Path(name): Path<String>) -> Answer {
    let rule = find(&engine, &name)?;
    engine.delete_rule(&rule).await?;
    no_content()
}

/// A rule as the API shows it: with its suspension, if there is one, and with the secrets of its trigger if the requester
/// may write the rule.
fn shape(engine: &Engine, rule: &RegisteredRule) -> Map {
    let text = |key: &str| rule.document.get(key).and_then(Value::as_str).unwrap_or_default();
    let mut document =
        match may(engine, "rule_modify", &Resource::of_pack("rule", text("pack"), text("name"))) {
            true => rule.document.clone(),
            false => rule.masked_document(&engine.registry().trigger_types),
        };
    if let Some(suspension) = engine.rule_memory().suspension(rule.id(), engine.now()) {
        document.insert("suspended", suspension);
    }
    document
}

pub(super) fn find(engine: &Engine, name: &str) -> Result<Arc<RegisteredRule>, ApiError> {
    let registry = engine.registry();
    let by_id =
        || registry.rules.values().find(|rule| rule.document.get("id").and_then(Value::as_str) == Some(name));
    registry.rules.get(name).or_else(by_id).cloned().ok_or_else(|| ApiError::not_found("rule", name))
}

const TYPES: [(&str, &str); 2] = [
    ("standard", "Runs its action for each event that meets its criteria."),
    ("backstop", "Runs its action for an event that meets its criteria where no standard rule matched."),
];

fn rule_types() -> Vec<Map> {
    let shape = |(name, description): (&str, &str)| -> Map {
        let mut shape = Map::new();
        shape.insert("id", format!("rule_type:{name}"));
        shape.insert("name", name);
        shape.insert("description", description);
        shape.insert("enabled", true);
        shape.insert("parameters", Map::new());
        shape
    };
    TYPES.into_iter().map(shape).collect()
}

pub(super) async fn list_types(Query(pairs): Pairs) -> Answer {
    ListQuery::new(pairs).page(rule_types().iter(), &[("name", &["name"])])
}

pub(super) async fn show_type(Path(id): Path<String>) -> Answer {
    let is_it =
        |shape: &Map| ["id", "name"].iter().any(|key| shape.get(key).and_then(Value::as_str) == Some(&id));
    match rule_types().into_iter().find(is_it) {
        Some(shape) => ok(shape),
        None => Err(ApiError::not_found("rule type", &id)),
    }
}

pub(super) async fn list_enforcements(State(engine): Broker, Query(pairs): Pairs) -> Answer {
    let list = ListQuery::new(pairs);
    let filters = [
        ("id", "id"),
        ("rule_ref", "rule_ref"),
        ("trigger_instance", "trigger_instance"),
        ("execution", "execution"),
    ];
    let query = list.stored(&ENFORCEMENTS, &filters, "enforced_at")?;
    let query = list.between(query, "enforced_at", "enforced_at")?;
    let limit = list.limit()?;
    let rows = engine.store.find(query).await?;
    let page = rows.documents.into_iter().map(|document| list.shown(document)).collect();
    list.answer(page, rows.total, limit)
}

pub(super) async fn show_enforcement(State(engine): Broker, Path(id): Path<String>) -> Answer {
    match engine.store.get(&ENFORCEMENTS, &id).await? {
        Some(document) => ok(document),
        None => Err(ApiError::not_found("rule enforcement", &id)),
    }
}

impl From<RuleChangeError> for ApiError {
    fn from(error: RuleChangeError) -> ApiError {
        match error {
            RuleChangeError::Wrong(reason) => ApiError::bad_request(reason),
            RuleChangeError::Exists(reference, id) => {
                ApiError::conflict(format!("rule `{reference}` exists already"), &id)
            }
            RuleChangeError::Store(error) => error.into(),
        }
    }
}
