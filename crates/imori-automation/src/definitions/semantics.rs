//! What the tasks of a workflow mean to each other: names that are reserved or missing, and tasks that never run.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::definition::{COMMANDS, Definition};
use super::graph::{Graph, starts, targets};
use super::problem::Problem;
use super::syntax::TASK;
use crate::limits::{WORKFLOW_TASKS_MAX, WORKFLOW_TRANSITIONS_MAX, WORKFLOW_VISITS_MAX};

/// All errors of the tasks.
pub(crate) fn check(definition: &Definition) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut add = |message: String, spec: &str, schema: &str| {
        problems.push(Problem::new("semantic", message, spec, schema));
    };
    let transitions: usize =
        definition.tasks.values().flat_map(|task| &task.next).map(|next| next.tasks.len()).sum();
    if definition.tasks.len() > WORKFLOW_TASKS_MAX || transitions > WORKFLOW_TRANSITIONS_MAX {
        let message = format!(
            "the workflow has more than {WORKFLOW_TASKS_MAX} tasks or {WORKFLOW_TRANSITIONS_MAX} transitions; split it"
        );
        add(message, "tasks", "properties.tasks");
        return problems;
    }
    for (name, task) in &definition.tasks {
        let path = format!("tasks.{name}");
        if COMMANDS.contains(&name.as_str()) {
            add(format!("The task name \"{name}\" is reserved with special function."), &path, TASK);
        }
        if task.items.is_some() && task.action.is_none() {
            add("The action property is required for with items task.".to_owned(), &path, TASK);
        }
    }
    let starts = starts(definition);
    if starts.is_empty() && !definition.tasks.is_empty() {
        let message = "Unable to identify any tasks to start the workflow. If the workflow has a loop, please add a task that serves as an entry point (or lead) into the loop.";
        add(message.to_owned(), "tasks", "properties.tasks");
    }
    let mut seen: BTreeSet<&str> = starts.iter().map(String::as_str).collect();
    let mut open: VecDeque<&str> = seen.iter().copied().collect();
    while let Some(name) = open.pop_front() {
        let next = definition.tasks.get(name).map(|task| task.next.iter().enumerate());
        for (at, next) in next.into_iter().flatten() {
            for target in next.tasks.iter().filter(|target| !COMMANDS.contains(&target.as_str())) {
                if !definition.tasks.contains_key(target) {
                    let schema = format!("{TASK}.properties.next.items.properties.do");
                    let spec = format!("tasks.{name}.next[{at}].do");
                    add(format!("The task \"{target}\" is not defined."), &spec, &schema);
                } else if seen.insert(target) {
                    open.push_back(target);
                }
            }
        }
    }
    for name in unreachable_joins(definition) {
        let message = format!(
            "The join task \"{name}\" is unreachable. A join task is determined to be unreachable if there are nested forks from multi-referenced tasks that join on the said task. This is ambiguous to the workflow engine because it does not know at which level should the join occurs."
        );
        add(message, &format!("tasks.{name}"), TASK);
    }
    problems
}

/// The joins whose branches are on different routes.
fn unreachable_joins(definition: &Definition) -> Vec<String> {
    let graph = Graph::of(definition);
    let mut splits: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut before: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut open: VecDeque<String> = starts(definition).into();
    for name in &open {
        splits.insert(name.clone(), BTreeSet::new());
    }
    // The routes of a task are those of all tasks before it, and its own.
    let mut visits = 0;
    while let Some(name) = open.pop_front() {
        visits += 1;
        if visits > WORKFLOW_VISITS_MAX {
            return Vec::new();
        }
        let inherited = splits.get(&name).cloned().unwrap_or_default();
        for (target, _, _) in targets(definition, &name) {
            if !definition.tasks.contains_key(&target) {
                continue;
            }
            before.entry(target.clone()).or_default().insert(name.clone());
            let known = splits.get(&target).cloned();
            let mut all = known.clone().unwrap_or_default();
            all.extend(inherited.iter().cloned());
            if graph.makes_routes(&target) {
                all.insert(target.clone());
            }
            if known.as_ref() != Some(&all) {
                splits.insert(target.clone(), all);
                open.push_back(target);
            }
        }
    }
    let joins = definition.tasks.iter().filter(|(_, task)| task.join.is_some());
    joins
        .filter(|(name, _)| {
            let before = before.get(*name);
            before.into_iter().flatten().any(|before| splits.get(before) != splits.get(*name))
        })
        .map(|(name, _)| name.clone())
        .collect()
}
