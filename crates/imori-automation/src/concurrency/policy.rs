//! The parameters of StackStorm's policies `action.concurrency` and `action.concurrency.attr`.

use std::fmt;

use crate::limits::CONCURRENCY_ATTRIBUTES_MAX;
use crate::value::{Map, Value};

/// The limit on running executions of an action, and the treatment of one more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConcurrencyPolicy {
    /// Executions at a time.
    pub threshold: u32,
    /// The treatment of one more.
    pub action: Excess,
    /// Parameters by whose values executions are counted; without any, all of the action are counted together.
    pub attributes: Vec<String>,
}

/// The treatment of an execution above the threshold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Excess {
    /// It waits until another one ends.
    Delay,
    /// It is canceled.
    Cancel,
}

/// Why parameters make no policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConcurrencyPolicyError(String);

const NAMES: [&str; 3] = ["threshold", "action", "attributes"];

impl ConcurrencyPolicy {
    /// Reads `threshold`, `action` (`delay` or `cancel`) and `attributes`, a list of names of parameters.
    ///
    /// # Errors
    /// A parameter is absent, wrong or unknown.
    pub fn read(parameters: &Map) -> Result<ConcurrencyPolicy, ConcurrencyPolicyError> {
        if let Some((name, _)) = parameters.iter().find(|(name, _)| !NAMES.contains(name)) {
            return Err(wrong(format!("parameter `{name}` is unknown; use one of `{}`", NAMES.join("`, `"))));
        }
        let value = |name: &str| parameters.get(name).filter(|value| !value.is_null());
        let threshold =
            value("threshold").ok_or_else(|| wrong("`threshold` is missing; the policy needs it"))?;
        let number = threshold.as_int().and_then(|number| u32::try_from(number).ok());
        let threshold =
            number.ok_or_else(|| wrong(format!("`threshold` is {threshold}; use a whole number")))?;
        let action = match value("action").map(|value| (value, value.as_str())) {
            None | Some((_, Some("delay"))) => Excess::Delay,
            Some((_, Some("cancel"))) => Excess::Cancel,
            Some((value, _)) => return Err(wrong(format!("`action` is {value}; use `delay` or `cancel`"))),
        };
        let attributes = value("attributes").map_or(Ok(Vec::new()), attributes)?;
        Ok(ConcurrencyPolicy { threshold, action, attributes })
    }

    /// Identifies the executions that are counted together with one of these parameters: the values of the attributes,
    /// as JSON. Absent parameters do not count, as in StackStorm.
    pub(super) fn key(&self, parameters: &Map) -> String {
        let attributes = self.attributes.iter();
        let values: Map = attributes.filter_map(|name| Some((name, parameters.get(name)?.clone()))).collect();
        Value::from(values).to_json()
    }
}

fn attributes(value: &Value) -> Result<Vec<String>, ConcurrencyPolicyError> {
    let names = value.as_list().filter(|names| names.len() <= CONCURRENCY_ATTRIBUTES_MAX);
    let name = |name: &Value| name.as_str().filter(|name| !name.is_empty()).map(str::to_owned);
    names.and_then(|names| names.iter().map(name).collect()).ok_or_else(|| {
        wrong(format!(
            "`attributes` is {value}; use a list of {CONCURRENCY_ATTRIBUTES_MAX} names of parameters at most"
        ))
    })
}

fn wrong(message: impl Into<String>) -> ConcurrencyPolicyError {
    ConcurrencyPolicyError(message.into())
}

impl fmt::Display for ConcurrencyPolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ConcurrencyPolicyError {}
