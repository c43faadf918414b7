//! Registering aliases that belong to no pack's folder.

use std::sync::Arc;

use imori_automation::value::{Map, Value};

use crate::engine::Engine;
use crate::packs::alias::AliasDefinition;
use crate::packs::document::Document;
use crate::registry::RegisteredAlias;
use crate::store::{ALIASES, StoreError, Transaction};

/// Why an alias cannot be registered or deleted.
#[derive(Debug)]
pub(crate) enum AliasChangeError {
    /// The alias is wrong.
    Wrong(String),
    /// An alias of this reference exists, with this id.
    Exists(String, String),
    /// The alias belongs to the folder of this pack.
    OfPack(String),
    /// The store refused.
    Store(StoreError),
}

impl Engine {
    /// Registers an alias, or puts it in the place of another one.
    ///
    /// # Errors
    /// The alias is wrong, exists or belongs to a pack's folder, or the store refuses.
    pub(crate) async fn create_alias(
        &self,
        document: Map,
        old: Option<&RegisteredAlias>,
    ) -> Result<Arc<RegisteredAlias>, AliasChangeError> {
        let _registering = self.registering().await;
        let new = read(document).map_err(AliasChangeError::Wrong)?;
        let registry = self.registry();
        let other = registry.aliases.get(new.text("ref")).map(Arc::as_ref);
        if let Some(found) = old.or(other).filter(|found| found.is_of_pack()) {
            return Err(AliasChangeError::OfPack(found.text("pack").to_owned()));
        }
        let is_renamed = old.is_none_or(|old| old.text("ref") != new.text("ref"));
        if let Some(other) = other.filter(|_| is_renamed) {
            let (reference, id) = (other.text("ref").to_owned(), other.text("id").to_owned());
            return Err(AliasChangeError::Exists(reference, id));
        }
        let mut transaction = Transaction::new();
        if let Some(old) = old.filter(|_| is_renamed) {
            transaction.delete(&ALIASES, old.text("id"));
        }
        transaction.put(&ALIASES, new.document.clone());
        self.store.commit(transaction).await.map_err(AliasChangeError::Store)?;
        let alias = Arc::new(new);
        self.change(|registry| {
            if let Some(old) = old {
                registry.aliases.remove(old.text("ref"));
            }
            registry.aliases.insert(alias.text("ref").to_owned(), Arc::clone(&alias));
        });
        Ok(alias)
    }

    /// Deletes an alias.
    ///
    /// # Errors
    /// The alias belongs to a pack's folder, or the store refuses.
    pub(crate) async fn delete_alias(&self, alias: &RegisteredAlias) -> Result<(), AliasChangeError> {
        let _registering = self.registering().await;
        if alias.is_of_pack() {
            return Err(AliasChangeError::OfPack(alias.text("pack").to_owned()));
        }
        let mut transaction = Transaction::new();
        transaction.delete(&ALIASES, alias.text("id"));
        self.store.commit(transaction).await.map_err(AliasChangeError::Store)?;
        self.change(|registry| {
            registry.aliases.remove(alias.text("ref"));
        });
        Ok(())
    }
}

/// Reads an alias as the API gets it.
fn read(mut document: Map) -> Result<RegisteredAlias, String> {
    document.remove("metadata_file");
    let pack = document.get("pack").and_then(Value::as_str).filter(|pack| !pack.is_empty());
    let pack = pack.ok_or("key `pack` is missing; give it a text")?.to_owned();
    let read = AliasDefinition::from_document(&Document::of(Value::Map(document)), &pack);
    let definition = match read {
        Ok((definition, _)) => definition,
        Err(problems) => return Err(problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")),
    };
    if definition.name.contains(['/', ' ']) {
        return Err(format!("name `{}` has a slash or a space; use dots or underscores", definition.name));
    }
    let alias = RegisteredAlias::new(&definition)?;
    let problem = alias.alias.problems().next().map(ToString::to_string);
    problem.map_or(Ok(alias), Err)
}
