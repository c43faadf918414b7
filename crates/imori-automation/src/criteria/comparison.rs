//! Python's comparisons of the values that JSON has.

use std::cmp::Ordering;

use super::outcome::shown;
use crate::value::Value;

/// Python's `==`: numbers and booleans are equal by their number, objects in any order of their keys.
pub(super) fn equal(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::String(left), Value::String(right)) => left == right,
        (Value::Null, Value::Null) => true,
        (Value::List(left), Value::List(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| equal(left, right))
        }
        (Value::Map(left), Value::Map(right)) => {
            left.len() == right.len()
                && left.iter().all(|(key, left)| right.get(key).is_some_and(|right| equal(left, right)))
        }
        _ => match (Number::of(left), Number::of(right)) {
            (Some(left), Some(right)) => left.order(right) == Some(Ordering::Equal),
            _ => false,
        },
    }
}

/// Python's order of two values; `None` where a number is not comparable.
///
/// # Errors
/// Values of these types have no order.
pub(super) fn order(left: &Value, right: &Value) -> Result<Option<Ordering>, String> {
    match (left, right) {
        (Value::String(left), Value::String(right)) => Ok(Some(left.cmp(right))),
        (Value::List(lefts), Value::List(rights)) => {
            match lefts.iter().zip(rights).find(|(left, right)| !equal(left, right)) {
                Some((left, right)) => order(left, right),
                None => Ok(Some(lefts.len().cmp(&rights.len()))),
            }
        }
        _ => match (Number::of(left), Number::of(right)) {
            (Some(left), Some(right)) => Ok(left.order(right)),
            _ => Err(format!(
                "{} and {} have no order; compare two numbers or two texts",
                described(left),
                described(right)
            )),
        },
    }
}

/// Python's `in`: a text in a text, a value in a list, or a key in an object.
///
/// # Errors
/// The container holds nothing, or cannot hold such an item.
pub(super) fn contains(container: &Value, item: &Value) -> Result<bool, String> {
    match (container, item) {
        (Value::String(text), Value::String(part)) => Ok(text.contains(part.as_str())),
        (Value::List(items), _) => Ok(items.iter().any(|known| equal(known, item))),
        (Value::Map(map), Value::String(key)) => Ok(map.contains_key(key)),
        (Value::Map(_), Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_)) => Ok(false),
        (Value::String(_) | Value::Map(_), _) => {
            Err(format!("{} cannot contain {}; look for a text", described(container), described(item)))
        }
        _ => Err(format!("{} contains nothing; use a text, a list or an object", described(container))),
    }
}

/// A value with its type, for an error.
pub(super) fn described(value: &Value) -> String {
    match value {
        Value::Null => "nothing (null)".to_owned(),
        other => format!("{} ({})", shown(other), other.type_name()),
    }
}

#[derive(Clone, Copy)]
enum Number {
    Int(i64),
    Float(f64),
}

impl Number {
    fn of(value: &Value) -> Option<Number> {
        match value {
            Value::Bool(value) => Some(Number::Int(i64::from(*value))),
            Value::Int(number) => Some(Number::Int(*number)),
            Value::Float(number) => Some(Number::Float(*number)),
            _ => None,
        }
    }

    fn order(self, other: Number) -> Option<Ordering> {
        match (self, other) {
            (Number::Int(left), Number::Int(right)) => Some(left.cmp(&right)),
            (Number::Float(left), Number::Float(right)) => left.partial_cmp(&right),
            (Number::Int(left), Number::Float(right)) => exact_order(left, right),
            (Number::Float(left), Number::Int(right)) => exact_order(right, left).map(Ordering::reverse),
        }
    }
}

/// The order without a conversion that would round.
fn exact_order(whole: i64, float: f64) -> Option<Ordering> {
    /// 2 to the 63rd, the first number above all of 64 bits.
    const BEYOND: f64 = 9_223_372_036_854_775_808.0;
    if float.is_nan() {
        return None;
    }
    if float >= BEYOND {
        return Some(Ordering::Less);
    }
    if float < -BEYOND {
        return Some(Ordering::Greater);
    }
    let cut = float.trunc();
    Some(whole.cmp(&(cut as i64)).then_with(|| cut.total_cmp(&float)))
}
