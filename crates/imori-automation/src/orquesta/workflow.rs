//! A workflow that has been read, and its conductor.

use super::advance::{Advanced, advance};
use super::state_json::{from_json, to_json};
use crate::definitions::{Actions, Definition, Graph, Problem, inspect};
use crate::times::Timestamp;
use crate::value::{Map, Value};
use crate::workflows::{Answers, Conductor, Step, Transition, WorkflowEvent, WorkflowStatus};
use crate::yaml;

/// A workflow in orquesta's language.
#[derive(Debug, Clone, PartialEq)]
pub struct Workflow {
    pub(super) definition: Definition,
    pub(super) graph: Graph,
}

impl Workflow {
    /// Reads a workflow from YAML.
    ///
    /// # Errors
    /// All errors of the document, as StackStorm's inspection finds them.
    pub fn read(text: &str) -> Result<Workflow, Vec<Problem>> {
        Workflow::of(&document(text)?, None)
    }

    /// Reads a workflow from YAML that calls these actions.
    ///
    /// # Errors
    /// All errors of the document and of its calls, as StackStorm's inspection finds them.
    pub fn read_with(text: &str, actions: &dyn Actions) -> Result<Workflow, Vec<Problem>> {
        Workflow::of(&document(text)?, Some(actions))
    }

    /// Reads a workflow from a value. Without `actions`, the calls of its tasks are not checked.
    ///
    /// # Errors
    /// All errors of the document, as StackStorm's inspection finds them.
    pub fn of(document: &Value, actions: Option<&dyn Actions>) -> Result<Workflow, Vec<Problem>> {
        let problems = inspect(document, actions);
        if !problems.is_empty() {
            return Err(problems);
        }
        let definition = Definition::of(document);
        let graph = Graph::of(&definition);
        Ok(Workflow { definition, graph })
    }
}

impl Workflow {
    /// The names of its tasks.
    pub(crate) fn task_names(&self) -> impl Iterator<Item = &str> {
        self.definition.tasks.keys().map(String::as_str)
    }

    /// Whether a task has items; `None` if there is no such task.
    pub(crate) fn has_items(&self, task: &str) -> Option<bool> {
        self.definition.tasks.get(task).map(|task| task.items.is_some())
    }
}

impl Conductor for Workflow {
    fn can_rerun(&self) -> bool {
        true
    }

    fn advance(
        &self,
        state: Option<&Map>,
        event: &WorkflowEvent,
        _now: Timestamp,
        answers: &Answers,
    ) -> Step {
        let read = match state.map(from_json) {
            None => None,
            Some(Some(read)) => Some(read),
            Some(None) => {
                let message = "the state of the workflow cannot be read; run the workflow again";
                let error = [("type", "error"), ("message", message)];
                return Step::Next(failed(state.cloned().unwrap_or_default(), &error));
            }
        };
        match advance(&self.definition, &self.graph, read, event, answers) {
            Advanced::Questions(questions) => Step::Evaluate(questions),
            Advanced::Refused(reason, state) => Step::Next(failed(to_json(*state), &[("message", &reason)])),
            Advanced::State(state, commands, result) => {
                let status = state.status;
                Step::Next(Transition { state: to_json(*state), commands, status, result })
            }
        }
    }
}

fn document(text: &str) -> Result<Value, Vec<Problem>> {
    yaml::load(text)
        .map_err(|error| vec![Problem::new("content", format!("the workflow is no YAML: {error}"), "", "")])
}

/// The transition of an event that fails the execution with this error, and leaves the state as it is.
fn failed(state: Map, error: &[(&str, &str)]) -> Transition {
    let error: Map = error.iter().copied().collect();
    let mut result = Map::new();
    result.insert("output", Value::Null);
    result.insert("errors", vec![Value::Map(error)]);
    Transition {
        state,
        commands: Vec::new(),
        status: WorkflowStatus::Failed,
        result: Some(Value::Map(result)),
    }
}
