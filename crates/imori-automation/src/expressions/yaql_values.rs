//! Operators of YAQL on values. `None` where only yaql knows the value or the error.

use std::borrow::Cow;
use std::cmp::Ordering;

use crate::limits::VALUE_DEPTH_MAX;
use crate::value::Value;

/// Why there is no value.
#[derive(Debug, Clone, PartialEq)]
pub enum Fault {
    /// Only yaql knows the value or the error.
    Unsure,
    /// An object has no such key.
    NoKey(String),
    /// An error of a function of orquesta, with the name of its class.
    Failed(String),
}

/// A value, or why there is none.
pub(super) type ValueResult<'a> = Result<Cow<'a, Value>, Fault>;

/// Whether a list has a value, or a text another one.
pub(super) fn contains(collection: &Value, value: &Value) -> Option<bool> {
    match (collection, value) {
        (Value::List(items), value) => {
            let mut found = false;
            for item in items {
                found |= equal(item, value)?;
            }
            Some(found)
        }
        (Value::String(text), Value::String(part)) => Some(text.contains(part.as_str())),
        _ => None,
    }
}

/// The value of a key.
pub(super) fn entry<'a>(map: Cow<'a, Value>, key: &str) -> ValueResult<'a> {
    let found = match map {
        Cow::Borrowed(map) => map.get(key).map(Cow::Borrowed),
        Cow::Owned(map) => map.get(key).cloned().map(Cow::Owned),
    };
    found.ok_or_else(|| Fault::NoKey(key.to_owned()))
}

/// Whether Python finds two values equal: a boolean counts as a number.
pub(super) fn equal(left: &Value, right: &Value) -> Option<bool> {
    equal_nested(left, right, 0)
}

fn equal_nested(left: &Value, right: &Value, depth: usize) -> Option<bool> {
    if depth > VALUE_DEPTH_MAX {
        return None;
    }
    match (left, right) {
        (Value::Null, Value::Null) => Some(true),
        (Value::String(left), Value::String(right)) => Some(left == right),
        (Value::List(left), Value::List(right)) => {
            let mut is_equal = left.len() == right.len();
            for (left, right) in left.iter().zip(right) {
                is_equal &= equal_nested(left, right, depth + 1)?;
            }
            Some(is_equal)
        }
        (Value::Map(left), Value::Map(right)) => {
            let mut is_equal = left.len() == right.len();
            for (key, value) in left.iter() {
                is_equal &= match right.get(key) {
                    Some(other) => equal_nested(value, other, depth + 1)?,
                    None => false,
                };
            }
            Some(is_equal)
        }
        (left, right) => match (number(left), number(right)) {
            (Some(left), Some(right)) => Some(ordering(left, right)? == Ordering::Equal),
            _ => Some(false),
        },
    }
}

/// A number or a boolean.
#[derive(Clone, Copy)]
enum Number {
    Int(i64),
    Float(f64),
}

fn number(value: &Value) -> Option<Number> {
    match value {
        Value::Bool(value) => Some(Number::Int(i64::from(*value))),
        Value::Int(number) => Some(Number::Int(*number)),
        Value::Float(number) => Some(Number::Float(*number)),
        _ => None,
    }
}

/// The order of two numbers; a float and a whole number too large for one are left to yaql.
fn ordering(left: Number, right: Number) -> Option<Ordering> {
    let exact = |number: i64| (number.unsigned_abs() < 1 << 53).then_some(number as f64);
    match (left, right) {
        (Number::Int(left), Number::Int(right)) => Some(left.cmp(&right)),
        (Number::Int(left), Number::Float(right)) => exact(left)?.partial_cmp(&right),
        (Number::Float(left), Number::Int(right)) => left.partial_cmp(&exact(right)?),
        (Number::Float(left), Number::Float(right)) => left.partial_cmp(&right),
    }
}

/// `<`, `>`, `<=` and `>=`: null is less than all other values, and a boolean is no number here.
pub(super) fn compare(sign: &str, left: &Value, right: &Value) -> Option<bool> {
    let order = match (left, right) {
        (Value::Null, Value::Null) => Ordering::Equal,
        (Value::Null, _) => Ordering::Less,
        (_, Value::Null) => Ordering::Greater,
        (Value::String(left), Value::String(right)) => left.cmp(right),
        (Value::Bool(_), _) | (_, Value::Bool(_)) => return None,
        (left, right) => ordering(number(left)?, number(right)?)?,
    };
    Some(match sign {
        "<" => order.is_lt(),
        ">" => order.is_gt(),
        "<=" => order.is_le(),
        _ => order.is_ge(),
    })
}

/// `+`, `-`, `*`, `/` and `mod`.
pub(super) fn sum(sign: &str, left: &Value, right: &Value) -> Option<Value> {
    match (sign, left, right) {
        ("+", Value::String(left), Value::String(right)) => Some(Value::String(format!("{left}{right}"))),
        ("+", Value::List(left), Value::List(right)) => {
            Some(Value::List(left.iter().chain(right).cloned().collect()))
        }
        ("+", Value::Map(left), Value::Map(right)) => {
            let mut map = left.clone();
            for (key, value) in right.iter() {
                map.insert(key, value.clone());
            }
            Some(Value::Map(map))
        }
        (sign, Value::Int(left), Value::Int(right)) => match sign {
            "+" => left.checked_add(*right),
            "-" => left.checked_sub(*right),
            "*" => left.checked_mul(*right),
            // Python rounds down, also below zero.
            "/" => {
                let rest = left.checked_rem(*right)?;
                let is_rounded_up = rest != 0 && (rest < 0) != (*right < 0);
                left.checked_div(*right)?.checked_sub(i64::from(is_rounded_up))
            }
            "mod" => {
                let rest = left.checked_rem(*right)?;
                let has_other_sign = rest != 0 && (rest < 0) != (*right < 0);
                if has_other_sign { rest.checked_add(*right) } else { Some(rest) }
            }
            _ => None,
        }
        .map(Value::Int),
        (sign, Value::Int(_) | Value::Float(_), Value::Int(_) | Value::Float(_)) => {
            let (left, right) = (left.as_number()?, right.as_number()?);
            let value = match sign {
                "+" => left + right,
                "-" => left - right,
                "*" => left * right,
                "/" if right != 0.0 => left / right,
                _ => return None,
            };
            value.is_finite().then_some(Value::Float(value))
        }
        _ => None,
    }
}
