//! Policies: what delays, cancels or repeats executions of an action.

use imori_automation::value::{Map, Value};

use super::document::{Document, Read, parse_document};
use super::fields::{Fields, quoted};
use super::parameters::{check_values, with_defaults};

/// The types that are built in.
const BUILT_IN: &str = include_str!("../../packs/policies.yaml");

/// A policy of a pack.
#[derive(Debug, Clone, PartialEq)]
pub struct PolicyDefinition {
    /// The pack.
    pub pack: String,
    /// The name.
    pub name: String,
    /// What it says of itself.
    pub description: Option<String>,
    /// Whether it is applied.
    pub enabled: bool,
    /// The action, as `pack.name`.
    pub resource_ref: String,
    /// The type, as `action.retry`.
    pub policy_type: String,
    /// Parameters of the type with their defaults.
    pub parameters: Map,
    /// The file, relative to the pack.
    pub metadata_file: String,
}

impl PolicyDefinition {
    /// Reads a file of `policies`.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn from_document(document: &Document, pack: &str) -> Read<PolicyDefinition> {
        let mut fields = Fields::of(document).map_err(|problem| vec![problem])?;
        fields.only(&[
            "id",
            "uid",
            "name",
            "pack",
            "ref",
            "description",
            "enabled",
            "resource_ref",
            "policy_type",
            "parameters",
            "metadata_file",
        ]);
        let mut definition = PolicyDefinition {
            pack: fields.pack(pack),
            name: fields.required_text("name"),
            description: fields.text("description"),
            enabled: fields.flag("enabled", true),
            resource_ref: fields.required_text("resource_ref"),
            policy_type: fields.required_text("policy_type"),
            parameters: fields.map("parameters").unwrap_or_default(),
            metadata_file: document.file().to_owned(),
        };
        let types = policy_types();
        match types.iter().find(|policy_type| policy_type.reference() == definition.policy_type) {
            Some(policy_type) => {
                definition.parameters = with_defaults(&policy_type.parameters, definition.parameters);
                for (path, message) in check_values(&policy_type.parameters, &definition.parameters, false) {
                    let steps: Vec<_> =
                        ["parameters"].into_iter().chain(path.iter().map(String::as_str)).collect();
                    fields.complain(&steps, format!("key `{}`: {message}", steps.join(".")));
                }
            }
            None if definition.policy_type.is_empty() => {}
            None => {
                let known: Vec<_> = types.iter().map(PolicyType::reference).collect();
                let known = quoted(&known.iter().map(String::as_str).collect::<Vec<_>>());
                let message =
                    format!("policy type `{}` is unknown; use one of {known}", definition.policy_type);
                fields.complain(&["policy_type"], message);
            }
        }
        fields.read(definition)
    }

    /// `pack.name`.
    pub fn reference(&self) -> String {
        format!("{}.{}", self.pack, self.name)
    }

    /// The document as the API shows it, without the `id` that the engine gives.
    pub fn to_document(&self) -> Value {
        Value::Map(Map::from_iter([
            ("name", Value::from(self.name.as_str())),
            ("pack", Value::from(self.pack.as_str())),
            ("ref", Value::from(self.reference())),
            ("uid", Value::from(format!("policy:{}:{}", self.pack, self.name))),
            ("description", Value::from(self.description.clone())),
            ("enabled", Value::Bool(self.enabled)),
            ("resource_ref", Value::from(self.resource_ref.as_str())),
            ("policy_type", Value::from(self.policy_type.as_str())),
            ("parameters", Value::Map(self.parameters.clone())),
            ("metadata_file", Value::from(self.metadata_file.as_str())),
        ]))
    }
}

/// A type of policies.
#[derive(Debug, Clone, PartialEq)]
pub struct PolicyType {
    /// What it applies to: always `action`.
    pub resource_type: String,
    /// The name.
    pub name: String,
    /// What it does.
    pub description: String,
    /// The schema of each parameter.
    pub parameters: Map,
}

impl PolicyType {
    /// `action.name`.
    pub fn reference(&self) -> String {
        format!("{}.{}", self.resource_type, self.name)
    }

    /// The document as the API shows it, without the `id` that the engine gives.
    pub fn to_document(&self) -> Value {
        Value::Map(Map::from_iter([
            ("name", Value::from(self.name.as_str())),
            ("ref", Value::from(self.reference())),
            ("uid", Value::from(format!("policy_type:{}:{}", self.resource_type, self.name))),
            ("resource_type", Value::from(self.resource_type.as_str())),
            ("description", Value::from(self.description.as_str())),
            ("enabled", Value::Bool(true)),
            ("module", Value::from(format!("imori.policies.{}", self.name.replace('.', "_")))),
            ("parameters", Value::Map(self.parameters.clone())),
        ]))
    }
}

/// The types that are built in.
pub fn policy_types() -> Vec<PolicyType> {
    let document = parse_document("policies.yaml", BUILT_IN).expect("a test reads the built-in policy types");
    let text = |map: &Map, key: &str| map.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let policy_type = |map: &Map| PolicyType {
        resource_type: "action".to_owned(),
        name: text(map, "name"),
        description: text(map, "description"),
        parameters: map.get("parameters").and_then(Value::as_map).cloned().unwrap_or_default(),
    };
    document.value().as_list().unwrap_or_default().iter().filter_map(Value::as_map).map(policy_type).collect()
}
