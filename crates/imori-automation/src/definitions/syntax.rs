//! The form of a workflow's document: which keys it has, and of which kinds their values are.

use std::sync::LazyLock;

use regex::Regex;

use super::problem::Problem;
use crate::limits::SHOWN_CHARS_MAX;
use crate::python::repr;
use crate::value::Value;

/// The schema path of a task.
pub(crate) const TASK: &str = "properties.tasks.patternProperties.^\\w+$";

/// What a value must be.
enum Form {
    Text,
    Version,
    Texts,
    /// A text, or a whole number from 0 on.
    TextOrCount,
    /// `all`, or a whole number from 0 on.
    Join,
    /// A text, or texts in a list.
    TextOrTexts,
    /// A text, or an object that is not empty.
    TextOrObject,
    /// A list of objects with one key.
    Pairs,
    /// A text, or a list of objects with one key.
    TextOrPairs,
    /// A list of texts and of objects with one key.
    Names,
    /// `x in <% … %>`.
    Items,
    Object(&'static [(&'static str, Form)], &'static [&'static str]),
    Objects(&'static Form),
    Tasks,
}

const WORKFLOW: Form = Form::Object(
    &[
        ("name", Form::Text),
        ("version", Form::Version),
        ("description", Form::Text),
        ("tags", Form::Texts),
        ("vars", Form::Pairs),
        ("input", Form::Names),
        ("output", Form::Pairs),
        ("tasks", Form::Tasks),
    ],
    &["tasks"],
);

const TASK_FORM: Form = Form::Object(
    &[
        ("delay", Form::TextOrCount),
        ("join", Form::Join),
        ("with", WITH),
        ("action", Form::Text),
        ("input", Form::TextOrObject),
        ("retry", RETRY),
        ("next", Form::Objects(&NEXT)),
    ],
    &[],
);

const WITH: Form = Form::Object(&[("items", Form::Items), ("concurrency", Form::TextOrCount)], &[]);

const RETRY: Form = Form::Object(
    &[("when", Form::Text), ("count", Form::TextOrCount), ("delay", Form::TextOrCount)],
    &["count"],
);

const NEXT: Form =
    Form::Object(&[("when", Form::Text), ("publish", Form::TextOrPairs), ("do", Form::TextOrTexts)], &[]);

const ITEMS: &str =
    r"^(\s+)?(<%.*?%>|{{.*?}})(\s+)?$|^(\s+)?((\w+,\s?|\s+)+)?(\w+)\s+in\s+(<%.*?%>|{{.*?}})(\s+)?$";

static ITEMS_PATTERN: LazyLock<Regex> = LazyLock::new(|| {
    let braces = ITEMS.replace("{{", r"\{\{").replace("}}", r"\}\}");
    Regex::new(&braces).expect("the pattern is fixed")
});

/// All errors of the form.
pub(crate) fn check(document: &Value) -> Vec<Problem> {
    let mut problems = Vec::new();
    WORKFLOW.check(document, "", "", &mut problems);
    problems
}

/// Whether a name is one of letters, digits and `_`.
pub(crate) fn is_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_')
}

/// A path with another part.
pub(crate) fn joined(path: &str, part: &str) -> String {
    if path.is_empty() { part.to_owned() } else { format!("{path}.{part}") }
}

