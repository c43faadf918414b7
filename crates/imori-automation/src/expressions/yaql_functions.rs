//! Functions and methods of YAQL, those of orquesta among them.

use std::borrow::Cow;

use super::scope::Scope;
use super::yaql_values::{Fault, ValueResult, contains, entry};
use crate::limits::VALUE_DEPTH_MAX;
use crate::python::{float_of_text, int_of_text, text_of};
use crate::value::Value;

/// Calls a function.
///
/// # Errors
/// It fails, or it is left to yaql.
pub(super) fn function<'a>(scope: &'a Scope, name: &str, values: &[Value]) -> ValueResult<'a> {
    let task = || {
        let message = "ExpressionEvaluationException: The current task is not set in the context.";
        scope.task.as_ref().ok_or_else(|| Fault::Failed(message.to_owned()))
    };
    let is = |wanted: &[&str]| task().map(|task| Value::Bool(wanted.contains(&task.status)));
    let value = match (name, values) {
        ("result", []) => {
            return Ok(task()?.result.as_ref().map_or(Cow::Owned(Value::Null), Cow::Borrowed));
        }
        ("succeeded", []) => Some(is(&["succeeded"])?),
        ("failed", []) => Some(is(&["failed"])?),
        ("completed", []) => Some(is(&["succeeded", "failed", "timeout", "abandoned", "canceled"])?),
        ("task_status" | "task_state", [Value::String(name)]) => {
            let route = scope.task.as_ref().map_or(0, |task| task.route);
            Some(Value::from(scope.statuses.of(name, route)))
        }
        ("json", [Value::String(text)]) => json(text),
        ("zip", lists) => zip(lists),
        ("len", [value]) => length(value),
        ("str", [value]) => string(value),
        ("int", [value]) => integer(value),
        ("float", [value]) => float(value),
        ("bool", [value]) => Some(Value::Bool(value.is_truthy())),
        ("abs", [Value::Int(number)]) => number.checked_abs().map(Value::Int),
        _ => None,
    };
    value.map(Cow::Owned).ok_or(Fault::Unsure)
}

/// Calls a method; `None` where it is left to yaql.
pub(super) fn method(receiver: &Value, name: &str, values: &[Value]) -> Option<Value> {
    match (receiver, name, values) {
        (Value::Map(map), "get", [Value::String(key)]) => Some(map.get(key).cloned().unwrap_or_default()),
        (Value::Map(map), "get", [Value::String(key), default]) => {
            Some(map.get(key).unwrap_or(default).clone())
        }
        (Value::Map(map), "containsKey", [Value::String(key)]) => Some(Value::Bool(map.contains_key(key))),
        (receiver, "len", []) => length(receiver),
        (list @ Value::List(_), "contains", [value]) => contains(list, value).map(Value::Bool),
        // Python knows other letters than Rust outside of ASCII.
        (Value::String(text), "toUpper", []) if text.is_ascii() => Some(text.to_ascii_uppercase().into()),
        (Value::String(text), "toLower", []) if text.is_ascii() => Some(text.to_ascii_lowercase().into()),
        (Value::String(text), "split", [Value::String(separator)]) if !separator.is_empty() => {
            Some(Value::List(text.split(separator.as_str()).map(Value::from).collect()))
        }
        (Value::String(text), "replace", [Value::String(old), Value::String(new)]) if !old.is_empty() => {
            Some(text.replace(old.as_str(), new).into())
        }
        (Value::List(items), "join", [Value::String(separator)]) => joined(items, separator),
        _ => None,
    }
}

/// `ctx()`: all variables, or one of them.
///
/// # Errors
/// The variable is undefined, or the call is left to yaql.
pub(super) fn variable<'a>(scope: &'a Scope, values: &[Value]) -> ValueResult<'a> {
    match values {
        [] => Ok(Cow::Owned(Value::Map(scope.public_variables()))),
        [Value::String(name)] if !name.is_empty() && !name.starts_with("__") => {
            let undefined = || format!("VariableUndefinedError: The variable \"{name}\" is undefined.");
            scope.variables().get(name).map(Cow::Borrowed).ok_or_else(|| Fault::Failed(undefined()))
        }
        _ => Err(Fault::Unsure),
    }
}

