//! A schema: JSON Schema of draft 4 as StackStorm extends it, with `required`, `secret`, `immutable` and `position`
//! at each property.

use std::collections::BTreeMap;

use fancy_regex::Regex;

use super::ParameterError;
use super::best_match::best_match;
use super::defaults::{assign_defaults, nullable};
use super::validation::Validation;
use crate::limits::VALUE_DEPTH_MAX;
use crate::python::{python_regex, repr};
use crate::value::{Map, Value};

/// The treatment of a schema's defaults in a validation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Defaults {
    /// Nothing.
    Ignored,
    /// They are assigned before the check.
    Assigned,
    /// They are assigned, and `None` is valid where it is the default or where nothing is required.
    AssignedOrNone,
}

/// A compiled schema.
#[derive(Debug, Clone)]
pub struct Schema {
    root: Value,
    nullable: Value,
    patterns: BTreeMap<String, Regex>,
}

const TYPES: [&str; 7] = ["array", "boolean", "integer", "null", "number", "object", "string"];

/// What the value of a keyword has to be.
#[derive(Clone, Copy)]
enum Kind {
    Any,
    Boolean,
    Count,
    Number,
    String,
    Pattern,
    Schema,
    SchemaOrBoolean,
    SchemaOrSchemas,
    Schemas,
    SchemaMap,
    PatternMap,
    Dependencies,
    Enum,
    Type,
}

const KEYWORDS: &[(&str, Kind)] = &[
    ("$ref", Kind::String),
    ("additionalItems", Kind::SchemaOrBoolean),
    ("additionalProperties", Kind::SchemaOrBoolean),
    ("allOf", Kind::Schemas),
    ("anyOf", Kind::Schemas),
    ("default", Kind::Any),
    ("definitions", Kind::SchemaMap),
    ("dependencies", Kind::Dependencies),
    ("description", Kind::String),
    ("enum", Kind::Enum),
    ("exclusiveMaximum", Kind::Boolean),
    ("exclusiveMinimum", Kind::Boolean),
    ("immutable", Kind::Boolean),
    ("items", Kind::SchemaOrSchemas),
    ("maxItems", Kind::Count),
    ("maxLength", Kind::Count),
    ("maxProperties", Kind::Count),
    ("maximum", Kind::Number),
    ("minItems", Kind::Count),
    ("minLength", Kind::Count),
    ("minProperties", Kind::Count),
    ("minimum", Kind::Number),
    ("multipleOf", Kind::Number),
    ("not", Kind::Schema),
    ("oneOf", Kind::Schemas),
    ("pattern", Kind::Pattern),
    ("patternProperties", Kind::PatternMap),
    ("position", Kind::Number),
    ("properties", Kind::SchemaMap),
    ("required", Kind::Boolean),
    ("secret", Kind::Boolean),
    ("title", Kind::String),
    ("type", Kind::Type),
    ("uniqueItems", Kind::Boolean),
];

impl Schema {
    /// Compiles a schema. Keywords that are unknown are ignored, as StackStorm ignores them where it checks a value.
    ///
    /// # Errors
    /// The value of a keyword has a wrong type, a pattern is wrong, or the schema is nested too deep.
    pub fn compile(schema: &Value) -> Result<Schema, ParameterError> {
        let mut patterns = BTreeMap::new();
        check(schema, &mut Vec::new(), &mut patterns)?;
        let nullable = schema.as_map().map_or_else(|| schema.clone(), |map| Value::Map(nullable(map)));
        Ok(Schema { root: schema.clone(), nullable, patterns })
    }

    /// Compiles the schema of parameters: an object with these properties, and with others where `additional` is set.
    /// A parameter without a schema of its own takes any value but `None`. Without parameters all is valid.
    ///
    /// # Errors
    /// As [`Schema::compile`].
    pub fn of_parameters(parameters: &Map, additional: bool) -> Result<Schema, ParameterError> {
        Schema::compile(&Value::Map(parameters_schema(parameters, additional)))
    }

    /// The schema as it was given.
    pub fn as_value(&self) -> &Value {
        &self.root
    }

    /// Checks a value and gives it with its defaults.
    ///
    /// # Errors
    /// The value is invalid; the text is the message of Python's `jsonschema`.
    pub fn validate(&self, instance: &Value, defaults: Defaults) -> Result<Value, ParameterError> {
        let root = if defaults == Defaults::AssignedOrNone { &self.nullable } else { &self.root };
        let mut instance = instance.clone();
        if defaults != Defaults::Ignored
            && let (Some(schema), Value::Map(map)) = (root.as_map(), &mut instance)
            && schema.get("type").and_then(Value::as_str) == Some("object")
        {
            assign_defaults(map, schema);
        }
        let problems = Validation::new(root, &self.patterns).problems(&instance)?;
        match best_match(problems) {
            None => Ok(instance),
            Some(problem) => {
                let path = problem.path.iter().map(ToString::to_string).collect();
                Err(ParameterError::at(path, problem.text))
            }
        }
    }
}

/// The schema of an object with these parameters.
pub(super) fn parameters_schema(parameters: &Map, additional: bool) -> Map {
    let mut schema = Map::new();
    if parameters.is_empty() {
        return schema;
    }
    let any = || {
        let types = ["array", "boolean", "integer", "number", "object", "string"];
        let types: Vec<Value> =
            types.into_iter().map(|name| Value::Map(Map::from_iter([("type", name)]))).collect();
        Value::Map(Map::from_iter([("anyOf", types)]))
    };
    let properties: Map = parameters
        .iter()
        .map(|(name, schema)| (name, if schema.is_truthy() { schema.clone() } else { any() }))
        .collect();
    schema.insert("type", "object");
    schema.insert("properties", properties);
    schema.insert("additionalProperties", additional);
    schema
}

fn check(
    schema: &Value,
    path: &mut Vec<String>,
    patterns: &mut BTreeMap<String, Regex>,
) -> Result<(), ParameterError> {
    let Some(map) = schema.as_map() else {
        return Err(wrong(path, schema, "a schema, which is an object"));
    };
    if path.len() > VALUE_DEPTH_MAX {
        return Err(ParameterError::new("the schema is nested too deep"));
    }
    for (keyword, value) in map.iter() {
        let Some((_, kind)) = KEYWORDS.iter().find(|(known, _)| *known == keyword) else { continue };
        path.push(keyword.to_owned());
        check_keyword(value, *kind, path, patterns)?;
        path.pop();
    }
    Ok(())
}

fn check_keyword(
    value: &Value,
    kind: Kind,
    path: &mut Vec<String>,
    patterns: &mut BTreeMap<String, Regex>,
) -> Result<(), ParameterError> {
    let fits = |fits: bool, wanted: &str, path: &[String]| match fits {
        true => Ok(()),
        false => Err(wrong(path, value, wanted)),
    };
    match kind {
        Kind::Any => Ok(()),
        Kind::Boolean => fits(value.as_bool().is_some(), "a boolean", path),
        Kind::Count => fits(value.as_int().is_some_and(|count| count >= 0), "a whole number from 0 on", path),
        Kind::Number => fits(value.as_number().is_some(), "a number", path),
        Kind::String => fits(value.as_str().is_some(), "a text", path),
        Kind::Enum => fits(value.as_list().is_some_and(|list| !list.is_empty()), "a list with values", path),
        Kind::Type => {
            let known = |name: &Value| name.as_str().is_some_and(|name| TYPES.contains(&name));
            let fitting = match value.as_list() {
                Some(names) => !names.is_empty() && names.iter().all(known),
                None => known(value),
            };
            fits(fitting, &format!("one of {}", TYPES.join(", ")), path)
        }
        Kind::Pattern => match value.as_str() {
            Some(pattern) => add_pattern(pattern, path, patterns),
            None => Err(wrong(path, value, "a text")),
        },
        Kind::Schema => check(value, path, patterns),
        Kind::SchemaOrBoolean if value.as_bool().is_some() => Ok(()),
        Kind::SchemaOrBoolean => check(value, path, patterns),
        Kind::Schemas | Kind::SchemaOrSchemas => match (value.as_list(), kind) {
            (Some(schemas), _) => schemas.iter().enumerate().try_for_each(|(at, schema)| {
                path.push(at.to_string());
                check(schema, path, patterns)?;
                path.pop();
                Ok(())
            }),
            (None, Kind::SchemaOrSchemas) => check(value, path, patterns),
            _ => Err(wrong(path, value, "a list of schemas")),
        },
        Kind::SchemaMap | Kind::PatternMap | Kind::Dependencies => {
            let map = value.as_map().ok_or_else(|| wrong(path, value, "an object"))?;
            map.iter().try_for_each(|(name, schema)| {
                path.push(name.to_owned());
                match (kind, schema.as_list()) {
                    (Kind::Dependencies, Some(names)) => {
                        if !names.iter().all(|name| name.as_str().is_some()) {
                            return Err(wrong(path, schema, "a list of names"));
                        }
                    }
                    (Kind::PatternMap, _) => {
                        add_pattern(name, path, patterns)?;
                        check(schema, path, patterns)?;
                    }
                    _ => check(schema, path, patterns)?,
                }
                path.pop();
                Ok(())
            })
        }
    }
}

fn add_pattern(
    pattern: &str,
    path: &[String],
    patterns: &mut BTreeMap<String, Regex>,
) -> Result<(), ParameterError> {
    let regex = python_regex(pattern, false).map_err(|error| ParameterError::at(path.to_vec(), error))?;
    patterns.insert(pattern.to_owned(), regex);
    Ok(())
}

fn wrong(path: &[String], value: &Value, wanted: &str) -> ParameterError {
    let place = if path.is_empty() { String::new() } else { format!(" of `{}`", path.join(".")) };
    ParameterError::at(path.to_vec(), format!("the value `{}`{place} must be {wanted}", repr(value)))
}
