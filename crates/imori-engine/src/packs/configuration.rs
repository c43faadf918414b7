//! Configuration of a pack: values of several files on the defaults of the pack's schema. A value that is a template
//! stays one until the engine resolves it, as what it names may change.

use std::path::Path;

use imori_automation::parameters::{Defaults, Schema};
use imori_automation::value::{Map, Value};

use super::document::{Document, PackProblem, parse_document, read_document};
use super::fields::quoted;
use super::pack::Pack;
use super::parameters::check_values;
use crate::limits::SCHEMA_DEPTH_MAX;

/// What the names of environment variables begin with that set a key: `IMORI_CONFIG_PACK__KEY`, in capital letters,
/// with `__` before each key below.
pub const VARIABLE_PREFIX: &str = "IMORI_CONFIG_";

/// What stands in a value that is a template.
const TEMPLATE_MARKS: [&str; 2] = ["{{", "{%"];

/// The configuration of a pack.
#[derive(Debug, Clone, PartialEq)]
pub struct Configuration {
    /// The values; a text with `{{` or `{%` is a template.
    pub values: Map,
    /// What is wrong with the files, which then count as far as they can be read.
    pub problems: Vec<PackProblem>,
    schema: Map,
}

/// A template of a configuration, to resolve.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Template<'a> {
    /// The text.
    pub text: &'a str,
    /// The key with those around it, separated by dots.
    pub key: &'a str,
    /// Whether the schema says `secret`: what it names in the store is encrypted and to decrypt.
    pub is_secret: bool,
}

impl Configuration {
    /// Reads the configuration of a pack. From the weakest to the strongest: `config.yaml` in the pack, defaults of
    /// the schema, `PACK.yaml` in `folder`, and variables of the environment.
    pub fn read(pack: &Pack, folder: &Path, variables: &[(String, String)]) -> Configuration {
        let name = &pack.manifest.reference;
        let schema = pack.config_schema.clone().unwrap_or_default();
        let mut problems = Vec::new();
        let own = document(&pack.folder, "config.yaml", &mut problems);
        if let Some(own) = &own {
            let message = format!(
                "is read with less weight than any other; move its values to `{name}.yaml` of the configurations"
            );
            problems.push(own.problem(&[], message).as_warning());
        }
        let set = document(folder, &format!("{name}.yaml"), &mut problems);
        let mut values = set.as_ref().map(object).unwrap_or_default();
        set_variables(name, &schema, variables, &mut values);
        if let Some(set) = &set {
            problems.extend(unknown_keys(set, &schema));
            problems.extend(decrypting(set, &schema));
        }
        problems.extend(static_problems(&schema, &values, set.as_ref(), name));
        assign_defaults(&schema, &mut values, 0);
        // As before StackStorm 2.4, where such files still counted.
        for (key, value) in own.as_ref().map(object).unwrap_or_default() {
            if !values.contains_key(&key) {
                values.insert(key, value);
            }
        }
        Configuration { values, problems, schema }
    }

