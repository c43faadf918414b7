//! Python's methods of lists, tuples, dicts and numbers.

use minijinja::value::{Value, ValueKind};
use minijinja::{Error, ErrorKind, State};

use super::arguments::{Arguments, bounds};
use super::objects::{View, ViewKind};
use super::text_methods::text_method;
use super::values::{Number, failure, int_value, is_list, items, type_name};

/// Calls a method of a value.
///
/// # Errors
/// Python has no such method, or the call fails.
pub(crate) fn method(state: &mut State, value: &Value, name: &str, values: &[Value]) -> Result<Value, Error> {
    match value.kind() {
        ValueKind::String => text_method(state, value.as_str().unwrap_or_default(), name, values),
        ValueKind::Map => dict_method(state, value, name, values),
        _ if is_list(value) => list_method(state, value, name, values),
        ValueKind::Number | ValueKind::Bool => number_method(value, name, values),
        ValueKind::Undefined => Err(Error::from(ErrorKind::UndefinedError)),
        _ => Err(unknown(value, name)),
    }
}

/// The error of a method that Python does not have.
fn unknown(value: &Value, name: &str) -> Error {
    Error::new(ErrorKind::UnknownMethod, format!("'{} object' has no attribute '{name}'", type_name(value)))
}

/// The error of a method that would change its value.
fn read_only(value: &Value, name: &str) -> Error {
    let kind = type_name(value);
    failure(format!(
        "`{name}` would change a {kind}, and values of a template do not change; make a new {kind}"
    ))
}

fn dict_method(state: &State, value: &Value, name: &str, values: &[Value]) -> Result<Value, Error> {
    let view = |kind| -> Result<Value, Error> {
        let keys = items(state, value)?;
        let of = |key: &Value| value.get_item(key);
        let items: Result<Vec<Value>, Error> = match kind {
            ViewKind::Keys => Ok(keys),
            ViewKind::Values => keys.iter().map(of).collect(),
            ViewKind::Items => keys.iter().map(|key| Ok(pair(key.clone(), of(key)?))).collect(),
        };
        Ok(Value::from_object(View { kind, items: items? }))
    };
    match name {
        "get" => {
            let [key, default] = Arguments::new("get", values).bind(["key", "default"], 1)?;
            let found = value.get_item(&key.unwrap_or_default())?;
            Ok(if found.is_undefined() { default.unwrap_or_else(|| Value::from(())) } else { found })
        }
        "keys" | "values" | "items" | "copy" => {
            let [] = Arguments::new("method", values).bind([], 0)?;
            match name {
                "keys" => view(ViewKind::Keys),
                "values" => view(ViewKind::Values),
                "items" => view(ViewKind::Items),
                _ => Ok(value.clone()),
            }
        }
        "update" | "pop" | "popitem" | "setdefault" | "clear" => Err(read_only(value, name)),
        _ => Err(unknown(value, name)),
    }
}

fn list_method(state: &State, value: &Value, name: &str, values: &[Value]) -> Result<Value, Error> {
    match name {
        "index" => {
            let [wanted, start, stop] =
                Arguments::new("index", values).bind(["value", "start", "stop"], 1)?;
            let wanted = wanted.unwrap_or_default();
            let all = items(state, value)?;
            let (start, stop) = bounds(all.len(), start.as_ref(), stop.as_ref())?;
            let at = (start..stop).find(|at| all.get(*at) == Some(&wanted));
            at.map(Value::from).ok_or_else(|| failure("the value is not in the list"))
        }
        "count" => {
            let [wanted] = Arguments::new("count", values).bind(["value"], 1)?;
            let wanted = wanted.unwrap_or_default();
            Ok(Value::from(items(state, value)?.iter().filter(|item| **item == wanted).count()))
        }
        "copy" if !value.is_tuple() => {
            let [] = Arguments::new("copy", values).bind([], 0)?;
            Ok(Value::from(items(state, value)?))
        }
        "append" | "extend" | "insert" | "remove" | "pop" | "clear" | "sort" | "reverse"
            if !value.is_tuple() =>
        {
            Err(read_only(value, name))
        }
        _ => Err(unknown(value, name)),
    }
}

fn number_method(value: &Value, name: &str, values: &[Value]) -> Result<Value, Error> {
    let [] = Arguments::new("method", values).bind([], 0)?;
    match (name, Number::of(value)) {
        ("bit_length", Some(Number::Int(number))) => {
            Ok(Value::from(128 - number.unsigned_abs().leading_zeros()))
        }
        ("conjugate", Some(Number::Int(number))) => Ok(int_value(number)),
        ("conjugate", Some(Number::Float(number))) => Ok(Value::from(number)),
        ("is_integer", Some(Number::Float(number))) => Ok(Value::from(number.fract() == 0.0)),
        _ => Err(unknown(value, name)),
    }
}

/// A tuple of two.
pub(crate) fn pair(first: Value, second: Value) -> Value {
    Value::from(minijinja::value::Tuple::from([first, second]))
}
