//! Trigger types: what a rule may wait for.

use imori_automation::value::{Map, Value};

use super::document::{Document, Read};
use super::fields::Fields;

const KEYS: [&str; 10] = [
    "id",
    "ref",
    "uid",
    "name",
    "pack",
    "description",
    "payload_schema",
    "parameters_schema",
    "tags",
    "metadata_file",
];

/// A trigger type, from a file of `triggers` or from a sensor.
#[derive(Debug, Clone, PartialEq)]
pub struct TriggerTypeDefinition {
    /// The pack.
    pub pack: String,
    /// The name; it may have dots.
    pub name: String,
    /// What it says of itself.
    pub description: Option<String>,
    /// The schema of a payload.
    pub payload_schema: Map,
    /// The schema of a rule's parameters.
    pub parameters_schema: Map,
    /// Tags, each with `name` and `value`.
    pub tags: Vec<Map>,
    /// The file, relative to the pack.
    pub metadata_file: String,
}

impl TriggerTypeDefinition {
    /// Reads a file of `triggers`.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn from_document(document: &Document, pack: &str) -> Read<TriggerTypeDefinition> {
        let mut fields = Fields::of(document).map_err(|problem| vec![problem])?;
        let pack = fields.pack(pack);
        TriggerTypeDefinition::from_fields(fields, pack)
    }

    /// Reads an entry of a sensor, whose pack it is in whatever it says.
    pub(crate) fn from_fields(mut fields: Fields<'_>, pack: String) -> Read<TriggerTypeDefinition> {
        // StackStorm refuses others; packs of the exchange have them.
        fields.mostly(&KEYS);
        let definition = TriggerTypeDefinition {
            pack,
            name: fields.required_text("name"),
            description: fields.text("description"),
            payload_schema: fields.map("payload_schema").unwrap_or_default(),
            parameters_schema: fields.map("parameters_schema").unwrap_or_default(),
            tags: fields.maps("tags"),
            metadata_file: fields.document().file().to_owned(),
        };
        fields.read(definition)
    }

    /// `pack.name`.
    pub fn reference(&self) -> String {
        format!("{}.{}", self.pack, self.name)
    }

    /// The document as the API shows it, without the `id` that the engine gives.
    pub fn to_document(&self) -> Value {
        let tags: Vec<_> = self.tags.iter().map(|tag| Value::Map(tag.clone())).collect();
        Value::Map(Map::from_iter([
            ("name", Value::from(self.name.as_str())),
            ("pack", Value::from(self.pack.as_str())),
            ("ref", Value::from(self.reference())),
            ("uid", Value::from(format!("trigger_type:{}:{}", self.pack, self.name))),
            ("description", Value::from(self.description.clone())),
            ("payload_schema", Value::Map(self.payload_schema.clone())),
            ("parameters_schema", Value::Map(self.parameters_schema.clone())),
            ("tags", Value::List(tags)),
            ("metadata_file", Value::from(self.metadata_file.as_str())),
        ]))
    }
}
