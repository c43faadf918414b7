//! Registering actions that belong to no pack's folder.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;

use imori_automation::ids::Id;
use imori_automation::value::{Map, Value};

use crate::engine::Engine;
use crate::limits::DEFINITION_BYTES_MAX;
use crate::store::{ACTIONS, StoreError, Transaction};

/// Why an action cannot be registered or deleted.
#[derive(Debug)]
pub(crate) enum ActionError {
    /// The action is wrong.
    Wrong(String),
    /// An action of this reference exists, with this id.
    Exists(String, String),
    /// The action belongs to the folder of this pack.
    OfPack(String),
    /// The store refused.
    Store(StoreError),
}

impl Engine {
    /// Registers an action, or puts it in the place of another one.
    ///
    /// # Errors
    /// The action is wrong, exists or belongs to a pack's folder, or the store refuses.
    pub(crate) async fn create_action(
        self: &Arc<Self>,
        mut document: Map,
        replaces: bool,
    ) -> Result<Arc<Map>, ActionError> {
        let _registering = self.registering().await;
        let registry = self.registry();
        let text = |key: &str| document.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (name, runner) = (text("name"), text("runner_type"));
        let pack =
            Some(text("pack")).filter(|pack| !pack.is_empty()).unwrap_or_else(|| String::from("default"));
        if name.is_empty() || name.contains(['/', ' ']) {
            return Err(ActionError::Wrong(String::from("`name` is missing or has a slash or a space")));
        }
        if !registry.runners.contains_key(&runner) {
            return Err(ActionError::Wrong(format!("runner type `{runner}` is unknown")));
        }
        let reference = format!("{pack}.{name}");
        if let Some(old) = registry.actions.get(&reference) {
            if old.get("metadata_file").is_some() {
                return Err(ActionError::OfPack(pack));
            }
            if !replaces {
                let id = old.get("id").and_then(Value::as_str).unwrap_or_default();
                return Err(ActionError::Exists(reference, id.to_owned()));
            }
        }
        document.insert("id", Id::derived(0, &[b"action", reference.as_bytes()]).to_string());
        document.insert("ref", reference.as_str());
        document.insert("uid", format!("action:{pack}:{name}"));
        document.insert("pack", pack);
        let defaults = [
            ("enabled", Value::Bool(true)),
            ("entry_point", "".into()),
            ("parameters", Map::new().into()),
            ("description", Value::Null),
            ("tags", Value::List(Vec::new())),
            ("notify", Map::new().into()),
        ];
        for (key, value) in defaults {
            if !document.contains_key(key) {
                document.insert(key, value);
            }
        }
        let mut transaction = Transaction::new();
        transaction.put(&ACTIONS, document.clone());
        self.store.commit(transaction).await.map_err(ActionError::Store)?;
        let action = Arc::new(document);
        self.change(|registry| {
            registry.actions.insert(reference.clone(), Arc::clone(&action));
        });
        Ok(action)
    }

    /// Deletes an action.
    ///
    /// # Errors
    /// The action belongs to a pack's folder, or the store refuses.
    pub(crate) async fn delete_action(self: &Arc<Self>, action: &Map) -> Result<(), ActionError> {
        let _registering = self.registering().await;
        let text = |key: &str| action.get(key).and_then(Value::as_str).unwrap_or_default();
        if action.get("metadata_file").is_some() {
            return Err(ActionError::OfPack(text("pack").to_owned()));
        }
        let mut transaction = Transaction::new();
        transaction.delete(&ACTIONS, text("id"));
        self.store.commit(transaction).await.map_err(ActionError::Store)?;
        self.change(|registry| {
            registry.actions.remove(text("ref"));
        });
        Ok(())
    }

    /// The text of an action's file.
    ///
    /// # Errors
    /// The action has no file, or it cannot be read.
    pub(crate) fn entry_point_text(&self, action: &Map) -> Result<String, String> {
        let text = |key: &str| action.get(key).and_then(Value::as_str).unwrap_or_default();
        let none = || format!("action `{}` has no file", text("ref"));
        let registry = self.registry();
        let folder = registry.packs.get(text("pack")).map(|pack| &pack.pack.folder).ok_or_else(none)?;
        let entry = Path::new(text("entry_point"));
        if entry.as_os_str().is_empty() {
            return Err(none());
        }
        let folder = folder.join("actions").canonicalize().map_err(|error| error.to_string())?;
        let path =
            folder.join(entry).canonicalize().map_err(|error| format!("`{}`: {error}", entry.display()))?;
        if !path.starts_with(&folder) {
            return Err(format!("`{}` is outside of the pack", entry.display()));
        }
        let failed = |error: io::Error| format!("`{}`: {error}", entry.display());
        let file = fs::metadata(&path).map_err(failed)?;
        if !file.is_file() || file.len() > DEFINITION_BYTES_MAX {
            return Err(format!(
                "`{}` is no file, or has more than {DEFINITION_BYTES_MAX} bytes; split it into several workflows",
                entry.display()
            ));
        }
        fs::read_to_string(path).map_err(failed)
    }
}
