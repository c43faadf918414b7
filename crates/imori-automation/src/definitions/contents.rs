//! The actions that tasks call: whether they are registered, and whether a task gives them the parameters they need.

use super::definition::{Definition, Task};
use super::problem::Problem;
use super::syntax::TASK;
use crate::expressions::languages;
use crate::value::{Map, Value};

/// The registered actions, as the inspection of a workflow asks for them.
pub trait Actions {
    /// The schemas of an action's parameters, those of its runner among them; `None` if no action has this reference.
    fn parameters(&self, reference: &str) -> Option<Map>;
}

/// All errors of the calls of tasks. An action whose name is an expression is known only when it runs.
pub(crate) fn check(definition: &Definition, actions: &dyn Actions) -> Vec<Problem> {
    let calls =
        definition.tasks.iter().filter_map(|(name, task)| Some((name, task, task.action.as_deref()?)));
    let calls = calls.filter(|(_, _, action)| languages(action).is_empty());
    calls.flat_map(|(name, task, action)| check_call(name, task, action, actions)).collect()
}

fn check_call(name: &str, task: &Task, action: &str, actions: &dyn Actions) -> Vec<Problem> {
    let wrong_action = |message: String| {
        let schema = format!("{TASK}.properties.action");
        vec![Problem::new("content", message, &format!("tasks.{name}.action"), &schema)]
    };
    if action.split_once('.').is_none_or(|(pack, name)| pack.is_empty() || name.is_empty()) {
        return wrong_action(format!("The action reference \"{action}\" is not formatted correctly."));
    }
    let Some(parameters) = actions.parameters(action) else {
        return wrong_action(format!("The action \"{action}\" is not registered in the database."));
    };
    let none = Map::new();
    let given = match &task.input {
        Value::Map(given) => given,
        Value::Null => &none,
        // The parameters are the value of an expression.
        _ => return Vec::new(),
    };
    let (spec, schema) = (format!("tasks.{name}.input"), format!("{TASK}.properties.input"));
    let is_needed = |schema: &Value| {
        schema.get("required").is_some_and(Value::is_truthy) && schema.get("default").is_none()
    };
    let mut missing: Vec<&str> =
        parameters.iter().filter(|(_, schema)| is_needed(schema)).map(|(name, _)| name).collect();
    missing.retain(|name| !given.contains_key(name));
    missing.sort_unstable();
    let mut unexpected: Vec<&str> = given.iter().map(|(name, _)| name).collect();
    unexpected.retain(|name| !parameters.contains_key(name));
    unexpected.sort_unstable();
    let missing = missing.into_iter().map(|parameter| {
        let message = format!("Action \"{action}\" is missing required input \"{parameter}\".");
        Problem::new("content", message, &spec, &schema)
    });
    let unexpected = unexpected.into_iter().map(|parameter| {
        let message = format!("Action \"{action}\" has unexpected input \"{parameter}\".");
        let schema = format!("{schema}.patternProperties.^\\w+$");
        Problem::new("content", message, &format!("{spec}.{parameter}"), &schema)
    });
    missing.chain(unexpected).collect()
}
