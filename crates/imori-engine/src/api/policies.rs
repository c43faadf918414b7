//! Policies and their types: `/policies` and `/policytypes`.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Path, Query, State};
use imori_automation::ids::Id;
use imori_automation::value::{Map, Value};

use crate::answers::{Answer, ApiError, ListQuery, created, no_content, object, ok};
use crate::engine::Engine;
use crate::packs::policy::policy_types;
use crate::registration::PolicyError;
use crate::registry::RegisteredPolicy;

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
        ("resource_ref", &["resource_ref"]),
        ("policy_type", &["policy_type"]),
    ];
    ListQuery::new(pairs).page(registry.policies.values().map(|policy| &policy.document), &filters)
}

pub(super) async fn show(State(engine): Broker, Path(name): Path<String>) -> Answer {
    ok(find(&engine, &name)?.document.clone())
}

pub(super) async fn create(State(engine): Broker, body: Bytes) -> Answer {
    created(engine.create_policy(object(&body)?).await?.document.clone())
}

pub(super) async fn change(State(engine): Broker, Path(name): Path<String>, body: Bytes) -> Answer {
    let policy = find(&engine, &name)?;
    ok(engine.change_policy(&policy, object(&body)?).await?.document.clone())
}

pub(super) async fn delete(State(engine): Broker, Path(name): Path<String>) -> Answer {
    let policy = find(&engine, &name)?;
    engine.delete_policy(&policy).await?;
    no_content()
}

fn find(engine: &Engine, name: &str) -> Result<Arc<RegisteredPolicy>, ApiError> {
    let registry = engine.registry();
    let by_id = || registry.policies.values().find(|policy| policy.text("id") == name);
    registry.policies.get(name).or_else(by_id).cloned().ok_or_else(|| ApiError::not_found("policy", name))
}

fn types() -> impl Iterator<Item = Map> {
    policy_types().into_iter().filter_map(|policy_type| {
        let Value::Map(mut document) = policy_type.to_document() else { return None };
        let reference = policy_type.reference();
        document.insert("id", Id::derived(0, &[b"policy_type", reference.as_bytes()]).to_string());
        Some(document)
    })
}

pub(super) async fn list_types(Query(pairs): Pairs) -> Answer {
    let types: Vec<Map> = types().collect();
    let filters: [(&str, &[&str]); 4] =
        [("id", &["id"]), ("ref", &["ref"]), ("name", &["name"]), ("resource_type", &["resource_type"])];
    ListQuery::new(pairs).page(types.iter(), &filters)
}

pub(super) async fn show_type(Path(name): Path<String>) -> Answer {
    let is_it = |document: &Map| {
        ["ref", "id"].into_iter().any(|key| document.get(key).and_then(Value::as_str) == Some(&name))
    };
    ok(types().find(is_it).ok_or_else(|| ApiError::not_found("policy type", &name))?)
}

impl From<PolicyError> for ApiError {
    fn from(error: PolicyError) -> ApiError {
        match error {
            PolicyError::Wrong(reason) => ApiError::bad_request(reason),
            PolicyError::Exists(reference, id) => {
                ApiError::conflict(format!("policy `{reference}` exists already"), &id)
            }
            PolicyError::Collides(reason, id) => ApiError::conflict(reason, &id),
            PolicyError::OfPack(pack) => ApiError::bad_request(format!(
                "the policy belongs to the folder of pack `{pack}`, and only its `enabled` can be changed here; change its \
                 file there and register the pack"
            )),
            PolicyError::Store(error) => error.into(),
        }
    }
}