impl Form {
    fn check(&self, value: &Value, spec: &str, schema: &str, problems: &mut Vec<Problem>) {
        let mut refuse = |message: String, rule: &str| {
            problems.push(Problem::new("syntax", message, spec, &joined(schema, rule)));
        };
        let wrong_type = |kind: &str| format!("{} is not of type '{kind}'", shown(value));
        let empty = || format!("{} should be non-empty", shown(value));
        let neither = || format!("{} is not valid under any of the given schemas", shown(value));
        match self {
            Form::Text | Form::Items => match value.as_str() {
                None => refuse(wrong_type("string"), "type"),
                Some("") => refuse(empty(), "minLength"),
                Some(text) if matches!(self, Form::Items) && !ITEMS_PATTERN.is_match(text) => {
                    refuse(format!("{} does not match '{ITEMS}'", shown(value)), "pattern");
                }
                Some(_) => {}
            },
            Form::Version => {
                let is_known = value.as_str() == Some("1.0") || value.as_number() == Some(1.0);
                if !is_known {
                    refuse(format!("{} is not one of ['1.0', 1.0]", shown(value)), "enum");
                }
            }
            Form::TextOrCount if !is_text(value) && !is_count(value) => refuse(neither(), "oneOf"),
            Form::Join if value.as_str() != Some("all") && !is_count(value) => refuse(neither(), "oneOf"),
            Form::TextOrTexts if !is_text(value) && !is_list(value, is_text) => refuse(neither(), "oneOf"),
            Form::TextOrPairs if !is_text(value) && !is_list(value, is_pair) => refuse(neither(), "oneOf"),
            Form::TextOrObject => {
                let is_object = value.as_map().is_some_and(|map| !map.is_empty());
                if !is_text(value) && !is_object {
                    refuse(neither(), "oneOf");
                }
            }
            Form::Texts | Form::Pairs | Form::Names => {
                let Some(items) = value.as_list() else { return refuse(wrong_type("array"), "type") };
                if items.is_empty() {
                    refuse(empty(), "minItems");
                }
                if !is_unique(items) {
                    refuse(format!("{} has non-unique elements", shown(value)), "uniqueItems");
                }
                for (at, item) in items.iter().enumerate() {
                    let is_right = match self {
                        Form::Texts => is_text(item),
                        Form::Pairs => is_pair(item),
                        _ => is_text(item) || is_pair(item),
                    };
                    if !is_right {
                        let message = format!("{} is not valid under any of the given schemas", shown(item));
                        let schema = joined(schema, "items.oneOf");
                        problems.push(Problem::new("syntax", message, &format!("{spec}[{at}]"), &schema));
                    }
                }
            }
            Form::Object(keys, required) => {
                let Some(map) = value.as_map() else { return refuse(wrong_type("object"), "type") };
                for key in required.iter().filter(|key| !map.contains_key(key)) {
                    refuse(format!("'{key}' is a required property"), "required");
                }
                let is_known = |key: &str| keys.iter().any(|(known, _)| *known == key);
                let unknown: Vec<String> =
                    map.iter().filter(|(key, _)| !is_known(key)).map(|(key, _)| format!("'{key}'")).collect();
                if !unknown.is_empty() {
                    let verb = if unknown.len() == 1 { "was" } else { "were" };
                    let names = unknown.join(", ");
                    let message =
                        format!("Additional properties are not allowed ({names} {verb} unexpected)");
                    refuse(message, "additionalProperties");
                }
                for (key, form) in keys.iter() {
                    // The items of a list may stand in the place of their object.
                    let value = map.get(key).filter(|value| *key != "with" || value.as_str().is_none());
                    if let Some(value) = value {
                        let schema = joined(schema, &format!("properties.{key}"));
                        form.check(value, &joined(spec, key), &schema, problems);
                    } else if let Some(short) = map.get(key) {
                        let schema = joined(schema, "properties.with.properties.items");
                        Form::Items.check(short, &joined(spec, "with.items"), &schema, problems);
                    }
                }
            }
            Form::Objects(form) => {
                let Some(items) = value.as_list() else { return refuse(wrong_type("array"), "type") };
                for (at, item) in items.iter().enumerate() {
                    form.check(item, &format!("{spec}[{at}]"), &joined(schema, "items"), problems);
                }
            }
            Form::Tasks => {
                let Some(map) = value.as_map() else { return refuse(wrong_type("object"), "type") };
                if map.is_empty() {
                    refuse(empty(), "minProperties");
                }
                for (name, task) in map.iter() {
                    let spec = joined(spec, name);
                    if !is_name(name) {
                        let message = format!(
                            "the task name `{name}` has other characters than letters, digits and `_`"
                        );
                        problems.push(Problem::new("syntax", message, &spec, TASK));
                        continue;
                    }
                    TASK_FORM.check(task, &spec, TASK, problems);
                }
            }
            Form::TextOrCount | Form::Join | Form::TextOrTexts | Form::TextOrPairs => {}
        }
    }
}

fn shown(value: &Value) -> String {
    repr(value).chars().take(SHOWN_CHARS_MAX).collect()
}

fn is_text(value: &Value) -> bool {
    value.as_str().is_some_and(|text| !text.is_empty())
}

fn is_count(value: &Value) -> bool {
    value.as_int().is_some_and(|number| number >= 0)
}

fn is_pair(value: &Value) -> bool {
    value.as_map().is_some_and(|map| map.len() == 1)
}

fn is_list(value: &Value, test: fn(&Value) -> bool) -> bool {
    value.as_list().is_some_and(|items| !items.is_empty() && items.iter().all(test) && is_unique(items))
}

fn is_unique(items: &[Value]) -> bool {
    let mut seen = std::collections::BTreeSet::new();
    items.iter().all(|item| seen.insert(item.to_json()))
}
