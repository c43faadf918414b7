//! The outcomes of actions that a rehearsal gives, while they are used.

use std::collections::BTreeMap;

use super::error::RehearsalError;
use super::specification::{Mock, Specification};
use crate::orquesta::{BegunTask, Round, TaskEnd, Workflow};
use crate::value::Value;
use crate::workflows::CallStatus;
use crate::yaml;

/// The outcomes that are left.
pub(super) struct Mocks<'a> {
    specification: &'a Specification,
    mocks: Vec<Mock>,
}

impl<'a> Mocks<'a> {
    /// The outcomes of a rehearsal of this workflow, with the results in `files`.
    ///
    /// # Errors
    /// An outcome is of a task that does not exist, names no item of a task with items, or its file is missing or wrong.
    pub(super) fn new(
        specification: &'a Specification,
        workflow: &Workflow,
        files: &BTreeMap<String, String>,
    ) -> Result<Mocks<'a>, Vec<RehearsalError>> {
        let mut mocks = specification.mocks.clone();
        let mut errors = Vec::new();
        for (at, mock) in mocks.iter_mut().enumerate() {
            let mut refuse = |key: &str, message: String| {
                let position = specification.lines.nearest(&["mock_action_executions", &at.to_string(), key]);
                errors.push(RehearsalError::in_rehearsal(position, message));
            };
            match workflow.has_items(&mock.task) {
                None => {
                    let tasks = workflow.task_names().collect::<Vec<_>>().join(", ");
                    refuse(
                        "task_id",
                        format!("the workflow has no task `{}`; its tasks are {tasks}", mock.task),
                    );
                }
                Some(true) if mock.item.is_none() => {
                    let reason =
                        format!("task `{}` has items; add the `item_id` of one, from 0 on", mock.task);
                    refuse("task_id", reason);
                }
                _ => {}
            }
            let Some(path) = &mock.result_path else { continue };
            match files.get(path).map(|text| parsed(path, text)) {
                Some(Ok(result)) => mock.result = result,
                Some(Err(reason)) => refuse("result_path", format!("`{path}`: {reason}")),
                None => refuse("result_path", format!("`{path}` was not read")),
            }
        }
        match errors.is_empty() {
            true => Ok(Mocks { specification, mocks }),
            false => Err(errors),
        }
    }

    /// The end of a task that has begun, or of one of its items: a success without a result where none is given.
    ///
    /// # Errors
    /// The outcome is of an item that the task does not have.
    pub(super) fn end(&mut self, task: &BegunTask, round: &Round<'_>) -> Result<TaskEnd, RehearsalError> {
        let found = self.position(task);
        let (status, result, item) = match found.and_then(|at| self.mocks.get_mut(at)) {
            Some(mock) => {
                mock.uses -= 1;
                (mock.status, mock.result.clone(), mock.item)
            }
            None => (CallStatus::Succeeded, Value::Null, None),
        };
        let statuses = round.item_count(task);
        if !task.has_items || statuses == 0 {
            return Ok(TaskEnd { status, item: None, result });
        }
        let item = item.or_else(|| round.open_item(task)).unwrap_or(0);
        if item >= statuses {
            let at = found.unwrap_or_default().to_string();
            let position = self.specification.lines.nearest(&["mock_action_executions", &at, "item_id"]);
            let reason = format!("task `{}` has {statuses} items, the first of which is 0", task.task);
            return Err(RehearsalError::in_rehearsal(position, reason));
        }
        Ok(TaskEnd { status, item: Some(item), result })
    }

    /// The outcome for a task: one for its position in the sequence, or the first of the task if that is for any.
    fn position(&self, task: &BegunTask) -> Option<usize> {
        let is_left = |mock: &Mock| mock.task == task.task && mock.uses > 0;
        let exact = |mock: &Mock| is_left(mock) && mock.sequence == Some(task.sequence);
        let first = self.mocks.iter().position(is_left);
        let first = first.filter(|at| self.mocks.get(*at).is_some_and(|mock| mock.sequence.is_none()));
        self.mocks.iter().position(exact).or(first)
    }
}

/// The result in a file: JSON and YAML by the end of its name, text otherwise.
fn parsed(path: &str, text: &str) -> Result<Value, String> {
    match path.rsplit_once('.').map(|(_, end)| end) {
        Some("json") => Value::from_json(text.as_bytes()).map_err(|error| error.to_string()),
        Some("yaml" | "yml") => yaml::load(text).map_err(|error| error.to_string()),
        _ => Ok(Value::from(text)),
    }
}
