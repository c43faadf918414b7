//! API keys: `/apikeys`. Only the hash of a key is stored: the same as StackStorm's, so that its keys can be taken over.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use imori_automation::parameters::MASK;
use imori_automation::value::{Map, Value};
use ring::digest::{SHA512, digest};

use super::tokens::{hide_holder, holder, metadata, random_text};
use crate::access::Holder;
use crate::answers::{Answer, ApiError, ListQuery, created, no_content, object, ok};
use crate::engine::Engine;
use crate::store::{API_KEYS, Condition, Query as StoreQuery, StoreError, Transaction};

type Pairs = Query<Vec<(String, String)>>;
type Broker = State<Arc<Engine>>;

/// Hexadecimal digits of a hash.
const HASH_DIGITS: usize = 128;

pub(crate) async fn list(State(engine): Broker, Query(pairs): Pairs) -> Answer {
    let list = ListQuery::new(pairs);
    let query = list.stored(&API_KEYS, &[("id", "id"), ("user", "user")], "user")?;
    let limit = list.limit()?;
    let rows = engine.store.find(query).await?;
    let secrets = list.is_set("show_secrets");
    let page = rows.documents.into_iter().map(|document| list.shown(shown(document, secrets))).collect();
    list.answer(page, rows.total, limit)
}

pub(crate) async fn show(State(engine): Broker, Path(name): Path<String>, Query(pairs): Pairs) -> Answer {
    let list = ListQuery::new(pairs);
    ok(shown(find(&engine, &name).await?, list.is_set("show_secrets")))
}

/// Makes a key, which is shown only now. With `key_hash`, takes over a key that the client has.
pub(crate) async fn create(State(engine): Broker, body: Bytes) -> Answer {
    let body = if body.is_empty() { Map::new() } else { object(&body)? };
    let holder = holder(&engine, body.get("user"), false)?;
    if holder.bearer_until.is_some() {
        let reason =
            "an API key would outlive the access token of its user; make a token, which ends with it";
        return Err(ApiError::new(StatusCode::FORBIDDEN, reason));
    }
    let given = body.get("key_hash").and_then(Value::as_str).filter(|hash| !hash.is_empty());
    let key = if given.is_none() { Some(random_text(48)?) } else { None };
    let hash = match (given, &key) {
        (Some(hash), _) if hash.len() == HASH_DIGITS && hash.bytes().all(|byte| byte.is_ascii_hexdigit()) => {
            hash.to_ascii_lowercase()
        }
        (None, Some(key)) => hashed(key),
        _ => return Err(ApiError::bad_request("`key_hash` is no SHA-512 in hexadecimal digits")),
    };
    if let Some(known) = by_hash(&engine, &hash).await? {
        let id = known.get("id").and_then(Value::as_str).unwrap_or_default();
        return Err(ApiError::conflict("an API key of this hash exists already", id));
    }
    let mut document = Map::new();
    document.insert("id", engine.new_id().to_string());
    document.insert("uid", format!("api_key:{hash}"));
    holder.note(&mut document);
    document.insert("key_hash", hash);
    document.insert("metadata", metadata(&body)?);
    document.insert("created_at", engine.now().to_string());
    document.insert("enabled", body.get("enabled").and_then(Value::as_bool).unwrap_or(true));
    let mut transaction = Transaction::new();
    transaction.put(&API_KEYS, document.clone());
    engine.store.commit(transaction).await?;
    hide_holder(&mut document);
    document.remove("key_hash");
    document.insert("key", key);
    created(document)
}

/// Changes what a client notes about a key, and whether it counts.
pub(crate) async fn change(State(engine): Broker, Path(name): Path<String>, body: Bytes) -> Answer {
    let mut document = find(&engine, &name).await?;
    let body = object(&body)?;
    let text = |map: &Map, key: &str| map.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let hash = text(&body, "key_hash");
    if !hash.is_empty() && hash != MASK && hash != text(&document, "key_hash") {
        return Err(ApiError::bad_request("Update of key_hash is not allowed."));
    }
    let user = text(&body, "user");
    if !user.is_empty() && user != text(&document, "user") {
        return Err(ApiError::bad_request("the user of an API key cannot be changed; create another key"));
    }
    if body.contains_key("metadata") {
        document.insert("metadata", metadata(&body)?);
    }
    if let Some(enabled) = body.get("enabled").and_then(Value::as_bool) {
        document.insert("enabled", enabled);
    }
    let mut transaction = Transaction::new();
    transaction.put(&API_KEYS, document.clone());
    engine.store.commit(transaction).await?;
    engine.change_admissions();
    ok(shown(document, false))
}

pub(crate) async fn delete(State(engine): Broker, Path(name): Path<String>) -> Answer {
    let document = find(&engine, &name).await?;
    let mut transaction = Transaction::new();
    transaction.delete(&API_KEYS, document.get("id").and_then(Value::as_str).unwrap_or_default());
    engine.store.commit(transaction).await?;
    engine.change_admissions();
    no_content()
}

/// The key of this id, or the key itself.
async fn find(engine: &Engine, name: &str) -> Result<Map, ApiError> {
    let found = match engine.store.get(&API_KEYS, name).await? {
        Some(found) => Some(found),
        None => by_hash(engine, &hashed(name)).await?,
    };
    // The name may be a key, which no answer repeats.
    found.ok_or_else(|| ApiError::not_found("API key", MASK))
}

async fn by_hash(engine: &Engine, hash: &str) -> Result<Option<Map>, StoreError> {
    let query = StoreQuery::all(&API_KEYS, 1).with(Condition::Equal("key_hash", hash.into()));
    Ok(engine.store.find(query).await?.documents.pop())
}

fn shown(mut document: Map, shows_secrets: bool) -> Map {
    hide_holder(&mut document);
    if !shows_secrets {
        document.insert("uid", MASK);
        document.insert("key_hash", MASK);
    }
    document
}

impl Engine {
    /// The holder of an API key; `None` if it is unknown or disabled.
    pub(crate) async fn api_key_holder(&self, key: &str) -> Option<Holder> {
        let document = by_hash(self, &hashed(key)).await.ok().flatten()?;
        let is_enabled = document.get("enabled") == Some(&Value::Bool(true));
        self.holder_of(&document).filter(|_| is_enabled)
    }
}

/// What is stored of a key, which its holder alone has.
fn hashed(key: &str) -> String {
    digest(&SHA512, key.as_bytes()).as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}
