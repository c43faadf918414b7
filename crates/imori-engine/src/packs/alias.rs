//! Aliases: chat commands for actions.

use imori_automation::value::{Map, Value};

use super::document::{Document, Read};
use super::fields::{Fields, unknown_keys};

/// An alias of an action.
#[derive(Debug, Clone, PartialEq)]
pub struct AliasDefinition {
    /// The pack.
    pub pack: String,
    /// The name.
    pub name: String,
    /// What it says of itself.
    pub description: Option<String>,
    /// Whether commands match it.
    pub enabled: bool,
    /// The action, as `pack.name`.
    pub action_ref: String,
    /// The commands: a text, or an object with `display` and `representation`.
    pub formats: Vec<Value>,
    /// How the command is acknowledged.
    pub ack: Option<Map>,
    /// How the result is shown.
    pub result: Option<Map>,
    /// What adapters read.
    pub extra: Option<Map>,
    /// Parameters of every execution.
    pub immutable_parameters: Option<Map>,
    /// The file, relative to the pack.
    pub metadata_file: String,
}

impl AliasDefinition {
    /// Reads a file of `aliases`.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn from_document(document: &Document, pack: &str) -> Read<AliasDefinition> {
        let mut fields = Fields::of(document).map_err(|problem| vec![problem])?;
        fields.only(&[
            "id",
            "ref",
            "uid",
            "name",
            "pack",
            "description",
            "enabled",
            "action_ref",
            "formats",
            "ack",
            "result",
            "extra",
            "immutable_parameters",
            "metadata_file",
        ]);
        let definition = AliasDefinition {
            pack: fields.pack(pack),
            name: fields.required_text("name"),
            description: fields.text("description"),
            enabled: fields.flag("enabled", true),
            action_ref: fields.required_text("action_ref"),
            formats: formats(&mut fields),
            ack: answer(&mut fields, "ack", &["enabled", "format", "extra", "append_url"]),
            result: answer(&mut fields, "result", &["enabled", "format", "extra"]),
            extra: fields.map("extra"),
            immutable_parameters: fields.map("immutable_parameters"),
            metadata_file: document.file().to_owned(),
        };
        fields.read(definition)
    }

    /// `pack.name`.
    pub fn reference(&self) -> String {
        format!("{}.{}", self.pack, self.name)
    }

    /// The document as the API shows it, without the `id` that the engine gives.
    pub fn to_document(&self) -> Value {
        let map = |map: &Option<Map>| map.clone().map_or(Value::Null, Value::Map);
        Value::Map(Map::from_iter([
            ("name", Value::from(self.name.as_str())),
            ("pack", Value::from(self.pack.as_str())),
            ("ref", Value::from(self.reference())),
            ("uid", Value::from(format!("action_alias:{}:{}", self.pack, self.name))),
            ("description", Value::from(self.description.clone())),
            ("enabled", Value::Bool(self.enabled)),
            ("action_ref", Value::from(self.action_ref.as_str())),
            ("formats", Value::List(self.formats.clone())),
            ("ack", map(&self.ack)),
            ("result", map(&self.result)),
            ("extra", map(&self.extra)),
            ("immutable_parameters", map(&self.immutable_parameters)),
            ("metadata_file", Value::from(self.metadata_file.as_str())),
        ]))
    }
}

fn formats(fields: &mut Fields<'_>) -> Vec<Value> {
    if fields.value("formats").is_none() {
        fields.complain(&[], "key `formats` is missing; list the commands");
    }
    let formats = fields.list("formats");
    for (index, format) in formats.iter().enumerate() {
        let is_texts = |value: &Value| {
            value.as_list().is_some_and(|list| list.iter().all(|item| item.as_str().is_some()))
        };
        let is_right = match format {
            Value::String(_) => true,
            Value::Map(map) => {
                map.get("display").is_none_or(|display| display.as_str().is_some())
                    && map.get("representation").is_none_or(is_texts)
            }
            _ => false,
        };
        if !is_right {
            let message = "a format is a text, or an object with `display` and a list `representation`";
            fields.complain(&["formats", &index.to_string()], message);
        }
    }
    formats
}

/// How a chat is answered: an object with these keys.
fn answer(fields: &mut Fields<'_>, key: &str, known: &[&str]) -> Option<Map> {
    let map = fields.map(key)?;
    for (unknown, message) in unknown_keys(&map, known) {
        // StackStorm lets them pass.
        fields.warn(&[key, &unknown], message);
    }
    Some(map)
}