    /// The values with each template replaced by what `resolve` makes of it, of the type that the schema says. An
    /// empty text becomes `null`.
    ///
    /// # Errors
    /// A template cannot be resolved, or its value is of another type.
    pub fn resolved(
        &self,
        resolve: &mut dyn FnMut(Template<'_>) -> Result<Value, String>,
    ) -> Result<Map, Vec<PackProblem>> {
        let mut resolution = Resolution { resolve, problems: Vec::new(), path: Vec::new() };
        let mut values = self.values.clone();
        resolution.object(&mut values, &self.schema);
        match resolution.problems.is_empty() {
            true => Ok(values),
            false => Err(resolution.problems),
        }
    }

    /// The values with those that the schema calls secret replaced by asterisks, to show.
    pub fn masked(&self) -> Map {
        let mut values = self.values.clone();
        mask(&mut values, &self.schema);
        values
    }
}

fn document(folder: &Path, file: &str, problems: &mut Vec<PackProblem>) -> Option<Document> {
    if !folder.join(file).is_file() {
        return None;
    }
    let read = read_document(folder, file).and_then(|document| match document.value() {
        Value::Map(_) | Value::Null => Ok(document),
        _ => Err(document.problem(&[], "is no object; give it keys with values")),
    });
    read.map_err(|problem| problems.push(problem)).ok()
}

fn object(document: &Document) -> Map {
    document.value().as_map().cloned().unwrap_or_default()
}

fn is_template(value: &Value) -> bool {
    value.as_str().is_some_and(|text| TEMPLATE_MARKS.iter().any(|mark| text.contains(mark)))
}

/// Values of variables, in the types of the schema; what has no schema is a text.
fn set_variables(pack: &str, schema: &Map, variables: &[(String, String)], values: &mut Map) {
    let prefix = format!("{VARIABLE_PREFIX}{}__", pack.to_uppercase());
    for (variable, text) in variables {
        let Some(rest) = variable.strip_prefix(&prefix) else { continue };
        let (mut target, mut properties) = (&mut *values, Some(schema));
        let mut steps = rest.split("__").peekable();
        while let Some(step) = steps.next() {
            let known =
                properties.into_iter().flat_map(Map::iter).find(|(key, _)| key.to_uppercase() == step);
            let key = known.map_or_else(|| step.to_lowercase(), |(key, _)| key.to_owned());
            let key_schema = known.and_then(|(_, schema)| schema.as_map());
            if steps.peek().is_none() {
                let value = cast(Value::from(text.as_str()), key_schema);
                target.insert(key, value.unwrap_or_else(|_| Value::from(text.as_str())));
                break;
            }
            if !matches!(target.get(&key), Some(Value::Map(_))) {
                target.insert(key.as_str(), Map::new());
            }
            let Some(Value::Map(inner)) = target.get_mut(&key) else { break };
            target = inner;
            properties = key_schema.and_then(|schema| schema.get("properties")).and_then(Value::as_map);
        }
    }
}

/// Keys that the schema does not know. StackStorm lets them pass.
fn unknown_keys(document: &Document, schema: &Map) -> Vec<PackProblem> {
    if schema.is_empty() {
        return Vec::new();
    }
    let known: Vec<_> = schema.iter().map(|(key, _)| key).collect();
    let unknown = super::fields::unknown_keys(document.value().as_map().unwrap_or(&Map::new()), &known);
    unknown.into_iter().map(|(key, message)| document.problem(&[&key], message).as_warning()).collect()
}

/// A secret is decrypted anyway, so that a filter would do it twice.
fn decrypting(document: &Document, schema: &Map) -> Vec<PackProblem> {
    let is_secret =
        |key: &str| schema.get(key).and_then(|schema| schema.get("secret")) == Some(&Value::Bool(true));
    let values = document.value().as_map().into_iter().flat_map(Map::iter);
    let twice = values.filter(|(key, value)| {
        is_secret(key) && value.as_str().is_some_and(|text| text.contains("decrypt_kv"))
    });
    let message = |key| format!("key `{key}` is secret and decrypted anyway; leave out `decrypt_kv`");
    twice.map(|(key, _)| document.problem(&[key], message(key))).collect()
}

/// What the schema says against values that are no templates. A secret is not shown.
fn static_problems(schema: &Map, values: &Map, set: Option<&Document>, pack: &str) -> Vec<PackProblem> {
    let (mut checked, mut given) = (schema.clone(), values.clone());
    for (key, _) in values.iter().filter(|(_, value)| is_template(value)) {
        checked.remove(key);
        given.remove(key);
    }
    let mut masked = values.clone();
    mask(&mut masked, schema);
    let mut problems = Vec::new();
    for (path, message) in check_values(&checked, &given, true) {
        if node_at(values, &path).is_some_and(is_template) {
            continue;
        }
        let is_secret = node_at(&masked, &path) != node_at(values, &path);
        let message =
            if is_secret { "the value is wrong; it is secret and not shown".to_owned() } else { message };
        let steps: Vec<_> = path.iter().map(String::as_str).collect();
        let message =
            if steps.is_empty() { message } else { format!("key `{}`: {message}", steps.join(".")) };
        problems.push(match set {
            Some(document) => document.problem(&steps, message),
            None => PackProblem::of(format!("{pack}.yaml"), message),
        });
    }
    problems
}

/// The value at a path, if there is one.
fn node_at<'a>(values: &'a Map, path: &[String]) -> Option<&'a Value> {
    let (key, steps) = path.split_first()?;
    steps.iter().try_fold(values.get(key)?, |node, step| match node {
        Value::List(list) => list.get(step.parse::<usize>().ok()?),
        other => other.get(step),
    })
}

