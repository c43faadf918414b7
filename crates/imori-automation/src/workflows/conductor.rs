//! The contract of a conductor: its events and its commands.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::times::Timestamp;
use crate::value::{Map, Value};

/// Leads the executions of one workflow definition. It keeps nothing between two calls: the caller stores
/// [`Transition::state`] and passes it to the next call, also after a restart.
pub trait Conductor: Send + Sync {
    /// The transition that follows an event. `state` is `None` for [`WorkflowEvent::Started`] alone. `answers` has the
    /// values of expressions that the conductor asked for in an earlier call with the same state and event.
    ///
    /// An event that does not fit the state, such as the end of a call that is unknown or has ended before, changes
    /// nothing, so that a caller may repeat events after a crash.
    fn advance(&self, state: Option<&Map>, event: &WorkflowEvent, now: Timestamp, answers: &Answers) -> Step;

    /// Whether tasks of an ended workflow can run again, so that its last state is worth keeping.
    fn can_rerun(&self) -> bool {
        false
    }

    /// The definition of a task as the context of its executions shows it, and with its `notify` if it has one.
    fn task_context(&self, _task: &str) -> Map {
        Map::new()
    }
}

/// The result of a call of a conductor.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// The transition that follows the event.
    Next(Transition),
    /// The caller evaluates these expressions, and repeats the call with their answers. Nothing has changed.
    Evaluate(Vec<Question>),
}

/// An expression that Rust cannot evaluate.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// Identifies the expression and its context among the questions of one event.
    pub id: String,
    /// The text, with its delimiters: `<% … %>` or `{{ … }}`.
    pub expression: String,
    /// The names that the expression can read.
    pub context: Map,
}

/// Values of expressions, or the messages of their errors, by [`Question::id`].
pub type Answers = BTreeMap<String, Result<Value, String>>;

/// A new state and what the caller has to do. The caller stores all of it in one transaction.
#[derive(Debug, Clone, PartialEq)]
pub struct Transition {
    /// The new state: JSON of the conductor alone.
    pub state: Map,
    /// The commands for the caller, in order.
    pub commands: Vec<Command>,
    /// The status of the workflow's execution from now on.
    pub status: WorkflowStatus,
    /// The result of the workflow's execution, set together with a final status.
    pub result: Option<Value>,
}

/// A request of a conductor.
#[derive(Debug, Clone, PartialEq)]
pub enum Command {
    /// Requests an execution as a child of the workflow's.
    Run(Call),
    /// Cancels the execution of a call.
    Cancel(String),
    /// Pauses the execution of a call, if it is a workflow itself.
    Pause(String),
    /// Resumes the execution of a call, if it is a workflow itself.
    Resume(String),
}

/// An execution that a workflow asks for.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// Identifies the call within the workflow's execution for good: a retry and an item of a list are calls of their
    /// own. The child's id derives from it, so that a repeated transition makes no second child.
    pub id: String,
    /// The name of its task.
    pub task: String,
    /// The route by which the task was reached; 0 except in workflows with cycles and splits.
    pub route: u32,
    /// The position in the list of a task with items.
    pub item: Option<u32>,
    /// The action's reference.
    pub action: String,
    /// The action's parameters, rendered.
    pub parameters: Map,
    /// Time before the execution starts.
    pub delay: Duration,
}

/// An event of a workflow.
#[derive(Debug, Clone, PartialEq)]
pub enum WorkflowEvent {
    /// The execution starts.
    Started {
        /// The parameters of the workflow's action.
        parameters: Map,
        /// Names beside the workflow's own variables, such as `st2` and `parent`.
        context: Map,
    },
    /// The status of a call's execution has changed.
    Changed {
        /// The [`Call::id`].
        call: String,
        /// The new status.
        status: CallStatus,
        /// The execution's result; null unless the status is final.
        result: Value,
    },
    /// A user pauses the workflow: no new calls, until it is resumed.
    PauseRequested,
    /// A user resumes the workflow.
    ResumeRequested,
    /// A user cancels the workflow.
    CancelRequested,
    /// A user runs tasks of an ended workflow again; without tasks, those that failed. A selection that cannot run again
    /// leaves the state as it is, and the transition is a failure whose result says why.
    RerunRequested(Vec<TaskSelection>),
}

/// A task that is to run again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskSelection {
    /// The task's name.
    pub task: String,
    /// Whether all items of its list run again, and not only those that failed.
    pub resets_items: bool,
}

/// The status of a call's execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallStatus {
    /// It runs, for the first time or after a pause.
    Running,
    /// It is an inquiry without an answer, or a workflow that waits for one.
    Pending,
    /// It is a workflow that is paused.
    Paused,
    /// It ended well.
    Succeeded,
    /// It failed, or was abandoned.
    Failed,
    /// It took longer than it may.
    TimedOut,
    /// A user canceled it.
    Canceled,
}

/// The status of a workflow's execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkflowStatus {
    /// Calls run, or are about to.
    Running,
    /// A user has paused it, and calls still run.
    Pausing,
    /// Nothing runs until a user resumes it, or an inquiry is answered.
    Paused,
    /// A user has canceled it, and calls still run.
    Canceling,
    /// A user has canceled it, and nothing runs.
    Canceled,
    /// It ended well.
    Succeeded,
    /// It failed.
    Failed,
    /// It ended with an action that took longer than it may.
    TimedOut,
}
