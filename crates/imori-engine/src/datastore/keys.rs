//! Reading and writing keys.

use std::fmt;
use std::sync::Arc;

use imori_automation::ids::Id;
use imori_automation::value::{Map, Value};

use crate::engine::{Engine, OwnEvent};
use crate::limits::{KEY_NAME_BYTES_MAX, KEY_VALUE_BYTES_MAX};
use crate::store::{Condition, KEYS, Query, Rows, StoreError, Transaction};

/// A key of the datastore.
#[derive(Debug, Clone)]
pub(crate) struct Key {
    scope: &'static str,
    user: Option<String>,
    name: String,
}

/// Why a key cannot be read or written.
#[derive(Debug)]
pub(crate) enum KeyError {
    /// The key or its value is wrong.
    Wrong(String),
    /// The store refused.
    Store(StoreError),
}

impl Key {
    /// The key of this scope, user and name.
    ///
    /// # Errors
    /// The scope is unknown, or the name too long.
    pub(crate) fn new(scope: &str, user: &str, name: &str) -> Result<Key, KeyError> {
        if name.len() > KEY_NAME_BYTES_MAX {
            return Err(KeyError::Wrong(format!("a key's name has at most {KEY_NAME_BYTES_MAX} bytes")));
        }
        match scope {
            "system" | "st2kv.system" => Ok(Key { scope: "st2kv.system", user: None, name: name.to_owned() }),
            "user" | "st2kv.user" => {
                Ok(Key { scope: "st2kv.user", user: Some(user.to_owned()), name: name.to_owned() })
            }
            other => Err(KeyError::Wrong(format!("Scope \"{other}\" is not valid; use `system` or `user`"))),
        }
    }

    /// The key that a request names: by its query, or by the body that sets it. What decides who may is what is done.
    ///
    /// # Errors
    /// The scope is unknown, or the name too long.
    pub(crate) fn requested<'a>(
        name: &str,
        own_user: &str,
        query: impl Fn(&str) -> Option<&'a str>,
        body: Option<&Map>,
    ) -> Result<Key, KeyError> {
        let text = |key: &str| body.and_then(|body| body.get(key)).and_then(Value::as_str);
        if let Some(scope) = text("scope") {
            return Key::new(scope, text("user").unwrap_or(own_user), name);
        }
        let (user, scope) = (query("user"), query("scope"));
        let scope = match (user, scope) {
            // As in StackStorm, a user is asked for their own keys.
            (Some(_), _) => "st2kv.user",
            (None, None | Some("all")) => "st2kv.system",
            (None, Some(scope)) => scope,
        };
        Key::new(scope, user.unwrap_or(own_user), name)
    }

    /// The user whose key it is; `None` for a key of the system.
    pub(crate) fn user(&self) -> Option<&str> {
        self.user.as_deref()
    }

    fn id(&self) -> String {
        let user = self.user.as_deref().unwrap_or_default();
        Id::derived(0, &[b"key", self.scope.as_bytes(), user.as_bytes(), self.name.as_bytes()]).to_string()
    }
}

impl Engine {
    /// The document of a key; a secret value is encrypted unless `decrypts`.
    pub(crate) async fn read_key(&self, key: &Key, decrypts: bool) -> Result<Option<Map>, KeyError> {
        let found = self.store.get(&KEYS, &key.id()).await?.filter(|found| !self.is_expired(found));
        match found {
            Some(document) if decrypts => self.decrypted(document).map(Some),
            other => Ok(other),
        }
    }

    /// A document of a key with its value in the clear.
    pub(crate) fn decrypted(&self, mut document: Map) -> Result<Map, KeyError> {
        if document.get("secret").is_some_and(Value::is_truthy) {
            let text = |key: &str| document.get(key).and_then(Value::as_str).unwrap_or_default();
            let opened = self.cipher.decrypt(text("value"));
            let value =
                opened.map_err(|reason| KeyError::Wrong(format!("key `{}`: {reason}", text("name"))))?;
            document.insert("value", value);
            document.insert("encrypted", false);
        }
        Ok(document)
    }

    /// The text of a value that was encrypted before it was sent, by this engine or by StackStorm.
    pub(crate) fn opened(&self, value: &str) -> Result<String, KeyError> {
        self.cipher.decrypt(value).map_err(KeyError::Wrong)
    }

    /// The document of a key, read by a template, which cannot wait as a task does. `None` if there is none or the store
    /// cannot be read.
    pub(crate) fn read_key_now(&self, key: &Key) -> Option<Map> {
        let document = self.store.get_now(&KEYS, &key.id()).ok().flatten();
        document.filter(|found| !self.is_expired(found))
    }