/// `item()`: the item, or one of its names.
///
/// # Errors
/// The item has no such name, or the call is left to yaql.
pub(super) fn item_of<'a>(scope: &'a Scope, values: &[Value]) -> ValueResult<'a> {
    let item = scope.item.as_ref();
    match values {
        [] => Ok(item.map_or(Cow::Owned(Value::Null), Cow::Borrowed)),
        [Value::String(key)] if !key.is_empty() => match item {
            Some(map @ Value::Map(_)) => entry(Cow::Borrowed(map), key).map_err(|_| {
                let message = "ExpressionEvaluationException: Item does not have key";
                Fault::Failed(format!("{message} \"{key}\"."))
            }),
            _ => {
                let message = "ExpressionEvaluationException: Item is not type of collections.abc.Mapping.";
                Err(Fault::Failed(message.to_owned()))
            }
        },
        _ => Err(Fault::Unsure),
    }
}

/// The value of a JSON text; Python also reads numbers that this crate cannot keep.
pub(super) fn json(text: &str) -> Option<Value> {
    let value = Value::from_json(text.as_bytes()).ok()?;
    is_exact(&value, 0).then_some(value)
}

/// Whether no number of a value may have lost digits.
fn is_exact(value: &Value, depth: usize) -> bool {
    match value {
        Value::Float(number) => number.abs() < 9.0e15,
        Value::List(items) => depth < VALUE_DEPTH_MAX && items.iter().all(|item| is_exact(item, depth + 1)),
        Value::Map(map) => depth < VALUE_DEPTH_MAX && map.iter().all(|(_, value)| is_exact(value, depth + 1)),
        _ => true,
    }
}

/// Lists side by side, as long as the longest; a null counts as an empty list.
pub(super) fn zip(lists: &[Value]) -> Option<Value> {
    let lists: Option<Vec<&[Value]>> = lists
        .iter()
        .map(|list| match list {
            Value::Null => Some(&[][..]),
            list => list.as_list(),
        })
        .collect();
    let lists = lists?;
    if let [list] = lists.as_slice() {
        return Some(Value::List(list.to_vec()));
    }
    let length = lists.iter().map(|list| list.len()).max().unwrap_or(0);
    let row = |at: usize| lists.iter().map(|list| list.get(at).cloned().unwrap_or_default()).collect();
    Some(Value::List((0..length).map(|at| Value::List(row(at))).collect()))
}

fn length(value: &Value) -> Option<Value> {
    let length = match value {
        Value::String(text) => text.chars().count(),
        Value::List(items) => items.len(),
        Value::Map(map) => map.len(),
        _ => return None,
    };
    i64::try_from(length).ok().map(Value::Int)
}

/// `str`: lists and objects are tuples and frozen dicts to yaql, so that only yaql knows their texts.
fn string(value: &Value) -> Option<Value> {
    match value {
        Value::Null | Value::Bool(_) => Some(value.to_json().into()),
        Value::Int(_) | Value::Float(_) | Value::String(_) => Some(text_of(value).into()),
        Value::List(_) | Value::Map(_) => None,
    }
}

fn integer(value: &Value) -> Option<Value> {
    match value {
        Value::Null => Some(Value::Int(0)),
        Value::Bool(value) => Some(Value::Int(i64::from(*value))),
        Value::Int(number) => Some(Value::Int(*number)),
        Value::Float(number) if number.abs() < 9.0e15 => Some(Value::Int(number.trunc() as i64)),
        Value::String(text) if text.is_ascii() => i64::try_from(int_of_text(text, 10)?).ok().map(Value::Int),
        _ => None,
    }
}

fn float(value: &Value) -> Option<Value> {
    match value {
        Value::Null => Some(Value::Float(0.0)),
        Value::Int(number) => Some(Value::Float(*number as f64)),
        Value::Float(number) => Some(Value::Float(*number)),
        Value::Bool(value) => Some(Value::Float(f64::from(*value))),
        Value::String(text) if text.is_ascii() => {
            float_of_text(text).filter(|number| number.is_finite()).map(Value::Float)
        }
        _ => None,
    }
}

fn joined(items: &[Value], separator: &str) -> Option<Value> {
    let parts: Option<Vec<Value>> = items.iter().map(string).collect();
    let parts: Vec<String> = parts?.iter().filter_map(Value::as_str).map(str::to_owned).collect();
    Some(parts.join(separator).into())
}
