//! Why a value is no rule.

use std::fmt;

use crate::criteria::CriteriaError;
use crate::value::{Map, Value};

/// An error of a rule and where in it it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleError {
    /// The keys from the rule down to what is wrong, to find its line; numbers from 0 for items of lists.
    pub path: Vec<String>,
    /// What is wrong and what to do.
    pub message: String,
}

impl RuleError {
    pub(super) fn new(path: &[&str], message: impl Into<String>) -> RuleError {
        RuleError { path: path.iter().map(ToString::to_string).collect(), message: message.into() }
    }

    pub(super) fn below(mut self, path: &[&str]) -> RuleError {
        self.path.splice(0..0, path.iter().map(ToString::to_string));
        self
    }

    pub(super) fn of_criteria(error: CriteriaError, path: &[&str]) -> RuleError {
        RuleError { path: error.path, message: error.message }.below(path)
    }
}

/// ``rule criteria `trigger.x`: MESSAGE``, or ``rule `action.ref`: MESSAGE``.
impl fmt::Display for RuleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.path.as_slice() {
            [] => write!(f, "rule: {}", self.message),
            [first, key, ..] if first == "criteria" => write!(f, "rule criteria `{key}`: {}", self.message),
            path => write!(f, "rule `{}`: {}", path.join("."), self.message),
        }
    }
}

impl std::error::Error for RuleError {}

/// Reads the fields of an object; `null` counts as a field that is left out.
pub(super) struct Fields<'v> {
    map: &'v Map,
    path: &'v [&'v str],
}

impl<'v> Fields<'v> {
    /// The fields of an object that has no others than these.
    pub(super) fn of(
        map: &'v Map,
        path: &'v [&'v str],
        known: Option<&[&str]>,
    ) -> Result<Fields<'v>, RuleError> {
        let unknown = known.and_then(|known| map.iter().map(|(key, _)| key).find(|key| !known.contains(key)));
        match (unknown, known) {
            (Some(key), Some(known)) => {
                let message = format!("key `{key}` is unknown; use one of {}", known.join(", "));
                Err(RuleError::new(&[path, &[key]].concat(), message))
            }
            _ => Ok(Fields { map, path }),
        }
    }

    pub(super) fn value(&self, key: &str) -> Option<&'v Value> {
        self.map.get(key).filter(|value| !value.is_null())
    }

    pub(super) fn error(&self, key: &str, message: impl Into<String>) -> RuleError {
        RuleError::new(&[self.path, &[key]].concat(), message)
    }

    pub(super) fn text(&self, key: &str) -> Result<Option<&'v str>, RuleError> {
        self.typed(key, Value::as_str, "text")
    }

    pub(super) fn required_text(&self, key: &str) -> Result<&'v str, RuleError> {
        let missing = || RuleError::new(self.path, format!("there is no `{key}`; add it"));
        self.text(key)?.filter(|text| !text.is_empty()).ok_or_else(missing)
    }

    pub(super) fn map(&self, key: &str) -> Result<Option<&'v Map>, RuleError> {
        self.typed(key, Value::as_map, "object")
    }

    pub(super) fn required_map(&self, key: &str) -> Result<&'v Map, RuleError> {
        self.map(key)?.ok_or_else(|| RuleError::new(self.path, format!("there is no `{key}`; add it")))
    }

    pub(super) fn list(&self, key: &str) -> Result<Option<&'v [Value]>, RuleError> {
        self.typed(key, Value::as_list, "list")
    }

    pub(super) fn bool(&self, key: &str) -> Result<Option<bool>, RuleError> {
        self.typed(key, Value::as_bool, "boolean")
    }

    /// A whole number from 1 to the limit.
    pub(super) fn count(&self, key: &str, max: i64) -> Result<Option<u32>, RuleError> {
        let Some(number) = self.typed(key, Value::as_int, "whole number")? else { return Ok(None) };
        match u32::try_from(number) {
            Ok(count) if (1..=max).contains(&number) => Ok(Some(count)),
            _ => Err(self.error(key, format!("{number} is out of range; use a number from 1 to {max}"))),
        }
    }

    fn typed<T>(
        &self,
        key: &str,
        read: impl FnOnce(&'v Value) -> Option<T>,
        kind: &str,
    ) -> Result<Option<T>, RuleError> {
        let Some(value) = self.value(key) else { return Ok(None) };
        let wrong = || {
            self.error(
                key,
                format!("the value is {} {}, no {kind}; correct it", article(value), value.type_name()),
            )
        };
        read(value).map(Some).ok_or_else(wrong)
    }
}

fn article(value: &Value) -> &'static str {
    match value {
        Value::Int(_) | Value::List(_) | Value::Map(_) => "an",
        _ => "a",
    }
}
