//! Actions: what a rule or a workflow runs.

use imori_automation::value::{Map, Value};

use super::document::{Document, PackProblem, Read};
use super::fields::{Fields, unknown_keys};
use super::parameters::check_parameters;
use super::runners::RunnerTypes;

/// Attributes of a runner's parameter that an action may set anew.
const OVERRIDABLE: [&str; 5] = ["default", "description", "enum", "immutable", "required"];

/// An action of a pack.
#[derive(Debug, Clone, PartialEq)]
pub struct ActionDefinition {
    /// The pack.
    pub pack: String,
    /// The name.
    pub name: String,
    /// What it says of itself.
    pub description: Option<String>,
    /// Whether it may run.
    pub enabled: bool,
    /// The name of its runner, never an alias of one.
    pub runner_type: String,
    /// The file that runs, relative to the folder `actions`; empty where the runner needs none.
    pub entry_point: String,
    /// Its parameters by name, in the order of the file, without the runner's.
    pub parameters: Map,
    /// The schema of its result; empty where there is none.
    pub output_schema: Map,
    /// Tags, each with `name` and `value`.
    pub tags: Vec<Map>,
    /// Whom its end is told, by `on-complete`, `on-success` and `on-failure`.
    pub notify: Map,
    /// The file, relative to the pack.
    pub metadata_file: String,
}

impl ActionDefinition {
    /// Reads a file of `actions`, or what the API is sent.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn from_document(document: &Document, pack: &str, runners: &RunnerTypes) -> Read<ActionDefinition> {
        let mut fields = Fields::of(document).map_err(|problem| vec![problem])?;
        fields.only(&[
            "id",
            "ref",
            "uid",
            "name",
            "description",
            "enabled",
            "runner_type",
            "entry_point",
            "pack",
            "parameters",
            "output_schema",
            "tags",
            "notify",
            "metadata_file",
        ]);
        let mut definition = ActionDefinition {
            pack: fields.pack(pack),
            name: fields.required_text("name"),
            description: fields.text("description"),
            enabled: fields.flag("enabled", true),
            runner_type: fields.required_text("runner_type"),
            entry_point: fields.text("entry_point").unwrap_or_default(),
            parameters: fields.map("parameters").unwrap_or_default(),
            output_schema: fields.map("output_schema").unwrap_or_default(),
            tags: fields.maps("tags"),
            notify: notify(&mut fields),
            metadata_file: document.file().to_owned(),
        };
        let found = check_parameters(&definition.parameters);
        for (path, message) in found.wrong.into_iter().chain(found.unknown) {
            let steps: Vec<_> = ["parameters"].into_iter().chain(path.iter().map(String::as_str)).collect();
            fields.complain(&steps, message);
        }
        match runners.find(&definition.runner_type) {
            Some(runner) => {
                definition.runner_type.clone_from(&runner.name);
                for problem in against_runner(document, &definition.parameters, &runner.runner_parameters) {
                    fields.add(vec![problem]);
                }
            }
            None if definition.runner_type.is_empty() => {}
            None => {
                let message = format!(
                    "runner type `{}` is unknown; use one of {}",
                    definition.runner_type,
                    runners.names()
                );
                fields.complain(&["runner_type"], message);
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
        let tags: Vec<_> = self.tags.iter().map(|tag| Value::Map(tag.clone())).collect();
        Value::Map(Map::from_iter([
            ("name", Value::from(self.name.as_str())),
            ("pack", Value::from(self.pack.as_str())),
            ("ref", Value::from(self.reference())),
            ("uid", Value::from(format!("action:{}:{}", self.pack, self.name))),
            ("description", Value::from(self.description.clone())),
            ("enabled", Value::Bool(self.enabled)),
            ("runner_type", Value::from(self.runner_type.as_str())),
            ("entry_point", Value::from(self.entry_point.as_str())),
            ("parameters", Value::Map(self.parameters.clone())),
            ("output_schema", Value::Map(self.output_schema.clone())),
            ("tags", Value::List(tags)),
            ("notify", Value::Map(self.notify.clone())),
            ("metadata_file", Value::from(self.metadata_file.as_str())),
        ]))
    }
}

fn notify(fields: &mut Fields<'_>) -> Map {
    let notify = fields.map("notify").unwrap_or_default();
    for (key, message) in unknown_keys(&notify, &["on-complete", "on-success", "on-failure"]) {
        fields.complain(&["notify", &key], message);
    }
    for (moment, value) in notify.iter() {
        let keys = ["message", "data", "routes", "channels"];
        let unknown = value.as_map().map(|map| unknown_keys(map, &keys));
        let wrong = unknown.unwrap_or_else(|| vec![(String::new(), format!("key `{moment}` is no object"))]);
        for (key, message) in wrong {
            fields.complain(&["notify", moment, &key], message);
        }
    }
    notify
}

/// What is wrong with parameters beside those of their runner: attributes that may not be set anew, positions that
/// collide or leave a gap, and constants without a value.
fn against_runner(document: &Document, parameters: &Map, runner: &Map) -> Vec<PackProblem> {
    let mut problems = Vec::new();
    let mut positions: Vec<(f64, &str)> = Vec::new();
    for (name, schema) in parameters.iter() {
        let Some(schema) = schema.as_map() else { continue };
        let theirs = runner.get(name).and_then(Value::as_map);
        let mut complain = |key: &str, message: String| {
            problems
                .push(document.problem(&["parameters", name, key], format!("parameter `{name}`: {message}")));
        };
        for (key, value) in schema.iter() {
            if theirs.is_some_and(|theirs| !OVERRIDABLE.contains(&key) && theirs.get(key) != Some(value)) {
                complain(key, format!("key `{key}` is the runner's and cannot be set anew; leave it out"));
            }
        }
        if schema.contains_key("immutable") {
            let has_default =
                [Some(schema), theirs].into_iter().flatten().any(|schema| schema.contains_key("default"));
            if theirs.is_some_and(|theirs| theirs.contains_key("immutable")) {
                complain(
                    "immutable",
                    "key `immutable` is the runner's and cannot be set anew; leave it out".to_owned(),
                );
            } else if !has_default {
                complain("immutable", "an immutable parameter needs a value; give it a `default`".to_owned());
            }
        }
        let position = schema.get("position").and_then(Value::as_number);
        if let Some(position) = position {
            match positions.iter().find(|(taken, _)| *taken == position) {
                Some((_, other)) => complain(
                    "position",
                    format!("position {position} is that of `{other}` too; choose another"),
                ),
                None => positions.push((position, name)),
            }
        }
    }
    positions.sort_by(|one, other| one.0.total_cmp(&other.0));
    if let Some(pair) = positions.windows(2).find(|pair| matches!(pair, [one, next] if next.0 - one.0 != 1.0))
    {
        let name = pair.last().map_or("", |(_, name)| name);
        let message = format!("parameter `{name}`: its position leaves a gap; number them one after another");
        problems.push(document.problem(&["parameters", name, "position"], message));
    }
    problems
}
