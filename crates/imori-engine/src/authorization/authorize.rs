//! What the requester of each request may do, by roles. One function decides, before any handler runs.

use std::sync::Arc;

use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{RawPathParams, Request};
use imori_automation::value::{Map, Value};

use crate::access::{Need, Permission, Requester, Resource, Roles, Target, requester};
use crate::datastore::Key;
use crate::engine::Engine;
use crate::store::{EXECUTIONS, Query, StoreError};

/// Why a request is not passed on.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// The requester may not make it, in StackStorm's words.
    Forbidden(String),
    /// Its body is too long.
    TooLong(String),
    /// The store cannot be read.
    Store(StoreError),
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Refusal {
        Refusal::Store(error)
    }
}

/// Passes a request on that its requester may make. Reads its body, where that names the resource.
///
/// # Errors
/// The requester's roles do not allow it, or the body is too long.
pub(crate) async fn authorize(
    engine: &Arc<Engine>,
    requester: Requester,
    need: Need,
    params: &RawPathParams,
    request: Request,
) -> Result<Request, Refusal> {
    let roles = engine.roles();
    if may_everything(requester, &roles) {
        return Ok(request);
    }
    let (parts, body) = request.into_parts();
    // The body of a webhook may be long, and says nothing about who may send it.
    let (bytes, body) = match need.target {
        Target::Webhook => (Bytes::new(), body),
        _ => {
            let bytes = to_bytes(body, need.body_bytes_max).await.map_err(|_| {
                Refusal::TooLong(format!("a request has at most {} bytes", need.body_bytes_max))
            })?;
            (bytes.clone(), Body::from(bytes))
        }
    };
    let question = Question {
        engine,
        roles: &roles,
        user: requester.name,
        method: parts.method.as_str(),
        name: params.iter().next().map(|(_, name)| name).unwrap_or_default(),
        query: pairs(parts.uri.query().unwrap_or_default()),
        body: body_of(&bytes),
    };
    question.check(need).await?;
    Ok(Request::from_parts(parts, body))
}

/// Whether the user whose request is answered has a permission on a resource.
pub(crate) fn may(engine: &Engine, permission: &str, resource: &Resource) -> bool {
    requester().is_some_and(|requester| may_of(engine, requester, permission, resource))
}

/// Whether a user has a permission on a resource.
pub(crate) fn may_of(engine: &Engine, requester: Requester, permission: &str, resource: &Resource) -> bool {
    let roles = engine.roles();
    may_everything(requester, &roles) || roles.allows(requester.name, permission, resource)
}

/// Whether roles do not decide about this user.
pub(crate) fn may_everything(requester: Requester, roles: &Roles) -> bool {
    requester.is_local || !roles.is_enforced() || roles.is_admin(requester.name)
}

fn body_of(bytes: &Bytes) -> Map {
    match Value::from_json(bytes) {
        Ok(Value::Map(map)) => map,
        // The handler refuses it.
        _ => Map::new(),
    }
}

/// The pairs of a query, decoded.
pub fn pairs(query: &str) -> Vec<(String, String)> {
    let pair = |part: &str| {
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        (decoded(&name.replace('+', " ")), decoded(&value.replace('+', " ")))
    };
    query.split('&').filter(|part| !part.is_empty()).map(pair).collect()
}

/// A name or value of a query without its percent-encoding.
pub fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let hex = after.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        let byte = hex.filter(|_| *first == b'%').and_then(|hex| u8::from_str_radix(hex, 16).ok());
        bytes.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { after.get(2..).unwrap_or_default() } else { after };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// One request of a user whose roles decide.
struct Question<'a> {
    engine: &'a Arc<Engine>,
    roles: &'a Roles,
    user: &'a str,
    method: &'a str,
    /// The part of the path that names the object.
    name: &'a str,
    query: Vec<(String, String)>,
    body: Map,
}

