//! An alias as it is registered: its document, and its formats compiled.

use imori_automation::aliases::Alias;
use imori_automation::ids::Id;
use imori_automation::value::{Map, Value};

use crate::packs::alias::AliasDefinition;

/// An alias, compiled.
#[derive(Debug)]
pub struct RegisteredAlias {
    /// The document that the API shows.
    pub(crate) document: Map,
    /// The compiled formats.
    pub(crate) alias: Alias,
}

impl RegisteredAlias {
    /// Compiles an alias.
    ///
    /// # Errors
    /// There are too many formats, as a sentence.
    pub(crate) fn new(definition: &AliasDefinition) -> Result<RegisteredAlias, String> {
        let Value::Map(mut document) = definition.to_document() else {
            return Err(String::from("the alias is no object"));
        };
        let reference = definition.reference();
        document.insert("id", Id::derived(0, &[b"action_alias", reference.as_bytes()]).to_string());
        RegisteredAlias::stored(document)
    }

    /// Compiles a stored document.
    ///
    /// # Errors
    /// As for [`RegisteredAlias::new`].
    pub fn stored(document: Map) -> Result<RegisteredAlias, String> {
        let formats = document.get("formats").and_then(Value::as_list).unwrap_or_default();
        let alias = Alias::new(formats).map_err(|error| error.to_string())?;
        Ok(RegisteredAlias { document, alias })
    }

    /// The text of a key; empty if it is missing.
    pub(crate) fn text(&self, key: &str) -> &str {
        self.document.get(key).and_then(Value::as_str).unwrap_or_default()
    }

    /// The object of a key, if it has one.
    pub(crate) fn map(&self, key: &str) -> Option<&Map> {
        self.document.get(key).and_then(Value::as_map)
    }

    /// Whether commands match it.
    pub(crate) fn is_enabled(&self) -> bool {
        self.document.get("enabled") != Some(&Value::Bool(false))
    }

    /// Whether it belongs to the folder of a pack.
    pub(crate) fn is_of_pack(&self) -> bool {
        !self.text("metadata_file").is_empty()
    }
}
