//! Runner types: the ways in which an action runs, with the parameters that each adds.

use std::sync::Arc;

use imori_automation::value::{Map, Value};

use super::document::parse_document;
use super::fields::quoted;

/// What is built in, in the shape of StackStorm's `runner.yaml`.
const BUILT_IN: &str = include_str!("../../packs/runners.yaml");

/// A runner type.
#[derive(Debug, Clone, PartialEq)]
pub struct RunnerType {
    /// The name.
    pub name: String,
    /// Other names that an action may use.
    pub aliases: Vec<String>,
    /// What it does.
    pub description: String,
    /// Whether actions of it may run. One that is only listed is not enabled.
    pub enabled: bool,
    /// The parameters that each of its actions has.
    pub runner_parameters: Map,
    /// The key of a result that an action's output schema describes.
    pub output_key: Option<String>,
    /// The schema of a result; empty where there is none.
    pub output_schema: Map,
}

impl RunnerType {
    /// The document as the API shows it, without the `id` that the engine gives.
    pub fn to_document(&self) -> Value {
        let module = self.name.replace('-', "_");
        Value::Map(Map::from_iter([
            ("name", Value::from(self.name.as_str())),
            ("uid", Value::from(format!("runner_type:{}", self.name))),
            ("description", Value::from(self.description.as_str())),
            ("enabled", Value::Bool(self.enabled)),
            ("runner_package", Value::from(module.as_str())),
            ("runner_module", Value::from(module.as_str())),
            ("runner_parameters", Value::Map(self.runner_parameters.clone())),
            ("output_key", Value::from(self.output_key.clone())),
            ("output_schema", Value::Map(self.output_schema.clone())),
        ]))
    }
}

/// All runner types.
#[derive(Debug, Clone)]
pub struct RunnerTypes(Arc<[RunnerType]>);

impl RunnerTypes {
    /// Those that are built in.
    pub fn built_in() -> RunnerTypes {
        let document =
            parse_document("runners.yaml", BUILT_IN).expect("a test reads the built-in runner types");
        let list = document.value().as_list().unwrap_or_default();
        RunnerTypes(list.iter().filter_map(Value::as_map).map(runner_type).collect())
    }

    /// The runner type of this name or alias.
    pub fn find(&self, name: &str) -> Option<&RunnerType> {
        let by_name = self.0.iter().find(|runner| runner.name == name);
        by_name.or_else(|| self.0.iter().find(|runner| runner.aliases.iter().any(|alias| alias == name)))
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &RunnerType> {
        self.0.iter()
    }

    /// All names in backticks.
    pub(crate) fn names(&self) -> String {
        quoted(&self.0.iter().map(|runner| runner.name.as_str()).collect::<Vec<_>>())
    }
}

fn runner_type(map: &Map) -> RunnerType {
    let text = |key: &str| map.get(key).and_then(Value::as_str).map(str::to_owned);
    let object = |key: &str| map.get(key).and_then(Value::as_map).cloned().unwrap_or_default();
    let aliases = map.get("aliases").and_then(Value::as_list).unwrap_or_default();
    RunnerType {
        name: text("name").unwrap_or_default(),
        aliases: aliases.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        description: text("description").unwrap_or_default(),
        enabled: map.get("enabled").and_then(Value::as_bool).unwrap_or(true),
        runner_parameters: object("runner_parameters"),
        output_key: text("output_key"),
        output_schema: object("output_schema"),
    }
}
