//! Tasks of an ended workflow that run again: in an execution of their own, which goes on from the state in which the
//! earlier one ended.

use std::sync::Arc;

use imori_automation::value::Value;
use imori_automation::workflows::{TaskSelection, WorkflowEvent};

use super::batch::Batch;
use crate::engine::Engine;
use crate::executions::{Active, Execution, Status};

/// A request to run tasks of an earlier execution again, as the context of the new one has it under `re-run`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rerun {
    /// The id of the earlier execution.
    pub execution: String,
    /// The tasks.
    pub tasks: Vec<TaskSelection>,
}

impl Rerun {
    /// The request in the context of an execution; `None` where the workflow runs from its start.
    pub fn of(execution: &Execution) -> Option<Rerun> {
        let rerun = execution.map("context")?.get("re-run")?.as_map()?;
        let names = |key: &str| {
            let names = rerun.get(key).and_then(Value::as_list).unwrap_or_default();
            names.iter().filter_map(Value::as_str).map(str::to_owned).collect::<Vec<_>>()
        };
        let reset = names("reset");
        let select = |task: String| TaskSelection { resets_items: reset.contains(&task), task };
        let tasks: Vec<TaskSelection> = names("tasks").into_iter().map(select).collect();
        let is_asked = !tasks.is_empty() && execution.text("runner") == "orquesta";
        is_asked.then(|| Rerun {
            execution: rerun.get("ref").and_then(Value::as_str).unwrap_or_default().to_owned(),
            tasks,
        })
    }
}

impl Engine {
    /// Starts the execution that runs tasks of an earlier one again. Tasks that cannot run again end it at once, with the
    /// reason as its result.
    ///
    /// # Errors
    /// The earlier execution has no state to go on from, or the store refuses, as a sentence.
    pub(super) async fn rerun_workflow(
        self: &Arc<Self>,
        execution: Execution,
        rerun: &Rerun,
        depth: i64,
        root: String,
    ) -> Result<(), String> {
        let refusal = |reason: &str| {
            format!("Unable to rerun workflow execution \"{}\" because {reason}", rerun.execution)
        };
        let earlier = self.load_workflow(&rerun.execution).await.map_err(|error| error.to_string())?;
        let Some(earlier) = earlier.filter(|earlier| earlier.state.is_some()) else {
            return Err(refusal("it does not exist; run the action again without tasks"));
        };
        let (ran, runs) = (earlier.execution.text("action"), execution.text("action"));
        if ran != runs {
            return Err(refusal(&format!("it is one of action \"{ran}\", and not of \"{runs}\"")));
        }
        if !Status::is_final(earlier.execution.text("status")) {
            return Err(refusal("it is not in a completed state."));
        }
        let active = Active { execution, depth, root, ..earlier };
        let event = WorkflowEvent::RerunRequested(rerun.tasks.clone());
        self.lead(active, event, Batch::default()).await.map_err(|error| error.to_string())
    }
}
