//! Arguments of a filter, test or method, bound to names as Python does.

use minijinja::Error;
use minijinja::value::{Kwargs, Value};

use super::values::{Number, failure, text, type_name};

/// The arguments of a call.
#[derive(Debug)]
pub(crate) struct Arguments {
    function: &'static str,
    positional: Vec<Value>,
    named: Vec<(String, Value)>,
}

impl Arguments {
    /// Splits the values of a call; `function` is its name for errors.
    pub(crate) fn new(function: &'static str, values: &[Value]) -> Arguments {
        let mut arguments = Arguments { function, positional: Vec::new(), named: Vec::new() };
        for value in values {
            if !value.is_kwargs() {
                arguments.positional.push(value.clone());
            } else if let Ok(named) = Kwargs::try_from(value.clone()) {
                for name in named.args() {
                    arguments.named.push((name.to_owned(), named.peek(name).unwrap_or_default()));
                }
            }
        }
        arguments
    }

    /// The arguments in the order of `names`; the first `required` of them must be there.
    ///
    /// # Errors
    /// There is one too many, one of another name, or one is missing.
    pub(crate) fn bind<const N: usize>(
        self,
        names: [&str; N],
        required: usize,
    ) -> Result<[Option<Value>; N], Error> {
        let function = self.function;
        let given = self.positional.len();
        let mut bound: [Option<Value>; N] = std::array::from_fn(|_| None);
        let mut slots = bound.iter_mut();
        for value in self.positional {
            *slots.next().ok_or_else(|| {
                failure(format!("{function}() takes {N} arguments but {given} were given"))
            })? = Some(value);
        }
        for (name, value) in self.named {
            let slot = names.iter().position(|known| *known == name).and_then(|at| bound.get_mut(at));
            match slot {
                None => {
                    return Err(failure(format!("{function}() got an unexpected keyword argument '{name}'")));
                }
                Some(Some(_)) => {
                    return Err(failure(format!("{function}() got multiple values for argument '{name}'")));
                }
                Some(slot) => *slot = Some(value),
            }
        }
        for (slot, name) in bound.iter().zip(names).take(required) {
            if slot.is_none() {
                return Err(failure(format!(
                    "{function}() missing 1 required positional argument: '{name}'"
                )));
            }
        }
        Ok(bound)
    }

    /// Splits off the first positional argument, if there is one, and gives the others.
    pub(crate) fn split_first(mut self) -> (Option<Value>, Arguments) {
        let first = (!self.positional.is_empty()).then(|| self.positional.remove(0));
        (first, self)
    }

    /// All arguments: those by position, then those by name.
    pub(crate) fn into_parts(self) -> (Vec<Value>, Vec<(String, Value)>) {
        (self.positional, self.named)
    }
}

/// The text of a value that Python takes for a text by `str`.
///
/// # Errors
/// As [`text`].
pub(crate) fn soft_text(value: Option<&Value>) -> Result<String, Error> {
    value.map_or_else(|| Ok(String::new()), text)
}

/// A text that must be one.
///
/// # Errors
/// The value has another type.
pub(crate) fn strict_text(value: &Value) -> Result<&str, Error> {
    value.as_str().ok_or_else(|| failure(format!("expected a str, got '{}'", type_name(value))))
}

/// A whole number that must be one.
///
/// # Errors
/// The value has another type.
pub(crate) fn strict_int(value: &Value) -> Result<i128, Error> {
    match Number::of(value) {
        Some(Number::Int(number)) => Ok(number),
        _ => Err(failure(format!("'{}' object cannot be interpreted as an integer", type_name(value)))),
    }
}

/// A whole number, or what stands for it where the argument is missing.
///
/// # Errors
/// The value has another type.
pub(crate) fn int_or(value: Option<&Value>, default: i128) -> Result<i128, Error> {
    value.map_or(Ok(default), strict_int)
}

/// Whether an argument is given and true.
pub(crate) fn is_set(value: Option<&Value>) -> bool {
    value.is_some_and(Value::is_true)
}

/// Start and end of a part of `len` items, as Python counts them: from the end where they are negative.
///
/// # Errors
/// One of them is no whole number.
pub(crate) fn bounds(
    len: usize,
    start: Option<&Value>,
    stop: Option<&Value>,
) -> Result<(usize, usize), Error> {
    let of = |value: Option<&Value>, default| -> Result<usize, Error> {
        let at = int_or(value.filter(|value| !value.is_none()), default)?;
        let at = if at < 0 { at + len as i128 } else { at };
        Ok(usize::try_from(at.max(0)).unwrap_or(usize::MAX).min(len))
    };
    let stop = of(stop, len as i128)?;
    // A start beyond the end finds nothing, not even an empty text.
    let start = match start.filter(|value| !value.is_none()) {
        Some(value) if strict_int(value)? > len as i128 => usize::MAX,
        value => of(value, 0)?,
    };
    Ok((start, stop))
}
