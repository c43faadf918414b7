//! What an expression of a workflow reads.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use crate::templates::Context;
use crate::value::{Map, Value};

/// The task that an expression belongs to.
#[derive(Debug, Clone)]
pub struct CurrentTask {
    /// Its name.
    pub id: String,
    /// The number of the route that led to it.
    pub route: u32,
    /// The status of its last run, by StackStorm's name.
    pub status: &'static str,
    /// The result, once there is one.
    pub result: Option<Value>,
}

/// The statuses of all tasks by name and route, and the transitions that lead to each route.
#[derive(Debug, Clone, Default)]
pub struct Statuses {
    /// The status of each task, by its name and route.
    pub tasks: BTreeMap<(String, u32), &'static str>,
    /// For each route, the transitions on its way.
    pub routes: Vec<Vec<String>>,
}

impl Statuses {
    /// The status of a task on a route, or on the longest earlier one that leads to it.
    pub fn of(&self, task: &str, route: u32) -> &'static str {
        let routes = usize::try_from(route).unwrap_or(usize::MAX);
        let way = self.routes.get(routes).map_or(&[][..], Vec::as_slice);
        let leads_here = |earlier: &Vec<String>| earlier.iter().all(|step| way.contains(step));
        let at = |route: u32| self.tasks.get(&(task.to_owned(), route)).copied();
        at(route)
            .or_else(|| {
                (0..route).rev().find_map(|earlier| {
                    let steps = self.routes.get(usize::try_from(earlier).ok()?)?;
                    leads_here(steps).then(|| at(earlier)).flatten()
                })
            })
            .unwrap_or("null")
    }
}

/// The variables, the task and the item of one place in a workflow.
#[derive(Debug, Clone, Default)]
pub struct Scope {
    variables: Map,
    /// The task, if the expression belongs to one.
    pub task: Option<CurrentTask>,
    /// The item, if the expression belongs to one of a list.
    pub item: Option<Value>,
    /// The statuses of all tasks.
    pub statuses: Arc<Statuses>,
    /// The names of a template, made when the first one needs them.
    pub(crate) names: OnceLock<Context>,
}

impl Scope {
    /// A scope with variables alone.
    pub fn new(variables: Map) -> Scope {
        Scope { variables, ..Scope::default() }
    }

    /// The variables.
    pub(crate) fn variables(&self) -> &Map {
        &self.variables
    }

    /// Sets a variable for the expressions that follow.
    pub(crate) fn set(&mut self, name: &str, value: Value) {
        self.variables.insert(name, value);
        self.names = OnceLock::new();
    }

    /// The same scope for one item of a list.
    pub fn of_item(&self, item: Value) -> Scope {
        Scope { item: Some(item), names: OnceLock::new(), ..self.clone() }
    }

    /// The variables by the name of their owner: those that begin with two underscores are orquesta's own.
    pub(crate) fn public_variables(&self) -> Map {
        self.variables
            .iter()
            .filter(|(name, _)| !name.starts_with("__"))
            .map(|(name, value)| (name, value.clone()))
            .collect()
    }

    /// What orquesta would evaluate an expression with.
    pub(crate) fn data(&self) -> Map {
        let mut data = self.variables.clone();
        if let Some(task) = &self.task {
            let mut current = Map::new();
            current.insert("id", task.id.as_str());
            current.insert("route", i64::from(task.route));
            if let Some(result) = &task.result {
                current.insert("result", result.clone());
            }
            data.insert("__current_task", current);
        }
        if let Some(item) = &self.item {
            data.insert("__current_item", item.clone());
        }
        data.insert("__state", self.state());
        data
    }

    fn state(&self) -> Map {
        let mut tasks = Map::new();
        let mut sequence = Vec::new();
        for (at, ((task, route), status)) in (0_i64..).zip(&self.statuses.tasks) {
            tasks.insert(format!("{task}__r{route}"), at);
            let mut entry = Map::new();
            entry.insert("id", task.as_str());
            entry.insert("route", i64::from(*route));
            entry.insert("status", *status);
            sequence.push(Value::Map(entry));
        }
        let routes = self.statuses.routes.iter();
        let routes =
            routes.map(|steps| Value::List(steps.iter().map(|step| Value::from(step.as_str())).collect()));
        let mut state = Map::new();
        state.insert("tasks", tasks);
        state.insert("sequence", sequence);
        state.insert("routes", routes.collect::<Vec<_>>());
        state
    }
}
