//! The state of a workflow's execution between two events.

use super::contexts::Context;
use super::statuses::TaskStatus;
use crate::value::{Map, Value};
use crate::workflows::WorkflowStatus;

/// What is kept of an execution.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct State {
    pub(super) status: WorkflowStatus,
    /// A user has paused the workflow, so that the answer of an inquiry does not resume it.
    pub(super) is_paused_by_user: bool,
    pub(super) contexts: Vec<Context>,
    /// The transitions that lead to each route.
    pub(super) routes: Vec<Vec<String>>,
    /// The runs of tasks and commands, in the order in which they began.
    pub(super) runs: Vec<Run>,
    /// The tasks that are about to run, and those with items that are not all done.
    pub(super) staged: Vec<Staged>,
    pub(super) errors: Vec<Map>,
    pub(super) output: Option<Map>,
}

/// One run of a task. Its retries belong to it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Run {
    pub(super) task: String,
    pub(super) route: u32,
    pub(super) context: usize,
    /// The transitions that led to it, each with the run before.
    pub(super) prev: Vec<(String, usize)>,
    /// The transitions from it, and whether their conditions hold.
    pub(super) next: Vec<(String, bool)>,
    pub(super) status: Option<TaskStatus>,
    /// Nothing follows, so that its context counts for the output.
    pub(super) is_terminal: bool,
    pub(super) retry: Option<RetryState>,
}

/// How often a run may be and has been retried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RetryState {
    pub(super) count: i64,
    pub(super) delay: i64,
    pub(super) tally: i64,
}

/// A task that is about to run.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Staged {
    pub(super) task: String,
    pub(super) route: u32,
    pub(super) context: usize,
    pub(super) prev: Vec<(String, usize)>,
    pub(super) is_ready: bool,
    /// Seconds before a retry.
    pub(super) retry_delay: Option<i64>,
    pub(super) items: Option<Vec<Item>>,
    /// A list with failed items, kept for another run of them.
    pub(super) is_completed: bool,
    /// It runs although the workflow fails.
    pub(super) runs_on_fail: bool,
}

/// An item of a list.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Item {
    pub(super) status: Option<TaskStatus>,
    pub(super) result: Value,
}

impl State {
    /// The state of an execution that starts.
    pub(super) fn new() -> State {
        State {
            status: WorkflowStatus::Running,
            is_paused_by_user: false,
            contexts: Vec::new(),
            routes: vec![Vec::new()],
            runs: Vec::new(),
            staged: Vec::new(),
            errors: Vec::new(),
            output: None,
        }
    }

    /// The position of the latest run of a task on a route.
    pub(super) fn latest(&self, task: &str, route: u32) -> Option<usize> {
        self.runs.iter().rposition(|run| run.route == route && run.task == task)
    }

    /// The latest runs of all tasks on all routes.
    pub(super) fn latest_runs(&self) -> impl Iterator<Item = (usize, &Run)> {
        let mut seen = std::collections::BTreeSet::new();
        let runs = self.runs.iter().enumerate().rev();
        runs.filter(move |(_, run)| seen.insert((run.task.as_str(), run.route)))
    }

    /// A task that is about to run.
    pub(super) fn staged(&self, task: &str, route: u32) -> Option<&Staged> {
        self.staged.iter().find(|staged| staged.route == route && staged.task == task)
    }

    /// A task that is about to run, to change.
    pub(super) fn staged_mut(&mut self, task: &str, route: u32) -> Option<&mut Staged> {
        self.staged.iter_mut().find(|staged| staged.route == route && staged.task == task)
    }

    /// Forgets that a task is about to run, unless items of it still do.
    pub(super) fn unstage(&mut self, task: &str, route: u32) {
        let is_active = |item: &Item| item.status.is_some_and(TaskStatus::is_active);
        self.staged.retain(|staged| {
            let is_it = staged.route == route && staged.task == task;
            !is_it || staged.items.iter().flatten().any(is_active)
        });
    }

    /// Whether a task is ready to run.
    pub(super) fn has_ready(&self) -> bool {
        self.staged.iter().any(Staged::is_runnable)
    }

    /// Whether a run of some task has a status that passes a test.
    pub(super) fn has(&self, test: impl Fn(TaskStatus) -> bool) -> bool {
        self.latest_runs().any(|(_, run)| run.status.is_some_and(&test))
    }

    /// Adds an error, unless there is the same one.
    pub(super) fn log(&mut self, error: Map) {
        if !self.errors.contains(&error) {
            self.errors.push(error);
        }
    }
}

impl Staged {
    /// Whether it is ready and not done.
    pub(super) fn is_runnable(&self) -> bool {
        self.is_ready && !self.is_completed
    }
}
