//! The datastore's answers to Python actions and sensors.

use std::sync::Arc;

use imori_automation::value::{Map, Value};

use super::keys::{Key, KeyError};
use crate::engine::Engine;
use crate::limits::OBJECTS_LOADED;
use crate::python::{Datastore, DatastoreAnswer, DatastoreFuture, DatastoreItem, DatastoreQuestion};

/// The datastore as actions and sensors see it.
pub(crate) struct Keys {
    engine: Arc<Engine>,
    user: String,
}

impl Keys {
    /// The datastore for an action or a sensor of this user.
    pub(crate) fn new(engine: &Arc<Engine>, user: &str) -> Keys {
        Keys { engine: Arc::clone(engine), user: user.to_owned() }
    }
}

impl Datastore for Keys {
    fn answer(&self, question: DatastoreQuestion) -> DatastoreFuture<'_> {
        Box::pin(async move {
            let key = |name: &str| Key::new("system", &self.user, name);
            let failed = |error: KeyError| error.to_string();
            match question {
                DatastoreQuestion::Get { name, decrypt } => {
                    let found =
                        self.engine.read_key(&key(&name).map_err(failed)?, decrypt).await.map_err(failed)?;
                    let value = found.and_then(|document| document.get("value")?.as_str().map(str::to_owned));
                    Ok(DatastoreAnswer::Value(value))
                }
                DatastoreQuestion::Set { name, value, ttl, encrypt } => {
                    let seconds = ttl.and_then(|seconds| i64::try_from(seconds).ok());
                    let key = key(&name).map_err(failed)?;
                    self.engine.set_key(&key, value, seconds, encrypt).await.map_err(failed)?;
                    Ok(DatastoreAnswer::Done)
                }
                DatastoreQuestion::Delete { name } => {
                    match self.engine.delete_key(&key(&name).map_err(failed)?).await.map_err(failed)? {
                        true => Ok(DatastoreAnswer::Done),
                        false => Err(format!("key `{name}` does not exist")),
                    }
                }
                DatastoreQuestion::List { prefix, limit, offset } => {
                    let key = key(prefix.as_deref().unwrap_or_default()).map_err(failed)?;
                    let limit = limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(OBJECTS_LOADED);
                    let offset = usize::try_from(offset).unwrap_or(usize::MAX);
                    let found = self.engine.list_keys(&key, limit, offset).await.map_err(failed)?;
                    Ok(DatastoreAnswer::Items(found.documents.iter().map(item).collect()))
                }
                DatastoreQuestion::User => {
                    let mut user = Map::new();
                    user.insert("username", self.user.as_str());
                    let mut rbac = Map::new();
                    rbac.insert("enabled", false);
                    rbac.insert("roles", Vec::new());
                    rbac.insert("is_admin", true);
                    user.insert("rbac", rbac);
                    let mut authentication = Map::new();
                    authentication.insert("method", "authentication token");
                    authentication.insert("location", "header");
                    user.insert("authentication", authentication);
                    Ok(DatastoreAnswer::User(user))
                }
            }
        })
    }
}

fn item(document: &Map) -> DatastoreItem {
    let text = |key: &str| document.get(key).and_then(Value::as_str).map(str::to_owned);
    let flag = |key: &str| document.get(key).is_some_and(Value::is_truthy);
    DatastoreItem {
        name: text("name").unwrap_or_default(),
        value: text("value").unwrap_or_default(),
        secret: flag("secret"),
        encrypted: flag("encrypted"),
        expire_timestamp: text("expire_timestamp"),
    }
}
