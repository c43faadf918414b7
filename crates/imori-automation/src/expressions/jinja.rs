//! The functions of orquesta in Jinja.

use std::sync::Arc;

use minijinja::value::{Rest, Value as Native};
use minijinja::{Error, ErrorKind};

use super::scope::Scope;
use super::yaql_functions::{json, zip};
use crate::python::conversion::{from_template, to_template};
use crate::templates::{Context, Template, TemplateError, evaluate_expression};
use crate::value::Value;

/// Why there is no value.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum JinjaFault {
    /// The expression uses a name that is unknown here, such as `st2kv`.
    Unsure,
    /// The value itself is undefined.
    Undefined,
    /// The error with the name of its class.
    Failed(String),
}

/// Evaluates an expression without its braces.
///
/// # Errors
/// It fails, its value is undefined, or it uses a name that is unknown here.
pub(super) fn evaluate(source: &str, scope: &Scope) -> Result<Value, JinjaFault> {
    let value = evaluate_expression(source, names(scope)).map_err(|error| fault(&error))?;
    if value.is_undefined() {
        return Err(JinjaFault::Undefined);
    }
    from_template(&value).map_err(|_| JinjaFault::Unsure)
}

/// Renders a text with blocks.
///
/// # Errors
/// It fails, or uses a name that is unknown here.
pub(super) fn render(source: &str, scope: &Scope) -> Result<String, JinjaFault> {
    Template::compile(source)
        .and_then(|template| template.render(names(scope)))
        .map_err(|error| fault(&error))
}

fn fault(error: &TemplateError) -> JinjaFault {
    if error.is_unknown() || error.is_syntax() {
        return JinjaFault::Unsure;
    }
    JinjaFault::Failed(match error.is_undefined() {
        true => format!("UndefinedError: {error}"),
        false => error.to_string(),
    })
}

/// The functions, made once for all expressions of a scope.
fn names(scope: &Scope) -> &Context {
    scope.names.get_or_init(|| context(scope))
}

fn context(scope: &Scope) -> Context {
    let all = Value::Map(scope.public_variables());
    let variables = Arc::new(to_template(&all));
    let ctx = Native::from_function(move |name: Option<Native>| -> Result<Native, Error> {
        let Some(name) = name.filter(Native::is_true) else { return Ok(variables.as_ref().clone()) };
        let found = variables.get_item(&name)?;
        let undefined = || failure(format!("VariableUndefinedError: The variable \"{name}\" is undefined."));
        if found.is_undefined() { Err(undefined()) } else { Ok(found) }
    });
    let item = scope.item.as_ref().map_or_else(|| Native::from(()), to_template);
    let item = Native::from_function(move |name: Option<Native>| -> Result<Native, Error> {
        let Some(name) = name.filter(Native::is_true) else { return Ok(item.clone()) };
        let found = item.get_item(&name)?;
        let missing =
            || failure(format!("ExpressionEvaluationException: Item does not have key \"{name}\"."));
        if found.is_undefined() { Err(missing()) } else { Ok(found) }
    });
    let statuses = Arc::clone(&scope.statuses);
    let route = scope.task.as_ref().map_or(0, |task| task.route);
    let status = Native::from_function(move |name: &str, other: Option<u32>| -> String {
        statuses.of(name, other.unwrap_or(route)).to_owned()
    });
    let task = scope.task.as_ref();
    let result = task.and_then(|task| task.result.as_ref()).map_or_else(|| Native::from(()), to_template);
    let is = |wanted: &'static [&'static str]| {
        let status = task.map(|task| task.status);
        Native::from_function(move || -> Result<bool, Error> {
            status.map(|status| wanted.contains(&status)).ok_or_else(no_task)
        })
    };
    let has_task = task.is_some();
    Context::new()
        .with_native("ctx", ctx)
        .with_native("item", item)
        .with_native("task_status", status.clone())
        .with_native("task_state", status)
        .with_native("succeeded", is(&["succeeded"]))
        .with_native("failed", is(&["failed"]))
        .with_native("completed", is(&["succeeded", "failed", "timeout", "abandoned", "canceled"]))
        .with_native(
            "result",
            Native::from_function(move || if has_task { Ok(result.clone()) } else { Err(no_task()) }),
        )
        .with_native(
            "json",
            Native::from_function(|text: Native| {
                converted(&text, |value| match value {
                    Value::Map(_) => Some(value.clone()),
                    value => value.as_str().and_then(json),
                })
            }),
        )
        .with_native(
            "zip",
            Native::from_function(|lists: Rest<Native>| {
                let lists: Native = lists.0.into_iter().collect();
                converted(&lists, |lists| lists.as_list().and_then(zip))
            }),
        )
}

/// The value of a function on values of the automation. What it does not take is left to Python.
fn converted(value: &Native, function: impl Fn(&Value) -> Option<Value>) -> Result<Native, Error> {
    let value = from_template(value)?;
    let left = || Error::new(ErrorKind::UnknownFunction, "the function does not take these values");
    function(&value).map(|value| to_template(&value)).ok_or_else(left)
}

fn failure(text: String) -> Error {
    Error::new(ErrorKind::InvalidOperation, text)
}

fn no_task() -> Error {
    failure("ExpressionEvaluationException: The current task is not set in the context.".to_owned())
}

/// The error of a text that is no template.
pub(crate) fn syntax_error(text: &str) -> Option<String> {
    match Template::compile(text) {
        Err(error) if error.is_syntax() => Some(error.to_string()),
        _ => None,
    }
}
