//! The definition of a chain: its tasks, its first task and its variables.

use std::collections::BTreeSet;
use std::fmt;

use crate::limits::CHAIN_TASKS_MAX;
use crate::templates::Template;
use crate::value::{Map, Value};
use crate::yaml::load;

/// A chain of tasks.
#[derive(Debug, Clone, PartialEq)]
pub struct Chain {
    /// The tasks by name, in the order of the definition.
    pub(super) tasks: Vec<Task>,
    /// The name of the first task; `None` in a chain without tasks.
    pub(super) first: Option<String>,
    /// Variables, rendered when the chain starts.
    pub(super) vars: Map,
}

/// A task of a chain.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Task {
    pub(super) name: String,
    /// The action's reference.
    pub(super) action: String,
    /// The action's parameters, with their templates.
    pub(super) parameters: Map,
    /// The name of the task after a success; empty at the end of the chain.
    pub(super) on_success: String,
    /// The name of the task after a failure; empty at the end of the chain.
    pub(super) on_failure: String,
    /// Variables that are rendered when the task has ended.
    pub(super) publish: Map,
    /// Notifications of the task's end.
    pub(super) notify: Map,
}

/// Why a text is no chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChainError(String);

const KEYS: [&str; 3] = ["chain", "default", "vars"];
const TASK_KEYS: [&str; 8] =
    ["name", "ref", "params", "parameters", "on-success", "on-failure", "publish", "notify"];

impl Chain {
    /// Reads a definition in YAML.
    ///
    /// # Errors
    /// The text is no YAML, a key is missing, wrong or unknown, or a task refers to one that does not exist.
    pub fn parse(text: &str) -> Result<Chain, ChainError> {
        let document = load(text).map_err(|error| ChainError(error.to_string()))?;
        let map = document.as_map().ok_or_else(|| {
            ChainError(format!(
                "an action chain is an object with a list `chain`; this is of type {}",
                document.type_name()
            ))
        })?;
        only(map, &KEYS, "the action chain")?;
        let list = map.get("chain").ok_or_else(|| wrong("the list `chain` is missing; add the tasks"))?;
        let list = list.as_list().ok_or_else(|| wrong("`chain` is no list of tasks"))?;
        if list.len() > CHAIN_TASKS_MAX {
            return Err(ChainError(format!("`chain` has more than {CHAIN_TASKS_MAX} tasks; split it")));
        }
        let tasks: Vec<Task> =
            (1..).zip(list).map(|(number, task)| read_task(number, task)).collect::<Result<_, _>>()?;
        let default = text_of(map, "default", "the action chain")?;
        let chain = Chain { first: None, vars: map_of(map, "vars", "the action chain")?, tasks };
        chain.check(&default)?;
        let first = Some(default).filter(|name| !name.is_empty()).or_else(|| chain.start());
        Ok(Chain { first, ..chain })
    }

    /// The task of this name.
    pub(super) fn task(&self, name: &str) -> Option<&Task> {
        self.tasks.iter().find(|task| task.name == name)
    }

    /// Checks that all tasks which are referred to exist. A name that is a template is only known when the chain runs.
    fn check(&self, default: &str) -> Result<(), ChainError> {
        let mut names = BTreeSet::new();
        if let Some(twice) = self.tasks.iter().find(|task| !names.insert(task.name.as_str())) {
            return Err(ChainError(format!("task `{}` is defined twice; rename one", twice.name)));
        }
        let is_known = |name: &str| name.is_empty() || Template::is_template(name) || names.contains(name);
        for task in &self.tasks {
            for (key, name) in [("on-success", &task.on_success), ("on-failure", &task.on_failure)] {
                if !is_known(name) {
                    return Err(ChainError(format!(
                        "`{key}` of task `{}` names task `{name}`, which does not exist",
                        task.name
                    )));
                }
            }
        }
        match is_known(default) {
            true => Ok(()),
            false => Err(ChainError(format!("`default` names task `{default}`, which does not exist"))),
        }
    }

    /// The first task to which no other leads, or the first of all.
    fn start(&self) -> Option<String> {
        let targets: BTreeSet<&str> =
            self.tasks.iter().flat_map(|task| [task.on_success.as_str(), task.on_failure.as_str()]).collect();
        let free = self.tasks.iter().find(|task| !targets.contains(task.name.as_str()));
        free.or(self.tasks.first()).map(|task| task.name.clone())
    }
}

fn read_task(number: usize, value: &Value) -> Result<Task, ChainError> {
    let place = format!("task {number}");
    let map = value.as_map().ok_or_else(|| ChainError(format!("{place} of the chain is no object")))?;
    let name = required(map, "name", &place)?;
    let place = format!("task `{name}`");
    only(map, &TASK_KEYS, &place)?;
    let (old, new) = (map_of(map, "params", &place)?, map_of(map, "parameters", &place)?);
    if !old.is_empty() && !new.is_empty() {
        return Err(ChainError(format!("{place} has both `params` and `parameters`; use `parameters`")));
    }
    let notify = map_of(map, "notify", &place)?;
    only(&notify, &["on-complete", "on-success", "on-failure"], &format!("`notify` of {place}"))?;
    Ok(Task {
        action: required(map, "ref", &place)?,
        parameters: if new.is_empty() { old } else { new },
        on_success: text_of(map, "on-success", &place)?,
        on_failure: text_of(map, "on-failure", &place)?,
        publish: map_of(map, "publish", &place)?,
        notify,
        name,
    })
}

fn only(map: &Map, known: &[&str], place: &str) -> Result<(), ChainError> {
    match map.iter().find(|(key, _)| !known.contains(key)) {
        None => Ok(()),
        Some((key, _)) => {
            Err(ChainError(format!("key `{key}` of {place} is unknown; use `{}`", known.join("`, `"))))
        }
    }
}

fn required(map: &Map, key: &str, place: &str) -> Result<String, ChainError> {
    match text_of(map, key, place)? {
        text if text.is_empty() => Err(ChainError(format!("`{key}` of {place} is missing"))),
        text => Ok(text),
    }
}

fn text_of(map: &Map, key: &str, place: &str) -> Result<String, ChainError> {
    match map.get(key) {
        None | Some(Value::Null) => Ok(String::new()),
        Some(Value::String(text)) => Ok(text.clone()),
        Some(other) => Err(ChainError(format!("`{key}` of {place} is {other}; use a text"))),
    }
}

fn map_of(map: &Map, key: &str, place: &str) -> Result<Map, ChainError> {
    match map.get(key) {
        None | Some(Value::Null) => Ok(Map::new()),
        Some(Value::Map(map)) => Ok(map.clone()),
        Some(other) => Err(ChainError(format!("`{key}` of {place} is {other}; use an object"))),
    }
}

fn wrong(message: &str) -> ChainError {
    ChainError(message.to_owned())
}

impl fmt::Display for ChainError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ChainError {}