/// Sets defaults of the schema, also inside of objects and lists; objects and lists that have a schema inside are
/// there in any case, as in StackStorm.
fn assign_defaults(schema: &Map, values: &mut Map, depth: usize) {
    for (key, item) in schema.iter() {
        let Some(item) = item.as_map() else { continue };
        if let Some(default) = item.get("default").filter(|_| !values.contains_key(key)) {
            values.insert(key, default.clone());
        }
        let mut value = values.get_mut(key).map(std::mem::take).unwrap_or_default();
        assign_inside(item, &mut value, depth);
        if values.contains_key(key) || !value.is_null() {
            values.insert(key, value);
        }
    }
}

/// Sets defaults inside of a value that has this schema.
fn assign_inside(schema: &Map, value: &mut Value, depth: usize) {
    if depth > SCHEMA_DEPTH_MAX {
        return;
    }
    let (empty, inner): (Value, &[&str]) = match schema.get("type").and_then(Value::as_str) {
        Some("object") => (Map::new().into(), &["properties", "patternProperties", "additionalProperties"]),
        Some("array") => (Vec::new().into(), &["items", "additionalItems"]),
        _ => return,
    };
    if !has_inner(schema, inner) {
        return;
    }
    if !value.is_truthy() {
        *value = empty;
    }
    match value {
        Value::Map(map) => {
            let properties = properties_of(schema, map);
            assign_defaults(&properties, map, depth + 1);
        }
        Value::List(list) => {
            for (index, item) in list.iter_mut().enumerate() {
                if let Some(item_schema) = item_schema(schema, index) {
                    assign_inside(item_schema, item, depth + 1);
                }
            }
        }
        _ => {}
    }
}

fn has_inner(schema: &Map, keys: &[&str]) -> bool {
    keys.iter().any(|key| schema.get(key).is_some_and(Value::is_truthy))
}

/// The schema of each key that an object has or should have: of `properties`, else of the patterns that match, else
/// of `additionalProperties`.
fn properties_of(schema: &Map, values: &Map) -> Map {
    let mut properties = schema.get("properties").and_then(Value::as_map).cloned().unwrap_or_default();
    let others = schema.get("additionalProperties").and_then(Value::as_map);
    for (key, _) in values.iter() {
        if !properties.contains_key(key) {
            let schema = pattern_schema(schema, key).or_else(|| others.cloned()).unwrap_or_default();
            properties.insert(key, schema);
        }
    }
    properties
}

fn pattern_schema(schema: &Map, key: &str) -> Option<Map> {
    let patterns = schema.get("patternProperties").and_then(Value::as_map)?;
    let matching = patterns.iter().filter(|(pattern, _)| is_match(pattern, key));
    let merged: Map = matching.filter_map(|(_, schema)| schema.as_map().cloned()).flatten().collect();
    (!merged.is_empty()).then_some(merged)
}

/// Whether a pattern of JSON Schema matches a key: a schema of one pattern is asked.
fn is_match(pattern: &str, key: &str) -> bool {
    let schema: Map = [("pattern", pattern)].into_iter().collect();
    let schema = Schema::compile(&Value::Map(schema));
    schema.is_ok_and(|schema| schema.validate(&Value::from(key), Defaults::Ignored).is_ok())
}

