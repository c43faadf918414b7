//! A workflow's definition as typed parts.

use std::collections::BTreeMap;

use crate::expressions::inline_parameters;
use crate::value::{Map, Value};

/// Names of tasks that are commands of the engine.
pub(crate) const COMMANDS: &[&str] = &["continue", "fail", "noop", "retry"];

/// A workflow.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Definition {
    pub(crate) input: Vec<(String, Value)>,
    pub(crate) vars: Vec<(String, Value)>,
    pub(crate) output: Vec<(String, Value)>,
    pub(crate) tasks: BTreeMap<String, Task>,
}

/// A task.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Task {
    /// An action's reference or an expression; a task without one succeeds at once.
    pub(crate) action: Option<String>,
    pub(crate) input: Value,
    pub(crate) join: Option<Join>,
    pub(crate) items: Option<Items>,
    pub(crate) retry: Option<Retry>,
    pub(crate) delay: Option<Value>,
    pub(crate) next: Vec<Next>,
}

/// How many of the tasks before must lead to a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Join {
    All,
    Count(i64),
}

/// The list of a task with items.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Items {
    /// The names before `in`.
    pub(crate) names: Vec<String>,
    pub(crate) list: Value,
    pub(crate) concurrency: Option<Value>,
}

/// When a task runs again by itself.
#[derive(Debug, Clone, PartialEq)]
pub struct Retry {
    pub(crate) when: Option<String>,
    /// How often at most: a number, or an expression.
    pub count: Value,
    pub(crate) delay: Option<Value>,
}

/// One entry of `next`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Next {
    pub(crate) when: Option<String>,
    pub(crate) publish: Vec<(String, Value)>,
    pub(crate) tasks: Vec<String>,
}

impl Definition {
    /// The parts of a document that the inspection has accepted.
    pub fn of(document: &Value) -> Definition {
        let tasks = document.get("tasks").and_then(Value::as_map);
        let tasks = tasks.into_iter().flat_map(Map::iter);
        Definition {
            input: pairs(document.get("input")),
            vars: pairs(document.get("vars")),
            output: pairs(document.get("output")),
            tasks: tasks.map(|(name, task)| (name.to_owned(), Task::of(task))).collect(),
        }
    }
}

impl Task {
    fn of(value: &Value) -> Task {
        let text = |key: &str| value.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
        let written = text("action");
        let parameters = written.map(inline_parameters).unwrap_or_default();
        let (action, input) = match written {
            Some(action) if !parameters.is_empty() => {
                let name = action.split(' ').next().unwrap_or(action);
                (Some(name.to_owned()), Value::Map(parameters.into_iter().collect()))
            }
            action => (action.map(str::to_owned), value.get("input").cloned().unwrap_or_default()),
        };
        Task {
            action,
            input,
            join: value.get("join").and_then(|join| match join {
                Value::String(text) if text == "all" => Some(Join::All),
                join => join.as_int().map(Join::Count),
            }),
            items: value.get("with").and_then(Items::of),
            retry: value.get("retry").and_then(Retry::of),
            delay: value.get("delay").filter(|delay| delay.is_truthy()).cloned(),
            next: value.get("next").and_then(Value::as_list).into_iter().flatten().map(Next::of).collect(),
        }
    }
}

impl Items {
    fn of(value: &Value) -> Option<Items> {
        let written = value.as_str().or_else(|| value.get("items").and_then(Value::as_str))?;
        let (names, list) = match written.split_once(" in ") {
            Some((names, list)) => (names.replace(' ', "").split(',').map(str::to_owned).collect(), list),
            None => (Vec::new(), written),
        };
        let concurrency = value.get("concurrency").filter(|value| !value.is_null()).cloned();
        Some(Items { names, list: Value::from(list.trim()), concurrency })
    }
}

impl Retry {
    fn of(value: &Value) -> Option<Retry> {
        Some(Retry {
            when: value.get("when").and_then(Value::as_str).map(str::to_owned),
            count: value.get("count").filter(|count| !count.is_null()).cloned()?,
            delay: value.get("delay").filter(|delay| !delay.is_null()).cloned(),
        })
    }
}

impl Next {
    fn of(value: &Value) -> Next {
        let tasks = match value.get("do") {
            Some(Value::String(text)) if !text.is_empty() => {
                text.split(',').map(|name| name.trim().to_owned()).collect()
            }
            Some(Value::List(names)) if !names.is_empty() => {
                names.iter().filter_map(Value::as_str).map(str::to_owned).collect()
            }
            _ => vec!["continue".to_owned()],
        };
        let publish = match value.get("publish") {
            Some(Value::String(text)) => inline_parameters(text),
            publish => pairs(publish),
        };
        Next { when: value.get("when").and_then(Value::as_str).map(str::to_owned), publish, tasks }
    }
}

/// Names and values of a list such as `[a, b: 1]`.
pub(crate) fn pairs(list: Option<&Value>) -> Vec<(String, Value)> {
    let items = list.and_then(Value::as_list).unwrap_or_default();
    items
        .iter()
        .filter_map(|item| match item {
            Value::String(name) => Some((name.clone(), Value::Null)),
            Value::Map(map) => map.iter().next().map(|(name, value)| (name.to_owned(), value.clone())),
            _ => None,
        })
        .collect()
}
