//! The inspection of a workflow's document: all its errors at once.

use super::contents::{self, Actions};
use super::definition::Definition;
use super::problem::Problem;
use super::syntax::{self, TASK};
use super::{semantics, variables};
use crate::expressions::{Language, jinja_syntax_error, languages, yaql_syntax_error};
use crate::limits::{VALUE_DEPTH_MAX, WORKFLOW_EXPRESSION_BYTES_MAX};
use crate::value::{Map, Value};

/// All errors of a document, by kind and by their places in the schema. Without `actions`, the calls of tasks are not
/// checked.
pub(crate) fn inspect(document: &Value, actions: Option<&dyn Actions>) -> Vec<Problem> {
    let mut problems = syntax::check(document);
    let is_object = document.get("tasks").and_then(Value::as_map).is_some();
    if is_object {
        let definition = Definition::of(document);
        problems.extend(semantics::check(&definition));
        problems.extend(expressions(document));
        problems.extend(variables::check(&definition));
        problems.extend(actions.into_iter().flat_map(|actions| contents::check(&definition, actions)));
    }
    problems
        .sort_by(|a, b| (a.kind, &a.schema_path, &a.spec_path).cmp(&(b.kind, &b.schema_path, &b.spec_path)));
    problems
}

/// The errors within expressions.
fn expressions(document: &Value) -> Vec<Problem> {
    let mut problems = Vec::new();
    for key in ["input", "vars", "output"] {
        let value = document.get(key);
        value.into_iter().for_each(|value| check(value, key, &format!("properties.{key}"), 0, &mut problems));
    }
    let tasks = document.get("tasks").and_then(Value::as_map).into_iter().flat_map(Map::iter);
    for (name, task) in tasks {
        let spec = format!("tasks.{name}");
        let parts = |value: &Value, keys: &[&str], spec: &str, schema: &str, problems: &mut Vec<Problem>| {
            for key in keys {
                let value = value.get(key);
                let (spec, schema) = (format!("{spec}.{key}"), format!("{schema}.{key}"));
                value.into_iter().for_each(|value| check(value, &spec, &schema, 0, problems));
            }
        };
        let schema = format!("{TASK}.properties");
        parts(task, &["delay", "join", "action", "input"], &spec, &schema, &mut problems);
        let inner = |key: &str| (format!("{spec}.{key}"), format!("{schema}.{key}.properties"));
        if let Some(with) = task.get("with") {
            let (spec, schema) = inner("with");
            match with.as_str() {
                Some(_) => {
                    check(with, &format!("{spec}.items"), &format!("{schema}.items"), 0, &mut problems);
                }
                None => parts(with, &["items", "concurrency"], &spec, &schema, &mut problems),
            }
        }
        if let Some(retry) = task.get("retry") {
            let (spec, schema) = inner("retry");
            parts(retry, &["when", "count", "delay"], &spec, &schema, &mut problems);
        }
        let next = task.get("next").and_then(Value::as_list).unwrap_or_default();
        for (at, next) in next.iter().enumerate() {
            let spec = format!("{spec}.next[{at}]");
            let schema = format!("{schema}.next.items.properties");
            parts(next, &["when", "publish", "do"], &spec, &schema, &mut problems);
        }
    }
    problems
}

fn check(value: &Value, spec: &str, schema: &str, depth: usize, problems: &mut Vec<Problem>) {
    match value {
        Value::String(text) => text_problems(text, spec, schema, problems),
        Value::List(_) | Value::Map(_) if depth > VALUE_DEPTH_MAX => {}
        Value::List(items) => items.iter().for_each(|item| check(item, spec, schema, depth + 1, problems)),
        Value::Map(map) => {
            for (key, value) in map.iter() {
                text_problems(key, spec, schema, problems);
                check(value, spec, schema, depth + 1, problems);
            }
        }
        _ => {}
    }
}

fn text_problems(text: &str, spec: &str, schema: &str, problems: &mut Vec<Problem>) {
    let mut add = |message: String, language: Option<Language>, expression: &str| {
        let mut problem = Problem::new("expression", message, spec, schema);
        problem.language = language.map(Language::name);
        problem.expression = Some(expression.to_owned());
        problems.push(problem);
    };
    let found = languages(text);
    if !found.is_empty() && text.len() > WORKFLOW_EXPRESSION_BYTES_MAX {
        let message = format!("a text with expressions has at most {WORKFLOW_EXPRESSION_BYTES_MAX} bytes");
        return add(message, None, text.get(..80).unwrap_or_default());
    }
    match found.as_slice() {
        [_, _, ..] => add("Expression with multiple types is not supported.".to_owned(), None, text),
        [Language::Yaql] => {
            for expression in Language::Yaql.expressions(text) {
                if let Some(message) = yaql_syntax_error(Language::Yaql.inside(expression)) {
                    add(message, Some(Language::Yaql), expression);
                }
            }
        }
        [Language::Jinja] => {
            if let Some(message) = jinja_syntax_error(text) {
                add(message, Some(Language::Jinja), text);
            }
        }
        [] => {}
    }
}