fn item_schema(schema: &Map, index: usize) -> Option<&Map> {
    match schema.get("items") {
        Some(Value::Map(all)) => Some(all),
        Some(Value::List(each)) if index < each.len() => each.get(index).and_then(Value::as_map),
        _ => schema.get("additionalItems").and_then(Value::as_map),
    }
}

struct Resolution<'a> {
    resolve: &'a mut dyn FnMut(Template<'_>) -> Result<Value, String>,
    problems: Vec<PackProblem>,
    path: Vec<String>,
}

impl Resolution<'_> {
    fn object(&mut self, values: &mut Map, schema: &Map) {
        for (key, value) in values.iter_mut() {
            self.path.push(key.to_owned());
            self.value(value, schema.get(key).and_then(Value::as_map));
            self.path.pop();
        }
    }

    fn value(&mut self, value: &mut Value, schema: Option<&Map>) {
        let no_schema = Map::new();
        let within = schema.unwrap_or(&no_schema);
        match value {
            Value::Map(map) => {
                let properties = properties_of(within, map);
                self.object(map, &properties);
            }
            Value::List(list) => {
                for (index, item) in list.iter_mut().enumerate() {
                    self.path.push(index.to_string());
                    self.value(item, item_schema(within, index));
                    self.path.pop();
                }
            }
            template if is_template(template) => {
                let key = self.path.join(".");
                let is_secret = within.get("secret").and_then(Value::as_bool) == Some(true);
                let text = template.as_str().unwrap_or_default();
                let resolved = (self.resolve)(Template { text, key: &key, is_secret });
                match resolved.and_then(|resolved| cast(resolved, schema)) {
                    Ok(resolved) => *template = resolved,
                    Err(message) => {
                        self.problems.push(PackProblem::of("", format!("key `{key}`: {message}")));
                    }
                }
            }
            _ => {}
        }
    }
}

/// A text as a value of the type that a schema says.
fn cast(value: Value, schema: Option<&Map>) -> Result<Value, String> {
    let Value::String(text) = &value else { return Ok(value) };
    if text.is_empty() {
        return Ok(Value::Null);
    }
    let wanted = schema.and_then(|schema| schema.get("type")).and_then(Value::as_str).unwrap_or("string");
    let read = match wanted {
        "boolean" => match text.to_lowercase().as_str() {
            "true" | "yes" | "on" | "1" => Some(Value::Bool(true)),
            "false" | "no" | "off" | "0" => Some(Value::Bool(false)),
            _ => None,
        },
        "integer" => text.trim().parse().ok().map(Value::Int),
        "number" => {
            let text = text.trim();
            text.parse().ok().map(Value::Int).or_else(|| text.parse().ok().map(Value::Float))
        }
        // JSON, or what Python shows of a value, which YAML reads.
        "object" | "array" => {
            let json = Value::from_json(text.as_bytes()).ok();
            let read = json.or_else(|| Some(parse_document("", text).ok()?.value().clone()));
            read.filter(|read| read.type_name() == wanted)
        }
        "null" => None,
        _ => return Ok(value),
    };
    // The value may be secret and is not shown.
    read.ok_or_else(|| {
        let types = quoted(&[wanted]);
        format!("the value is no {types}; set one that is")
    })
}

fn mask(values: &mut Map, schema: &Map) {
    let properties = properties_of(&Map::from_iter([("properties", Value::Map(schema.clone()))]), values);
    for (key, value) in values.iter_mut() {
        let Some(schema) = properties.get(key).and_then(Value::as_map) else { continue };
        mask_value(value, schema);
    }
}

fn mask_value(value: &mut Value, schema: &Map) {
    if schema.get("secret").and_then(Value::as_bool) == Some(true) {
        *value = Value::from("********");
        return;
    }
    match value {
        Value::Map(map) => {
            let properties = properties_of(schema, map);
            mask(map, &properties);
        }
        Value::List(list) => {
            for (index, item) in list.iter_mut().enumerate() {
                if let Some(schema) = item_schema(schema, index) {
                    mask_value(item, schema);
                }
            }
        }
        _ => {}
    }
}
