//! Registering trigger types that belong to no pack's folder.

use std::sync::Arc;

use imori_automation::ids::Id;
use imori_automation::value::{Map, Value};

use super::change_error::RuleChangeError;
use crate::engine::Engine;
use crate::store::{StoreError, TRIGGER_TYPES, Transaction};

impl Engine {
    /// Registers a trigger type.
    ///
    /// # Errors
    /// The type is wrong or exists, or the store refuses.
    pub(crate) async fn create_trigger_type(
        self: &Arc<Self>,
        mut document: Map,
    ) -> Result<Arc<Map>, RuleChangeError> {
        let _registering = self.registering().await;
        let text = |key: &str| document.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (pack, name) = (text("pack"), text("name"));
        if pack.is_empty() || name.is_empty() {
            return Err(RuleChangeError::Wrong(String::from(
                "`pack` and `name` of the trigger type are missing",
            )));
        }
        let reference = format!("{pack}.{name}");
        if let Some(old) = self.registry().trigger_types.get(&reference) {
            let id = old.get("id").and_then(Value::as_str).unwrap_or_default();
            return Err(RuleChangeError::Exists(reference, id.to_owned()));
        }
        document.insert("id", Id::derived(0, &[b"trigger_type", reference.as_bytes()]).to_string());
        document.insert("ref", reference.as_str());
        document.insert("uid", format!("trigger_type:{pack}:{name}"));
        for key in ["payload_schema", "parameters_schema"] {
            if !document.contains_key(key) {
                document.insert(key, Map::new());
            }
        }
        let mut transaction = Transaction::new();
        transaction.put(&TRIGGER_TYPES, document.clone());
        self.store.commit(transaction).await.map_err(RuleChangeError::Store)?;
        let kind = Arc::new(document);
        self.change(|registry| {
            registry.trigger_types.insert(reference.clone(), Arc::clone(&kind));
        });
        Ok(kind)
    }

    /// Deletes a trigger type that was created so.
    ///
    /// # Errors
    /// The store refuses.
    pub(crate) async fn delete_trigger_type(self: &Arc<Self>, kind: &Map) -> Result<(), StoreError> {
        let _registering = self.registering().await;
        let text = |key: &str| kind.get(key).and_then(Value::as_str).unwrap_or_default();
        let mut transaction = Transaction::new();
        transaction.delete(&TRIGGER_TYPES, text("id"));
        self.store.commit(transaction).await?;
        self.change(|registry| {
            registry.trigger_types.remove(text("ref"));
        });
        Ok(())
    }
}
