//! One event of an execution while it is worked on: the state, and what the caller is to do.

use std::sync::Arc;

use super::contexts::variables;
use super::state::{Run, Staged, State};
use super::statuses::{TaskStatus, Tasks, after_task, is_final};
use crate::definitions::{Definition, Graph, Join};
use crate::expressions::{CurrentTask, EvaluationError, Evaluator, Scope, Statuses};
use crate::limits::WORKFLOW_ERRORS_MAX;
use crate::value::{Map, Value};
use crate::workflows::{Command, WorkflowStatus};

/// The caller has to answer questions before the event can be worked on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NeedsAnswers;

/// An execution and one event.
pub(super) struct Execution<'a> {
    pub(super) definition: &'a Definition,
    pub(super) graph: &'a Graph,
    pub(super) state: State,
    pub(super) evaluator: Evaluator<'a>,
    pub(super) commands: Vec<Command>,
    /// Runs of tasks that this event has begun.
    pub(super) steps: usize,
}

/// Where an error occurred.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Origin<'a> {
    pub(super) task: Option<(&'a str, u32)>,
    pub(super) transition: Option<&'a str>,
}

/// Whether enough tasks lead to a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Inbound {
    Satisfied,
    InProgress,
    Unsatisfied,
}

impl Execution<'_> {
    /// The value with all its expressions evaluated, or the message of an error.
    pub(super) fn evaluate(
        &mut self,
        value: &Value,
        scope: &Scope,
        place: &str,
    ) -> Result<Result<Value, String>, NeedsAnswers> {
        match self.evaluator.value(value, scope, place) {
            Ok(value) => Ok(Ok(value)),
            Err(EvaluationError::Failed(message)) => Ok(Err(message)),
            Err(EvaluationError::Asked) => Err(NeedsAnswers),
        }
    }

    /// What expressions of a task read.
    pub(super) fn scope(&self, context: usize, task: &str, route: u32, result: Option<Value>) -> Scope {
        let mut scope = Scope::new(variables(&self.state.contexts, context));
        let run = self.state.latest(task, route).and_then(|run| self.state.runs.get(run));
        let status = run.and_then(|run| run.status).map_or("null", TaskStatus::name);
        scope.task = Some(CurrentTask { id: task.to_owned(), route, status, result });
        scope.statuses = self.statuses();
        scope
    }

    /// The statuses of all tasks.
    pub(super) fn statuses(&self) -> Arc<Statuses> {
        let runs = self.state.latest_runs();
        let tasks =
            runs.map(|(_, run)| ((run.task.clone(), run.route), run.status.map_or("null", TaskStatus::name)));
        Arc::new(Statuses { tasks: tasks.collect(), routes: self.state.routes.clone() })
    }

    /// Keeps an error of an expression or of the workflow itself.
    pub(super) fn log(&mut self, message: &str, origin: Origin<'_>) {
        let mut error = Map::new();
        error.insert("type", "error");
        error.insert("message", message);
        if let Some((task, route)) = origin.task {
            error.insert("task_id", task);
            error.insert("route", i64::from(route));
        }
        if let Some(transition) = origin.transition {
            error.insert("task_transition_id", transition);
        }
        self.keep(error);
    }

    /// Keeps the error of a task that failed.
    pub(super) fn log_failure(&mut self, task: &str, result: &Value) {
        let mut error = Map::new();
        error.insert("type", "error");
        error.insert("message", "Execution failed. See result for details.");
        error.insert("task_id", task);
        if !result.is_null() {
            error.insert("result", result.clone());
        }
        self.keep(error);
    }

    fn keep(&mut self, error: Map) {
        if self.state.errors.len() < WORKFLOW_ERRORS_MAX {
            self.state.log(error);
        }
    }

    /// Fails the workflow, unless it is canceled.
    pub(super) fn fail(&mut self) {
        if self.state.status != WorkflowStatus::Canceled {
            self.state.status = WorkflowStatus::Failed;
        }
    }

    /// Updates the workflow's status after a task's status has changed.
    pub(super) fn note(&mut self, run: usize) {
        let Some(Run { task, route, status: Some(status), .. }) = self.state.runs.get(run).cloned() else {
            return;
        };
        if is_final(self.state.status) {
            return;
        }
        let is_followed = self.is_followed(&task, route, true);
        let is_remediated = status.is_abended() && (is_followed || self.is_followed(&task, route, false));
        let tasks = Tasks {
            has_active: self.state.has(TaskStatus::is_active),
            has_canceled: self
                .state
                .has(|status| matches!(status, TaskStatus::Canceling | TaskStatus::Canceled)),
            has_waiting: self.state.has(|status| status.is_waiting() || status == TaskStatus::Pausing),
            has_next: is_followed || self.state.has_ready(),
            is_remediated,
        };
        self.state.status = after_task(self.state.status, status, tasks);
        if is_final(self.state.status) {
            self.check_joins();
        }
    }

    /// Fails the workflow if it ends while a join waits for tasks that will not come.
    fn check_joins(&mut self) {
        let waiting: Vec<Staged> = self
            .state
            .staged
            .iter()
            .filter(|staged| !staged.is_ready && self.graph.join(&staged.task).is_some())
            .filter(|staged| self.inbound(&staged.task, staged.route) == Inbound::Unsatisfied)
            .cloned()
            .collect();
        for staged in waiting {
            self.state.status = WorkflowStatus::Failed;
            let (task, route) = (staged.task.as_str(), staged.route);
            let message = format!(
                "UnreachableJoinError: The join task|route \"{task}|{route}\" is partially satisfied but unreachable."
            );
            self.log(&message, Origin { task: Some((task, route)), transition: None });
        }
    }

    /// Whether a task follows one that has ended. A join that cannot be reached counts only if `checks_joins` is false.
    fn is_followed(&self, task: &str, route: u32, checks_joins: bool) -> bool {
        let Some(run) = self.state.latest(task, route).and_then(|run| self.state.runs.get(run)) else {
            return false;
        };
        if !run.status.is_some_and(TaskStatus::is_completed) {
            return false;
        }
        let follows = |id: &str| run.next.iter().any(|(transition, holds)| *holds && transition == id);
        self.graph.next(task).filter(|edge| edge.to != "continue" && follows(&edge.id())).any(|edge| {
            let is_join = self.graph.join(&edge.to).is_some();
            !is_join || !checks_joins || self.inbound(&edge.to, route) != Inbound::Unsatisfied
        })
    }

    /// Whether enough tasks lead to a task.
    pub(super) fn inbound(&self, task: &str, route: u32) -> Inbound {
        let mut tasks: Vec<(&str, Option<bool>)> = Vec::new();
        for edge in self.graph.prev(task) {
            let at = match tasks.iter().position(|(name, _)| *name == edge.from) {
                Some(at) => at,
                None => {
                    tasks.push((&edge.from, None));
                    tasks.len() - 1
                }
            };
            let Some(run) = self.state.latest(&edge.from, route).and_then(|run| self.state.runs.get(run))
            else {
                continue;
            };
            let id = edge.id();
            let holds = run.next.iter().any(|(transition, holds)| *holds && *transition == id);
            if let Some((_, known)) = tasks.get_mut(at).filter(|(_, known)| *known != Some(true)) {
                *known = Some(holds);
            }
        }
        let all = i64::try_from(tasks.len()).unwrap_or(i64::MAX);
        let needed = match self.graph.join(task) {
            Some(Join::All) => all,
            Some(Join::Count(count)) if count > 0 => count,
            _ => 1,
        };
        let satisfied = tasks.iter().filter(|(_, holds)| *holds == Some(true)).count();
        if i64::try_from(satisfied).unwrap_or(i64::MAX) >= needed {
            return Inbound::Satisfied;
        }
        let is_open = tasks.iter().any(|(_, holds)| holds.is_none());
        match is_open && (self.state.has(TaskStatus::is_active) || self.state.has_ready()) {
            true => Inbound::InProgress,
            false => Inbound::Unsatisfied,
        }
    }
}