    /// Keys of the scope and user of this one, whose names begin with its name.
    pub(crate) async fn list_keys(&self, key: &Key, limit: usize, offset: usize) -> Result<Rows, KeyError> {
        let mut query = Query::all(&KEYS, limit).by("scope", false).by("user", false).by("name", false);
        query.offset = offset;
        query = query.with(Condition::Equal("scope", key.scope.into()));
        if let Some(user) = &key.user {
            query = query.with(Condition::Equal("user", user.as_str().into()));
        }
        if !key.name.is_empty() {
            query = query.with(Condition::StartsWith("name", key.name.clone()));
        }
        let mut rows = self.store.find(query).await?;
        rows.documents.retain(|document| !self.is_expired(document));
        Ok(rows)
    }

    /// Sets a key; returns its document, and whether it is new. `seconds` is its time to live.
    pub(crate) async fn set_key(
        self: &Arc<Self>,
        key: &Key,
        value: String,
        seconds: Option<i64>,
        is_secret: bool,
    ) -> Result<(Map, bool), KeyError> {
        if value.len() > KEY_VALUE_BYTES_MAX {
            return Err(KeyError::Wrong(format!("a key's value has at most {KEY_VALUE_BYTES_MAX} bytes")));
        }
        let (id, now) = (key.id(), self.now());
        let old = self.store.get(&KEYS, &id).await?.filter(|found| !self.is_expired(found));
        let stored = match is_secret {
            true => self.cipher.encrypt(&value).map_err(KeyError::Wrong)?,
            false => value,
        };
        let mut document = Map::new();
        document.insert("id", id.as_str());
        document.insert("uid", uid(key));
        document.insert("name", key.name.as_str());
        document.insert("value", stored);
        document.insert("scope", key.scope);
        document.insert("secret", is_secret);
        document.insert("encrypted", is_secret);
        if let Some(user) = &key.user {
            document.insert("user", user.as_str());
        }
        let expires = seconds.and_then(|seconds| now.plus_micros(seconds.checked_mul(1_000_000)?));
        if let Some(expires) = expires {
            document.insert("expire_timestamp", expires.to_string());
        }
        let mut transaction = Transaction::new();
        transaction.put(&KEYS, document.clone());
        self.store.commit(transaction).await?;
        let shown = |document: &Map| Value::Map(masked(document));
        let mut changes = Vec::new();
        match &old {
            None => changes.push(("create", vec![("object", shown(&document))])),
            Some(old) => {
                changes.push(("update", vec![("object", shown(&document))]));
                if old.get("value") != document.get("value") {
                    let both = vec![("old_object", shown(old)), ("new_object", shown(&document))];
                    changes.push(("value_change", both));
                }
            }
        }
        for (change, payload) in changes {
            self.report(OwnEvent::KeyChanged(change, payload.into_iter().collect())).await;
        }
        Ok((document, old.is_none()))
    }

    /// Deletes a key; returns false if it does not exist.
    pub(crate) async fn delete_key(self: &Arc<Self>, key: &Key) -> Result<bool, KeyError> {
        let id = key.id();
        let Some(old) = self.store.get(&KEYS, &id).await?.filter(|found| !self.is_expired(found)) else {
            return Ok(false);
        };
        let mut transaction = Transaction::new();
        transaction.delete(&KEYS, &id);
        self.store.commit(transaction).await?;
        self.report(OwnEvent::KeyChanged(
            "delete",
            [("object", Value::Map(masked(&old)))].into_iter().collect(),
        ))
        .await;
        Ok(true)
    }

    fn is_expired(&self, document: &Map) -> bool {
        let expires = document.get("expire_timestamp").and_then(Value::as_str);
        expires.and_then(|text| text.parse().ok()).is_some_and(|at| self.now() >= at)
    }
}

fn uid(key: &Key) -> String {
    match &key.user {
        Some(user) => format!("key_value_pair:{}:{user}:{}", key.scope, key.name),
        None => format!("key_value_pair:{}:{}", key.scope, key.name),
    }
}

/// The document without a secret value.
fn masked(document: &Map) -> Map {
    let mut shown = document.clone();
    if document.get("secret").is_some_and(Value::is_truthy) {
        shown.insert("value", "********");
    }
    shown
}

impl From<StoreError> for KeyError {
    fn from(error: StoreError) -> KeyError {
        KeyError::Store(error)
    }
}

impl fmt::Display for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KeyError::Wrong(reason) => f.write_str(reason),
            KeyError::Store(error) => error.fmt(f),
        }
    }
}
