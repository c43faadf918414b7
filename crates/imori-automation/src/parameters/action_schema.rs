//! The schema of an action: its parameters override its runner's.

use super::ParameterError;
use super::schema::{Schema, parameters_schema};
use crate::value::{Map, Value};

/// The attributes of a runner's parameter that an action may change.
const OVERRIDABLE: [&str; 5] = ["default", "description", "enum", "immutable", "required"];

/// The parameters of a runner with those of an action merged into them, attribute by attribute.
pub fn merged_parameters(runner_parameters: &Map, action_parameters: &Map) -> Map {
    let mut merged = runner_parameters.clone();
    for (name, schema) in action_parameters.iter() {
        match (merged.get_mut(name), schema) {
            (Some(Value::Map(known)), Value::Map(schema)) => merge(known, schema),
            _ => {
                merged.insert(name, schema.clone());
            }
        }
    }
    merged
}

fn merge(known: &mut Map, changes: &Map) {
    for (key, change) in changes.iter() {
        match (known.get_mut(key), change) {
            (Some(Value::Map(known)), Value::Map(change)) => merge(known, change),
            // An empty object changes nothing, also where there is another value.
            (Some(_), Value::Map(change)) if change.is_empty() => {}
            _ => {
                known.insert(key, change.clone());
            }
        }
    }
}

/// Compiles the schema of the parameters of an action; `reference` is its name with its pack for the error.
///
/// # Errors
/// The action changes an attribute of a runner's parameter that it may not change, or the schema is wrong.
pub fn action_schema(
    reference: &str,
    runner_parameters: &Map,
    action_parameters: &Map,
) -> Result<Schema, ParameterError> {
    for (name, schema) in action_parameters.iter() {
        let Some(runner_schema) = runner_parameters.get(name) else { continue };
        for (attribute, value) in schema.as_map().into_iter().flat_map(Map::iter) {
            let same = runner_schema.get(attribute).unwrap_or(&Value::Null) == value;
            if !same && !OVERRIDABLE.contains(&attribute) {
                return Err(ParameterError::new(format!(
                    "The attribute \"{attribute}\" for the runner parameter \"{name}\" in action \"{reference}\" cannot be overridden."
                )));
            }
        }
    }
    let merged = merged_parameters(runner_parameters, action_parameters);
    Schema::compile(&Value::Map(parameters_schema(&merged, false)))
}

/// Refuses parameters that are immutable. An action is asked first, then its runner.
///
/// # Errors
/// One of the given parameters is immutable.
pub fn immutable_parameters(
    runner_parameters: &Map,
    action_parameters: &Map,
    given: &Map,
) -> Result<(), ParameterError> {
    let immutable = |parameters: &Map, name: &str| {
        let attribute = parameters.get(name).and_then(|schema| schema.get("immutable"));
        attribute.is_some_and(Value::is_truthy)
    };
    let overridden: Vec<Value> = given
        .iter()
        .filter(|(name, _)| immutable(action_parameters, name) || immutable(runner_parameters, name))
        .map(|(name, _)| Value::from(name))
        .collect();
    match overridden.is_empty() {
        true => Ok(()),
        false => Err(ParameterError::new(format!(
            "Override of immutable parameter(s) {} is unsupported.",
            crate::python::repr(&Value::List(overridden))
        ))),
    }
}
