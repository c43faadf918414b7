//! A check of a value against a schema, with the texts of Python's `jsonschema`.

use std::cell::Cell;
use std::collections::BTreeMap;

use fancy_regex::Regex;

use super::ParameterError;
use super::best_match::{Problem, Step};
use crate::limits::{SCHEMA_STEPS_MAX, VALUE_DEPTH_MAX};
use crate::python::{repr, repr_text};
use crate::value::{Map, Value};

/// A check against one schema.
pub(super) struct Validation<'a> {
    root: &'a Value,
    patterns: &'a BTreeMap<String, Regex>,
    /// Schemas that may yet be tried.
    steps: Cell<usize>,
}

type Problems = Result<Vec<Problem>, ParameterError>;

impl<'a> Validation<'a> {
    pub(super) fn new(root: &'a Value, patterns: &'a BTreeMap<String, Regex>) -> Validation<'a> {
        Validation { root, patterns, steps: Cell::new(SCHEMA_STEPS_MAX) }
    }

    /// All problems of a value.
    ///
    /// # Errors
    /// The check takes more steps than its limit, or a reference leads nowhere.
    pub(super) fn problems(&self, instance: &Value) -> Problems {
        self.of(instance, self.root, 0)
    }

    fn of(&self, instance: &Value, schema: &Value, depth: usize) -> Problems {
        let steps = self.steps.get().checked_sub(1).filter(|_| depth < VALUE_DEPTH_MAX);
        self.steps.set(steps.ok_or_else(|| {
            ParameterError::new("the schema is nested too deep or takes too many steps to check a value")
        })?);
        let Some(schema) = schema.as_map() else { return Ok(Vec::new()) };
        let mut problems = Vec::new();
        for (keyword, value) in schema.iter() {
            let check = Keyword { validation: self, schema, keyword, value, instance, depth };
            problems.extend(check.problems()?);
        }
        Ok(problems)
    }

    fn is_valid(&self, instance: &Value, schema: &Value, depth: usize) -> Result<bool, ParameterError> {
        self.of(instance, schema, depth).map(|problems| problems.is_empty())
    }

    /// What a reference such as `#/definitions/port` means.
    fn resolve(&self, reference: &str) -> Result<&'a Value, ParameterError> {
        let wrong =
            || ParameterError::new(format!("the reference `{reference}` of the schema leads nowhere"));
        let mut schema = self.root;
        for part in reference.strip_prefix('#').ok_or_else(wrong)?.split('/').filter(|part| !part.is_empty())
        {
            let part = part.replace("~1", "/").replace("~0", "~");
            schema = match schema {
                Value::Map(map) => map.get(&part),
                Value::List(list) => part.parse::<usize>().ok().and_then(|at| list.get(at)),
                _ => None,
            }
            .ok_or_else(wrong)?;
        }
        Ok(schema)
    }

    fn matches(&self, pattern: &str, text: &str) -> bool {
        // A pattern that gives up on a text does not match it.
        self.patterns.get(pattern).is_some_and(|regex| regex.is_match(text).unwrap_or(false))
    }
}

/// A keyword of a schema with the value to check.
struct Keyword<'a, 'b> {
    validation: &'b Validation<'a>,
    schema: &'b Map,
    keyword: &'b str,
    value: &'b Value,
    instance: &'b Value,
    depth: usize,
}

impl Keyword<'_, '_> {
    fn problems(&self) -> Problems {
        match self.keyword {
            "$ref" => {
                let schema = self.validation.resolve(self.value.as_str().unwrap_or_default())?;
                self.validation.of(self.instance, schema, self.depth + 1)
            }
            "type" => Ok(self.failed(!self.is_one_of_types(), || {
                let names: Vec<String> = self.type_names().map(repr_text).collect();
                format!("{} is not of type {}", repr(self.instance), names.join(", "))
            })),
            "enum" => {
                let known =
                    self.value.as_list().unwrap_or_default().iter().any(|value| equal(value, self.instance));
                Ok(self
                    .failed(!known, || format!("{} is not one of {}", repr(self.instance), repr(self.value))))
            }
            "allOf" => {
                let mut problems = Vec::new();
                for schema in self.value.as_list().unwrap_or_default() {
                    problems.extend(self.validation.of(self.instance, schema, self.depth + 1)?);
                }
                Ok(problems)
            }
            "anyOf" | "oneOf" => self.alternatives(),
            "not" => {
                let valid = self.validation.is_valid(self.instance, self.value, self.depth + 1)?;
                Ok(self.failed(valid, || {
                    format!("{} should not be valid under {}", repr(self.instance), repr(self.value))
                }))
            }
            _ => match self.instance {
                Value::Int(_) | Value::Float(_) => Ok(self.of_number()),
                Value::String(text) => Ok(self.of_text(text)),
                Value::List(items) => self.of_list(items),
                Value::Map(map) => self.of_map(map),
                _ => Ok(Vec::new()),
            },
        }
    }

