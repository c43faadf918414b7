//! Roles and their assignments: `/rbac` and `/user`.

use std::sync::Arc;

use axum::extract::{Path, Query, State};
use imori_automation::value::{Map, Value};

use crate::access::{PERMISSION_TYPES, requester};
use crate::answers::{Answer, ApiError, ListQuery, ok};
use crate::engine::Engine;

type Pairs = Query<Vec<(String, String)>>;
type Broker = State<Arc<Engine>>;

/// The roles that need no file, with what they allow.
const BUILT_IN: [(&str, &str); 3] = [
    ("system_admin", "Allows everything."),
    ("admin", "Allows everything."),
    ("observer", "Allows to see everything that is not secret."),
];

pub(crate) async fn permission_types() -> Answer {
    ok(PERMISSION_TYPES.iter().map(|(kind, names)| (*kind, types(kind, names))).collect::<Map>())
}

pub(crate) async fn permission_types_of(Path(kind): Path<String>) -> Answer {
    match PERMISSION_TYPES.iter().find(|(name, _)| *name == kind) {
        Some((kind, names)) => ok(types(kind, names)),
        None => Err(ApiError::not_found("resource type", &kind)),
    }
}

fn types(kind: &str, names: &[&str]) -> Map {
    let sentence = |name: &str| format!("Ability to use {name} on {kind}.");
    names.iter().map(|name| (format!("{kind}_{name}"), sentence(name))).collect()
}

fn roles(engine: &Engine) -> Vec<Map> {
    let shape = |name: &str, description: &str, grants: Vec<Value>, is_system: bool| -> Map {
        let mut shape = Map::new();
        shape.insert("id", name);
        shape.insert("name", name);
        shape.insert("description", description);
        shape.insert("system", is_system);
        shape.insert("permission_grant_objects", grants);
        shape
    };
    let built_in = BUILT_IN.iter().map(|(name, description)| shape(name, description, Vec::new(), true));
    let all = engine.roles();
    let own = all.roles().iter().map(|(name, role)| {
        let grants = role.grants.iter().map(|grant| {
            let mut shown = Map::new();
            let permissions = grant.permissions.iter().map(|name| Value::from(name.as_str()));
            shown.insert("resource_uid", grant.resource.clone());
            shown.insert("permission_types", permissions.collect::<Vec<_>>());
            Value::Map(shown)
        });
        shape(name, &role.description, grants.collect(), false)
    });
    built_in.chain(own).collect()
}

pub(crate) async fn list_roles(State(engine): Broker, Query(pairs): Pairs) -> Answer {
    ListQuery::new(pairs).page(roles(&engine).iter(), &[("name", &["name"]), ("system", &["system"])])
}

pub(crate) async fn show_role(State(engine): Broker, Path(name): Path<String>) -> Answer {
    let found =
        roles(&engine).into_iter().find(|role| role.get("name").and_then(Value::as_str) == Some(&name));
    ok(found.ok_or_else(|| ApiError::not_found("role", &name))?)
}

fn assignments(engine: &Engine) -> Vec<Map> {
    let all = engine.roles();
    let of_user = |(user, assignment): (&String, &crate::access::Assignment)| -> Vec<Map> {
        let shape = |role: &String| -> Map {
            let mut shape = Map::new();
            shape.insert("id", format!("{user}:{role}"));
            shape.insert("user", user.as_str());
            shape.insert("role", role.as_str());
            shape.insert("description", assignment.description.as_str());
            shape.insert("is_remote", false);
            shape.insert("source", assignment.file.as_str());
            shape
        };
        assignment.roles.iter().map(shape).collect()
    };
    all.assignments().iter().flat_map(of_user).collect()
}

pub(crate) async fn list_assignments(State(engine): Broker, Query(pairs): Pairs) -> Answer {
    let filters: [(&str, &[&str]); 3] = [("user", &["user"]), ("role", &["role"]), ("source", &["source"])];
    ListQuery::new(pairs).page(assignments(&engine).iter(), &filters)
}

pub(crate) async fn show_assignment(State(engine): Broker, Path(id): Path<String>) -> Answer {
    let found =
        assignments(&engine).into_iter().find(|shape| shape.get("id").and_then(Value::as_str) == Some(&id));
    ok(found.ok_or_else(|| ApiError::not_found("role assignment", &id))?)
}

/// Reads the files again. With a problem in one, the roles stay as they were.
pub(crate) async fn reload(State(engine): Broker) -> Answer {
    let read = Arc::clone(&engine);
    let reloaded = tokio::task::spawn_blocking(move || read.reload_roles()).await;
    let problems = reloaded.map_err(|error| ApiError::bad_request(error.to_string()))?;
    if !problems.is_empty() {
        return Err(ApiError::bad_request(problems.join("; ")));
    }
    let roles = engine.roles();
    let mut body = Map::new();
    body.insert("roles", roles.roles().len() as i64);
    body.insert("role_assignments", roles.assignments().len() as i64);
    ok(body)
}

/// The requester and the roles it has.
pub(crate) async fn show_user(State(engine): Broker) -> Answer {
    let roles = engine.roles();
    let user = engine.user();
    let is_admin = super::tokens::is_admin(&engine);
    let names = roles.assignments().get(user).map(|assignment| assignment.roles.clone()).unwrap_or_default();
    let mut rbac = Map::new();
    rbac.insert("enabled", roles.is_enforced());
    rbac.insert("roles", names.into_iter().map(Value::from).collect::<Vec<_>>());
    rbac.insert("is_admin", is_admin);
    let is_local = requester().is_none_or(|requester| requester.is_local);
    let mut authentication = Map::new();
    authentication.insert("method", if is_local { "none" } else { "authentication token" });
    authentication.insert("location", "header");
    let mut body = Map::new();
    body.insert("username", user);
    body.insert("authentication", authentication);
    body.insert("rbac", rbac);
    ok(body)
}
