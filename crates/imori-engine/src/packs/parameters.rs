//! Parameters: what an action, a runner, a trigger type or a configuration takes, in StackStorm's JSON Schema: draft 4
//! with `required` on the property itself, `secret`, `position` and `immutable`.

use imori_automation::parameters::{Defaults, Schema};
use imori_automation::value::{Map, Value};

use super::fields::{article, quoted, unknown_keys};
use crate::limits::SCHEMA_DEPTH_MAX;

/// Something wrong at a path below the parameters.
pub(crate) type ParameterProblem = (Vec<String>, String);

const TYPES: [&str; 7] = ["array", "boolean", "integer", "null", "number", "object", "string"];

const KEYS: [&str; 36] = [
    "type",
    "description",
    "default",
    "required",
    "enum",
    "secret",
    "immutable",
    "position",
    "title",
    "id",
    "$schema",
    "format",
    "pattern",
    "minLength",
    "maxLength",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "items",
    "additionalItems",
    "minItems",
    "maxItems",
    "uniqueItems",
    "properties",
    "patternProperties",
    "additionalProperties",
    "minProperties",
    "maxProperties",
    "dependencies",
    "definitions",
    "allOf",
    "anyOf",
    "oneOf",
    "not",
];

/// What is wrong with parameters.
#[derive(Default)]
pub(crate) struct ParameterProblems {
    /// What makes no schema.
    pub(crate) wrong: Vec<ParameterProblem>,
    /// Keys that are none of a schema.
    pub(crate) unknown: Vec<ParameterProblem>,
}

/// Checks parameters: the names, and the schema of each.
pub(crate) fn check_parameters(parameters: &Map) -> ParameterProblems {
    let mut found = ParameterProblems::default();
    for (name, schema) in parameters.iter() {
        let path = vec![name.to_owned()];
        if name.is_empty() || !name.chars().all(|letter| letter.is_alphanumeric() || letter == '_') {
            let message = format!("parameter `{name}` is no word; use letters, digits and `_`");
            found.wrong.push((path.clone(), message));
        }
        SchemaCheck { found: &mut found, path }.schema(schema, 0);
    }
    found
}

struct SchemaCheck<'a> {
    found: &'a mut ParameterProblems,
    path: Vec<String>,
}