    fn type_names(&self) -> impl Iterator<Item = &str> {
        let names = self.value.as_list().unwrap_or_default().iter().filter_map(Value::as_str);
        self.value.as_str().into_iter().chain(names)
    }

    fn is_one_of_types(&self) -> bool {
        self.type_names().any(|name| is_type(self.instance, name))
    }

    fn problem(&self, text: String) -> Problem {
        let expected = self.schema.get("type");
        let matches_type = match expected {
            Some(Value::String(name)) => is_type(self.instance, name),
            Some(Value::List(names)) => {
                names.iter().filter_map(Value::as_str).any(|name| is_type(self.instance, name))
            }
            _ => false,
        };
        let is_weak = matches!(self.keyword, "anyOf" | "oneOf");
        Problem { path: Vec::new(), text, is_weak, matches_type, causes: Vec::new() }
    }

    fn failed(&self, failed: bool, text: impl FnOnce() -> String) -> Vec<Problem> {
        if failed { vec![self.problem(text())] } else { Vec::new() }
    }

    /// The problems of a part of the value.
    fn descend(&self, part: &Value, schema: &Value, step: &Step) -> Problems {
        let mut problems = self.validation.of(part, schema, self.depth + 1)?;
        problems.iter_mut().for_each(|problem| problem.path.insert(0, step.clone()));
        Ok(problems)
    }

    fn alternatives(&self) -> Problems {
        let mut causes = Vec::new();
        let mut schemas = self.value.as_list().unwrap_or_default().iter();
        let first = loop {
            let Some(schema) = schemas.next() else {
                let text = format!("{} is not valid under any of the given schemas", repr(self.instance));
                return Ok(vec![Problem { causes, ..self.problem(text) }]);
            };
            let problems = self.validation.of(self.instance, schema, self.depth + 1)?;
            if problems.is_empty() {
                break schema;
            }
            causes.extend(problems);
        };
        if self.keyword == "anyOf" {
            return Ok(Vec::new());
        }
        let mut valid = Vec::new();
        for schema in schemas {
            if self.validation.is_valid(self.instance, schema, self.depth + 1)? {
                valid.push(repr(schema));
            }
        }
        Ok(self.failed(!valid.is_empty(), || {
            valid.push(repr(first));
            format!("{} is valid under each of {}", repr(self.instance), valid.join(", "))
        }))
    }

    fn of_number(&self) -> Vec<Problem> {
        let (Some(number), Some(limit)) = (self.instance.as_number(), self.value.as_number()) else {
            return Vec::new();
        };
        let order = match (self.instance, self.value) {
            (Value::Int(number), Value::Int(limit)) => Some(number.cmp(limit)),
            _ => number.partial_cmp(&limit),
        };
        let bound = |exclusive: &str, failing: std::cmp::Ordering, than: &str, name: &str| {
            let exclusive = self.schema.get(exclusive).is_some_and(Value::is_truthy);
            let failed = order == Some(failing) || (exclusive && order == Some(std::cmp::Ordering::Equal));
            let or_equal = if exclusive { " than or equal to" } else { " than" };
            self.failed(failed, || {
                format!("{} is {than}{or_equal} the {name} of {}", repr(self.instance), repr(self.value))
            })
        };
        match self.keyword {
            "minimum" => bound("exclusiveMinimum", std::cmp::Ordering::Less, "less", "minimum"),
            "maximum" => bound("exclusiveMaximum", std::cmp::Ordering::Greater, "greater", "maximum"),
            "multipleOf" => {
                let failed = match (self.instance, self.value) {
                    (Value::Int(number), Value::Int(divisor)) => number.checked_rem(*divisor) != Some(0),
                    _ => {
                        let quotient = number / limit;
                        quotient.is_finite() && quotient.fract() != 0.0
                    }
                };
                self.failed(failed, || {
                    format!("{} is not a multiple of {}", repr(self.instance), repr(self.value))
                })
            }
            _ => Vec::new(),
        }
    }

