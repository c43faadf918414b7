//! Jinja's tests (`x is test`) where they differ from the template engine's.

use std::cmp::Ordering;

use minijinja::value::{Value, ValueKind};
use minijinja::{Error, ErrorKind, State};

use crate::python::arguments::Arguments;
use crate::python::values::{Number, compare, failure, is_list, type_name};

/// A test of one value that has to be defined for its result.
pub(super) fn of_value(arguments: Arguments, test: impl Fn(&Value) -> bool) -> Result<Value, Error> {
    let [value] = arguments.bind(["value"], 1)?;
    Ok(Value::from(test(&value.unwrap_or_default())))
}

/// `is number`: also a boolean is one.
pub(super) fn is_number(value: &Value) -> bool {
    Number::of(value).is_some()
}

/// `is sequence`: what has a length and items.
pub(super) fn is_sequence(value: &Value) -> bool {
    matches!(value.kind(), ValueKind::String | ValueKind::Map) || is_list(value)
}

/// `is iterable`.
pub(super) fn is_iterable(arguments: Arguments) -> Result<Value, Error> {
    let [value] = arguments.bind(["value"], 1)?;
    let value = value.unwrap_or_default();
    match value.kind() {
        ValueKind::Undefined => Err(Error::from(ErrorKind::UndefinedError)),
        kind => Ok(Value::from(matches!(
            kind,
            ValueKind::String | ValueKind::Seq | ValueKind::Map | ValueKind::Iterable
        ))),
    }
}

/// `is filter` and `is test`: whether it is the name of one.
pub(super) fn is_known(
    state: &State,
    arguments: Arguments,
    known: fn(&State, &str) -> bool,
) -> Result<Value, Error> {
    let [value] = arguments.bind(["value"], 1)?;
    Ok(Value::from(value.as_ref().and_then(Value::as_str).is_some_and(|name| known(state, name))))
}

/// `is callable`: what can be called, such as a macro.
pub(super) fn is_callable(value: &Value) -> bool {
    value.kind() == ValueKind::Plain
}

/// `is lower` and `is upper`.
pub(super) fn is_case(arguments: Arguments, upper: bool) -> Result<Value, Error> {
    let [value] = arguments.bind(["value"], 1)?;
    let text = crate::python::values::text(&value.unwrap_or_default())?;
    let is_wanted = |c: char| if upper { c.is_uppercase() } else { c.is_lowercase() };
    let is_other = |c: char| if upper { c.is_lowercase() } else { c.is_uppercase() };
    Ok(Value::from(text.chars().any(is_wanted) && !text.chars().any(is_other)))
}

/// `is odd`, `is even` and `is divisibleby`: whether the rest of a division is this one.
pub(super) fn has_rest(value: &Value, divisor: &Value, rest: f64) -> Result<Value, Error> {
    let wrong = || {
        let (a, b) = (type_name(value), type_name(divisor));
        failure(format!("unsupported operand type(s) for %: '{a}' and '{b}'"))
    };
    if value.is_undefined() || divisor.is_undefined() {
        return Err(Error::from(ErrorKind::UndefinedError));
    }
    match (Number::of(value).ok_or_else(wrong)?, Number::of(divisor).ok_or_else(wrong)?) {
        (_, Number::Int(0)) => Err(failure("integer modulo by zero")),
        (Number::Int(a), Number::Int(b)) => {
            Ok(Value::from(a.checked_rem_euclid(b).unwrap_or(0) as f64 == rest))
        }
        (_, b) if b.as_float() == 0.0 => Err(failure("float modulo")),
        (a, b) => Ok(Value::from(a.as_float().rem_euclid(b.as_float()) == rest)),
    }
}

/// `is lt` and the other comparisons.
pub(super) fn is_ordered(
    arguments: Arguments,
    operator: &str,
    holds: fn(Ordering) -> bool,
) -> Result<Value, Error> {
    let [a, b] = arguments.bind(["a", "b"], 2)?;
    let (a, b) = (a.unwrap_or_default(), b.unwrap_or_default());
    Ok(Value::from(holds(compare(&a, &b, operator)?)))
}

/// `is eq` and `is ne`.
pub(super) fn is_equal(arguments: Arguments, wanted: bool) -> Result<Value, Error> {
    let [a, b] = arguments.bind(["a", "b"], 2)?;
    let (a, b) = (a.unwrap_or_default(), b.unwrap_or_default());
    match a.is_undefined() || b.is_undefined() {
        true => Err(Error::from(ErrorKind::UndefinedError)),
        false => Ok(Value::from((a == b) == wanted)),
    }
}

/// `is in`.
pub(super) fn is_in(state: &mut State, arguments: Arguments) -> Result<Value, Error> {
    let [item, list] = arguments.bind(["item", "list"], 2)?;
    let (item, list) = (item.unwrap_or_default(), list.unwrap_or_default());
    if item.is_undefined() || list.is_undefined() {
        return Err(Error::from(ErrorKind::UndefinedError));
    }
    match (list.kind(), item.as_str()) {
        (ValueKind::String, Some(part)) => {
            Ok(Value::from(list.as_str().is_some_and(|text| text.contains(part))))
        }
        (ValueKind::String, None) => {
            let kind = type_name(&item);
            Err(failure(format!("'in <string>' requires string as left operand, not {kind}")))
        }
        (ValueKind::Seq | ValueKind::Map | ValueKind::Iterable, _) => {
            Ok(Value::from(crate::python::values::items(state, &list)?.contains(&item)))
        }
        _ => Err(failure(format!("argument of type '{}' is not iterable", type_name(&list)))),
    }
}