impl Question<'_> {
    async fn check(&self, need: Need) -> Result<(), Refusal> {
        // Secrets are for administrators.
        let shows = ["show_secrets", "decrypt"].into_iter().any(|key| self.is_set(key));
        let permission = match need.permission {
            Permission::Type(permission) if !shows => permission,
            Permission::Any if !shows => return Ok(()),
            _ => return Err(forbidden(String::from("Administrator access required"))),
        };
        let kind = permission.rsplit_once('_').map_or("", |(kind, _)| kind);
        match need.target {
            Target::Nothing if kind == "key_value_pair" => {
                if self.parameter("scope") == Some("all") {
                    return Err(of_others());
                }
                if let Some(key) = self.key() {
                    self.check_user(&key)?;
                }
                self.require(permission, &Resource::All)
            }
            Target::Nothing => self.require(permission, &Resource::All),
            Target::Named => {
                if let Some(resource) = self.named(kind, self.name) {
                    self.require(permission, &resource)?;
                }
                if self.method == "PUT" && self.body.contains_key("name") {
                    self.require(permission, &self.of_body(kind))?;
                }
                self.check_rule(kind)
            }
            Target::Body => {
                self.require(permission, &self.of_body(kind))?;
                self.check_rule(kind)
            }
            Target::BodyAction => {
                if self.text("user").is_some_and(|user| user != self.user) {
                    return Err(of_others());
                }
                self.require_action(permission, self.text("action").unwrap_or_default())
            }
            Target::Execution => {
                let Some(action) = self.action_of_execution().await? else { return Ok(()) };
                let is_view = permission == "execution_view";
                if is_view && self.roles.allows(self.user, permission, &Resource::All) {
                    return Ok(());
                }
                self.require_action(if is_view { "action_view" } else { "action_execute" }, &action)
            }
            Target::Alias => self.require_action(permission, &self.action_of_alias().unwrap_or_default()),
            Target::Command => self.require_action(permission, &self.action_of_command().unwrap_or_default()),
            Target::Key => {
                // The handler refuses what names no key.
                let Some(key) = self.key() else { return Ok(()) };
                if key.user().is_some() {
                    return self.check_user(&key);
                }
                let resource = format!("st2kv.system:{}", self.name);
                self.require(permission, &Resource::single("key_value_pair", &resource))
            }
            Target::Webhook => {
                self.require(permission, &Resource::single("webhook", self.name.trim_matches('/')))
            }
        }
    }

    fn require(&self, permission: &str, resource: &Resource) -> Result<(), Refusal> {
        if self.roles.allows(self.user, permission, resource) {
            return Ok(());
        }
        let user = self.user;
        let reason = format!("User \"{user}\" doesn't have required permission \"{permission}\"");
        Err(forbidden(match resource {
            Resource::All => reason,
            Resource::One { uid, .. } => format!("{reason} on resource \"{uid}\""),
        }))
    }

    /// Requires a permission on an action; one that does not exist is the handler's to refuse.
    fn require_action(&self, permission: &str, action: &str) -> Result<(), Refusal> {
        match self.named("action", action) {
            Some(resource) => self.require(permission, &resource),
            None => Ok(()),
        }
    }

    /// A rule runs its action, so that its author needs to be allowed to.
    fn check_rule(&self, kind: &str) -> Result<(), Refusal> {
        if kind != "rule" || !matches!(self.method, "POST" | "PUT") {
            return Ok(());
        }
        let further = self.body.get("x-imori").and_then(|extension| extension.get("actions")?.as_list());
        let actions = self.body.get("action").into_iter().chain(further.unwrap_or_default());
        for action in actions {
            self.require_action(
                "action_execute",
                action.get("ref").and_then(Value::as_str).unwrap_or_default(),
            )?;
        }
        Ok(())
    }

    /// The resource of a reference or id, if it exists.
    fn named(&self, kind: &str, name: &str) -> Option<Resource> {
        let registry = self.engine.registry();
        let has_id = |document: &&Map| document.get("id").and_then(Value::as_str) == Some(name);
        let document = match kind {
            "action" => {
                let all = &registry.actions;
                all.get(name).map(|it| &**it).or_else(|| all.values().map(|it| &**it).find(has_id)).cloned()
            }
            "action_alias" => {
                let all = &registry.aliases;
                let found = all.get(name).map(|it| &it.document);
                found.or_else(|| all.values().map(|it| &it.document).find(has_id)).cloned()
            }
            "rule" => {
                let all = &registry.rules;
                let found = all.get(name).map(|it| &it.document);
                found.or_else(|| all.values().map(|it| &it.document).find(has_id)).cloned()
            }
            "policy" => {
                let all = &registry.policies;
                let found = all.get(name).map(|it| &it.document);
                found.or_else(|| all.values().map(|it| &it.document).find(has_id)).cloned()
            }
            "pack" => {
                let all = &registry.packs;
                let found = all.get(name).map(|it| &it.document);
                let found = found.or_else(|| all.values().map(|it| &it.document).find(has_id))?;
                let reference = found.get("ref").and_then(Value::as_str).unwrap_or_default();
                return Some(Resource::single("pack", reference));
            }
            _ => {
                return Some(match name.split_once('.') {
                    Some((pack, name)) => Resource::of_pack(kind, pack, name),
                    None => Resource::single(kind, name),
                });
            }
        };
        let document = document?;
        let text = |key: &str| document.get(key).and_then(Value::as_str).unwrap_or_default();
        Some(Resource::of_pack(kind, text("pack"), text("name")))
    }

    fn of_body(&self, kind: &str) -> Resource {
        let pack = self.text("pack").filter(|pack| !pack.is_empty()).unwrap_or("default");
        Resource::of_pack(kind, pack, self.text("name").unwrap_or_default())
    }

    /// The value of a key of the query, if it is not empty.
    fn parameter(&self, key: &str) -> Option<&str> {
        let is_it = |(name, value): &&(String, String)| name == key && !value.is_empty();
        self.query.iter().find(is_it).map(|(_, value)| value.as_str())
    }

    fn is_set(&self, key: &str) -> bool {
        let value = self.parameter(key).map(str::to_ascii_lowercase);
        value.is_some_and(|value| matches!(value.as_str(), "1" | "true" | "yes"))
    }

    fn text(&self, key: &str) -> Option<&str> {
        self.body.get(key).and_then(Value::as_str)
    }

    async fn action_of_execution(&self) -> Result<Option<String>, Refusal> {
        let document = match self.name {
            "last" => {
                let query = Query::all(&EXECUTIONS, 1).by("start_timestamp", true);
                self.engine.store.find(query).await?.documents.pop()
            }
            id => self.engine.store.get(&EXECUTIONS, id).await?,
        };
        let action = document.as_ref().and_then(|document| document.get("action")?.as_str());
        Ok(action.map(str::to_owned))
    }

    fn action_of_alias(&self) -> Option<String> {
        let (registry, name) = (self.engine.registry(), self.text("name")?);
        let alias = registry.aliases.values().find(|alias| alias.text("name") == name)?;
        Some(alias.text("action_ref").to_owned())
    }

    fn action_of_command(&self) -> Option<String> {
        let found = self.engine.match_alias(self.text("command")?).ok()?;
        Some(found.alias.text("action_ref").to_owned())
    }

    /// The key that the request reads, sets or deletes.
    fn key(&self) -> Option<Key> {
        let body = (self.method == "PUT").then_some(&self.body);
        Key::requested(self.name, self.user, |key| self.parameter(key), body).ok()
    }

    /// The keys of other users are for administrators.
    fn check_user(&self, key: &Key) -> Result<(), Refusal> {
        match key.user() {
            Some(user) if user != self.user => Err(of_others()),
            _ => Ok(()),
        }
    }
}

fn of_others() -> Refusal {
    forbidden(String::from("\"user\" attribute can only be provided by admins"))
}

fn forbidden(reason: String) -> Refusal {
    Refusal::Forbidden(reason)
}