impl SchemaCheck<'_> {
    fn schema(&mut self, schema: &Value, depth: usize) {
        let Some(map) = schema.as_map() else {
            return self.complain(&format!("{}; give it keys such as `type`", article(schema.type_name())));
        };
        if depth > SCHEMA_DEPTH_MAX {
            return self.complain(&format!("is nested more than {SCHEMA_DEPTH_MAX} deep"));
        }
        for (key, message) in unknown_keys(map, &KEYS) {
            self.below(&key, |check| {
                let complaint = check.complaint(&message);
                check.found.unknown.push(complaint);
            });
        }
        for (exclusive, bound) in [("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")] {
            if map.contains_key(exclusive) && !map.contains_key(bound) {
                self.complain(&format!("key `{exclusive}` is there without `{bound}`; add `{bound}`"));
            }
        }
        for (key, value) in map.iter() {
            self.below(key, |check| check.keyword(key, value, depth));
        }
    }

    fn keyword(&mut self, key: &str, value: &Value, depth: usize) {
        match key {
            "type" => self.types(value, depth),
            "title" | "description" | "id" | "$schema" | "format" | "pattern" => {
                self.is(key, value.as_str().is_some(), "a text");
            }
            "required" | "secret" | "immutable" | "uniqueItems" | "exclusiveMinimum" | "exclusiveMaximum" => {
                self.is(key, value.as_bool().is_some(), "true or false");
            }
            "minimum" | "maximum" => self.is(key, value.as_number().is_some(), "a number"),
            "multipleOf" => {
                self.is(key, value.as_number().is_some_and(|number| number > 0.0), "a number above 0");
            }
            "position" => {
                self.is(key, value.as_number().is_some_and(|number| number >= 0.0), "a number from 0");
            }
            "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties" | "maxProperties" => {
                let is_whole = value.as_int().is_some_and(|number| number >= 0);
                self.is(key, is_whole, "a whole number from 0");
            }
            "enum" => {
                let list = value.as_list().unwrap_or_default();
                self.is(key, !list.is_empty() && are_different(list), "a list of different values");
            }
            "items" => match value {
                Value::List(schemas) => self.schemas(key, schemas, depth),
                other => self.schema(other, depth + 1),
            },
            "allOf" | "anyOf" | "oneOf" => match value {
                Value::List(schemas) => self.schemas(key, schemas, depth),
                _ => self.is(key, false, "a list of schemas"),
            },
            "not" => self.schema(value, depth + 1),
            "additionalItems" | "additionalProperties" => match value {
                Value::Bool(_) => {}
                other => self.schema(other, depth + 1),
            },
            "properties" | "patternProperties" | "definitions" => match value.as_map() {
                Some(map) => {
                    for (name, schema) in map.iter() {
                        self.below(name, |check| check.schema(schema, depth + 1));
                    }
                }
                None => self.is(key, false, "an object of schemas"),
            },
            "dependencies" => match value.as_map() {
                Some(map) => {
                    for (name, needed) in map.iter().filter(|(_, needed)| needed.as_list().is_none()) {
                        self.below(name, |check| check.schema(needed, depth + 1));
                    }
                }
                None => self.is(key, false, "an object"),
            },
            _ => {}
        }
    }

    /// A parameter has one type; what is nested may have several.
    fn types(&mut self, value: &Value, depth: usize) {
        let named = |value: &Value| value.as_str().is_some_and(|name| TYPES.contains(&name));
        let is_list =
            |value: &Value| value.as_list().is_some_and(|list| !list.is_empty() && list.iter().all(named));
        if !(named(value) || depth > 0 && is_list(value)) {
            self.complain(&format!("type `{}` is unknown; use one of {}", shown(value), quoted(&TYPES)));
        }
    }

    fn schemas(&mut self, key: &str, schemas: &[Value], depth: usize) {
        self.is(key, !schemas.is_empty(), "at least one schema");
        for (index, schema) in schemas.iter().enumerate() {
            self.below(&index.to_string(), |check| check.schema(schema, depth + 1));
        }
    }

    fn is(&mut self, key: &str, is_right: bool, wanted: &str) {
        if !is_right {
            self.complain(&format!("key `{key}` is wrong; give it {wanted}"));
        }
    }

    fn below(&mut self, step: &str, check: impl FnOnce(&mut Self)) {
        self.path.push(step.to_owned());
        check(self);
        self.path.pop();
    }

    fn complain(&mut self, message: &str) {
        let complaint = self.complaint(message);
        self.found.wrong.push(complaint);
    }

    fn complaint(&self, message: &str) -> ParameterProblem {
        let parameter = self.path.first().cloned().unwrap_or_default();
        (self.path.clone(), format!("parameter `{parameter}`: {message}"))
    }
}

fn are_different(list: &[Value]) -> bool {
    let mut texts: Vec<_> = list.iter().map(Value::to_json).collect();
    texts.sort_unstable();
    texts.windows(2).all(|pair| pair.first() != pair.last())
}

fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_json(), str::to_owned)
}

/// The values with the default of each parameter that is missing or `null`, also inside of objects.
pub(crate) fn with_defaults(parameters: &Map, mut values: Map) -> Map {
    for (name, schema) in parameters.iter() {
        let is_missing = values.get(name).is_none_or(Value::is_null);
        if let Some(default) = schema.get("default").filter(|_| is_missing) {
            values.insert(name, default.clone());
        }
        if let (Some(Value::Map(inner)), Some(properties)) =
            (values.get_mut(name), schema.get("properties").and_then(Value::as_map))
        {
            *inner = with_defaults(properties, std::mem::take(inner));
        }
    }
    values
}

/// Checks values against parameters. Unknown names are `is_open`'s matter. A schema tells one thing at a time, so what
/// it told of is left out and the rest checked again.
pub(crate) fn check_values(parameters: &Map, values: &Map, is_open: bool) -> Vec<ParameterProblem> {
    let (mut parameters, mut values) = (parameters.clone(), values.clone());
    let mut complaints = Vec::new();
    loop {
        let schema = match Schema::of_parameters(&parameters, is_open) {
            Ok(schema) => schema,
            Err(error) => {
                complaints.push((Vec::new(), format!("the schema is wrong: {error}")));
                return complaints;
            }
        };
        let Err(error) = schema.validate(&Value::Map(values.clone()), Defaults::AssignedOrNone) else {
            return complaints;
        };
        let key = error.path().first().cloned().unwrap_or_default();
        complaints.push((error.path().to_vec(), error.to_string()));
        values.remove(&key);
        // What is no parameter would be told for ever.
        if parameters.remove(&key).is_none() {
            return complaints;
        }
    }
}