    /// A problem of a size; `one` is told for a limit of one or none.
    fn size(&self, size: usize, one: &str, other: &str) -> Vec<Problem> {
        let limit = usize::try_from(self.value.as_int().unwrap_or(0)).unwrap_or(0);
        let (failed, special) = match self.keyword.starts_with("min") {
            true => (size < limit, 1),
            false => (size > limit, 0),
        };
        self.failed(failed, || {
            format!("{} {}", repr(self.instance), if limit == special { one } else { other })
        })
    }

    fn of_text(&self, text: &str) -> Vec<Problem> {
        match self.keyword {
            "minLength" => self.size(text.chars().count(), "should be non-empty", "is too short"),
            "maxLength" => self.size(text.chars().count(), "is expected to be empty", "is too long"),
            "pattern" => {
                let matches =
                    self.value.as_str().is_some_and(|pattern| self.validation.matches(pattern, text));
                self.failed(!matches, || {
                    format!("{} does not match {}", repr(self.instance), repr(self.value))
                })
            }
            _ => Vec::new(),
        }
    }

    fn of_list(&self, items: &[Value]) -> Problems {
        let schemas = self.schema.get("items").and_then(Value::as_list);
        let mut problems = Vec::new();
        match self.keyword {
            "items" => {
                for (at, item) in items.iter().enumerate() {
                    let schema = match schemas {
                        Some(schemas) => schemas.get(at),
                        None => Some(self.value),
                    };
                    if let Some(schema) = schema {
                        problems.extend(self.descend(item, schema, &Step::Index(at))?);
                    }
                }
            }
            "additionalItems" if self.schema.get("items").is_some_and(|items| items.as_list().is_some()) => {
                let known = schemas.unwrap_or_default().len();
                let extra = items.get(known..).unwrap_or_default();
                if self.value.as_bool() == Some(false) {
                    return Ok(self.failed(!extra.is_empty(), || {
                        format!("Additional items are not allowed ({})", unexpected(extra.iter().map(repr)))
                    }));
                }
                for (at, item) in extra.iter().enumerate() {
                    problems.extend(self.descend(item, self.value, &Step::Index(known + at))?);
                }
            }
            "minItems" => return Ok(self.size(items.len(), "should be non-empty", "is too short")),
            "maxItems" => return Ok(self.size(items.len(), "is expected to be empty", "is too long")),
            "uniqueItems" if self.value.is_truthy() => {
                let mut seen: Vec<&Value> = Vec::new();
                for item in items {
                    let spent = self.steps_for(seen.len())?;
                    self.validation.steps.set(spent);
                    if seen.iter().any(|seen| equal(seen, item)) {
                        return Ok(
                            self.failed(true, || format!("{} has non-unique elements", repr(self.instance)))
                        );
                    }
                    seen.push(item);
                }
            }
            _ => {}
        }
        Ok(problems)
    }

    /// The remaining steps after this number of comparisons.
    fn steps_for(&self, comparisons: usize) -> Result<usize, ParameterError> {
        let left = self.validation.steps.get().checked_sub(1 + comparisons / 64);
        left.ok_or_else(|| ParameterError::new("the list is too long to be checked for `uniqueItems`"))
    }

