//! The datastore: `/keys`.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Path, Query, State};
use imori_automation::value::Value;

use crate::answers::{Answer, ApiError, ListQuery, no_content, object, ok};
use crate::datastore::{Key, KeyError};
use crate::engine::Engine;
use crate::limits::OBJECTS_LOADED;

type Pairs = Query<Vec<(String, String)>>;
type Broker = State<Arc<Engine>>;

pub(super) async fn list(State(engine): Broker, Query(pairs): Pairs, body: Bytes) -> Answer {
    check_empty(&body)?;
    let list = ListQuery::new(pairs);
    let (limit, offset) = (list.limit()?, list.offset()?);
    let prefix = list.get("prefix").unwrap_or_default();
    let mut keys = vec![key_of(&engine, &list, prefix)?];
    // All of the system's, and those of one user.
    if list.get("scope") == Some("all") && list.get("user").is_none() {
        keys.push(Key::new("user", engine.user(), prefix)?);
    }
    let (mut page, mut total) = (Vec::new(), 0);
    for key in keys {
        let found = engine.list_keys(&key, limit.min(OBJECTS_LOADED), offset).await?;
        total += found.total;
        for document in found.documents {
            let document = if list.is_set("decrypt") { engine.decrypted(document)? } else { document };
            page.push(list.shown(document));
        }
    }
    list.answer(page, total, limit)
}

pub(super) async fn show(
    State(engine): Broker,
    Path(name): Path<String>,
    Query(pairs): Pairs,
    body: Bytes,
) -> Answer {
    check_empty(&body)?;
    let list = ListQuery::new(pairs);
    let key = key_of(&engine, &list, &name)?;
    match engine.read_key(&key, list.is_set("decrypt")).await? {
        Some(document) => ok(document),
        None => Err(ApiError::not_found("key", &name)),
    }
}

pub(super) async fn set(
    State(engine): Broker,
    Path(name): Path<String>,
    Query(pairs): Pairs,
    body: Bytes,
) -> Answer {
    let list = ListQuery::new(pairs);
    let mut body = object(&body)?;
    let key = Key::requested(&name, engine.user(), |key| list.get(key), Some(&body))?;
    let value = match body.remove("value") {
        Some(Value::String(text)) => text,
        Some(Value::Null) | None => return Err(ApiError::bad_request("'value' is a required property")),
        Some(other) => other.to_json(),
    };
    let seconds = body.get("ttl").and_then(Value::as_int).filter(|seconds| *seconds > 0);
    let is_set = |name: &str| body.get(name).is_some_and(Value::is_truthy);
    // It is encrypted again by the engine's own key, so that StackStorm's is needed no longer.
    let value = if is_set("encrypted") { engine.opened(&value)? } else { value };
    let is_secret = is_set("secret") || is_set("encrypted");
    let (document, _) = engine.set_key(&key, value, seconds, is_secret).await?;
    ok(document)
}

pub(super) async fn delete(
    State(engine): Broker,
    Path(name): Path<String>,
    Query(pairs): Pairs,
    body: Bytes,
) -> Answer {
    check_empty(&body)?;
    let key = key_of(&engine, &ListQuery::new(pairs), &name)?;
    match engine.delete_key(&key).await? {
        true => no_content(),
        false => Err(ApiError::not_found("key", &name)),
    }
}

fn key_of(engine: &Engine, list: &ListQuery, name: &str) -> Result<Key, ApiError> {
    Ok(Key::requested(name, engine.user(), |key| list.get(key), None)?)
}

/// A body that names a scope would be one that nothing reads.
fn check_empty(body: &[u8]) -> Result<(), ApiError> {
    match body {
        [] => Ok(()),
        _ => Err(ApiError::bad_request("this request has no body; give `scope` and `user` in the query")),
    }
}

impl From<KeyError> for ApiError {
    fn from(error: KeyError) -> ApiError {
        match error {
            KeyError::Wrong(reason) => ApiError::bad_request(reason),
            KeyError::Store(error) => error.into(),
        }
    }
}