    fn of_map(&self, map: &Map) -> Problems {
        let mut problems = Vec::new();
        match self.keyword {
            "properties" => {
                for (name, schema) in self.value.as_map().into_iter().flat_map(Map::iter) {
                    if let Some(part) = map.get(name) {
                        problems.extend(self.descend(part, schema, &Step::Key(name.to_owned()))?);
                    } else if schema.get("required").is_some_and(Value::is_truthy) {
                        let mut problem = self.problem(format!("{} is a required property", repr_text(name)));
                        problem.path = vec![Step::Key(name.to_owned())];
                        problems.push(problem);
                    }
                }
            }
            "patternProperties" => {
                for (pattern, schema) in self.value.as_map().into_iter().flat_map(Map::iter) {
                    for (name, part) in map.iter().filter(|(name, _)| self.validation.matches(pattern, name))
                    {
                        problems.extend(self.descend(part, schema, &Step::Key(name.to_owned()))?);
                    }
                }
            }
            "additionalProperties" => return self.additional(map),
            "dependencies" => {
                for (name, needed) in self.value.as_map().into_iter().flat_map(Map::iter) {
                    if !map.contains_key(name) {
                        continue;
                    }
                    let Some(names) = needed.as_list() else {
                        problems.extend(self.validation.of(self.instance, needed, self.depth + 1)?);
                        continue;
                    };
                    for needed in
                        names.iter().filter_map(Value::as_str).filter(|needed| !map.contains_key(needed))
                    {
                        let text = format!("{} is a dependency of {}", repr_text(needed), repr_text(name));
                        problems.push(self.problem(text));
                    }
                }
            }
            "minProperties" => {
                return Ok(self.size(map.len(), "should be non-empty", "does not have enough properties"));
            }
            "maxProperties" => {
                return Ok(self.size(map.len(), "is expected to be empty", "has too many properties"));
            }
            _ => {}
        }
        Ok(problems)
    }

    fn additional(&self, map: &Map) -> Problems {
        let empty = Map::new();
        let properties = self.schema.get("properties").and_then(Value::as_map).unwrap_or(&empty);
        let patterns = self.schema.get("patternProperties").and_then(Value::as_map);
        let matches = |name: &str| {
            patterns.is_some_and(|patterns| {
                patterns.iter().any(|(pattern, _)| self.validation.matches(pattern, name))
            })
        };
        let mut extra: Vec<(&str, &Value)> =
            map.iter().filter(|(name, _)| !properties.contains_key(name) && !matches(name)).collect();
        extra.sort_by_key(|(name, _)| *name);
        if self.value.as_bool() == Some(true) || extra.is_empty() {
            return Ok(Vec::new());
        }
        if self.value.as_bool().is_none() {
            let mut problems = Vec::new();
            for (name, part) in extra {
                problems.extend(self.descend(part, self.value, &Step::Key(name.to_owned()))?);
            }
            return Ok(problems);
        }
        let names = extra.iter().map(|(name, _)| repr_text(name));
        let text = match patterns {
            None => format!("Additional properties are not allowed ({})", unexpected(names)),
            Some(patterns) => {
                let verb = if extra.len() == 1 { "does" } else { "do" };
                let mut known: Vec<&str> = patterns.iter().map(|(pattern, _)| pattern).collect();
                known.sort_unstable();
                let known: Vec<String> = known.into_iter().map(repr_text).collect();
                let names: Vec<String> = names.collect();
                format!("{} {verb} not match any of the regexes: {}", names.join(", "), known.join(", "))
            }
        };
        Ok(vec![self.problem(text)])
    }
}

fn unexpected(names: impl Iterator<Item = String>) -> String {
    let names: Vec<String> = names.collect();
    format!("{} {} unexpected", names.join(", "), if names.len() == 1 { "was" } else { "were" })
}

/// Whether a value has a type of JSON Schema; a float is no `integer`.
pub(super) fn is_type(value: &Value, name: &str) -> bool {
    let own = value.type_name();
    own == name || (own == "integer" && name == "number")
}

/// Whether two values are equal to JSON Schema: numbers by their size, but booleans are no numbers.
pub(super) fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Int(a), Value::Float(b)) | (Value::Float(b), Value::Int(a)) => *a as f64 == *b,
        (Value::List(a), Value::List(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b)),
        (Value::Map(a), Value::Map(b)) => {
            a.len() == b.len()
                && a.iter().all(|(key, value)| b.get(key).is_some_and(|other| equal(value, other)))
        }
        _ => a == b,
    }
}
