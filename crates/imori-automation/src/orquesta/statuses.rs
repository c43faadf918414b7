//! The statuses of tasks and workflows, and what events make of them.

use crate::workflows::{CallStatus, WorkflowStatus};

/// The status of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskStatus {
    /// Some of its calls run, and no one asked to pause or cancel them.
    Running,
    /// It waits for the answer to an inquiry.
    Pending,
    /// It will be paused once the calls that run have paused or ended.
    Pausing,
    /// It begins no call until the workflow is resumed.
    Paused,
    /// It has failed and will run again.
    Retrying,
    /// It will be canceled once the calls that run have ended.
    Canceling,
    /// It was canceled before it ended.
    Canceled,
    /// All of its calls succeeded.
    Succeeded,
    /// One of its calls failed.
    Failed,
    /// Its call took too long.
    TimedOut,
}

/// All statuses of tasks by StackStorm's names.
const NAMES: &[(&str, TaskStatus)] = &[
    ("running", TaskStatus::Running),
    ("pending", TaskStatus::Pending),
    ("pausing", TaskStatus::Pausing),
    ("paused", TaskStatus::Paused),
    ("retrying", TaskStatus::Retrying),
    ("canceling", TaskStatus::Canceling),
    ("canceled", TaskStatus::Canceled),
    ("succeeded", TaskStatus::Succeeded),
    ("failed", TaskStatus::Failed),
    ("timeout", TaskStatus::TimedOut),
];

impl TaskStatus {
    /// The status of a name.
    pub fn of(name: &str) -> Option<TaskStatus> {
        NAMES.iter().find(|(known, _)| *known == name).map(|(_, status)| *status)
    }

    /// StackStorm's name.
    pub fn name(self) -> &'static str {
        NAMES.iter().find(|(_, status)| *status == self).map_or("null", |(name, _)| name)
    }

    /// Whether something of the task runs.
    pub(super) fn is_active(self) -> bool {
        matches!(self, TaskStatus::Running | TaskStatus::Pausing | TaskStatus::Canceling)
    }

    /// Whether the task has ended.
    pub(super) fn is_completed(self) -> bool {
        matches!(self, TaskStatus::Succeeded | TaskStatus::Canceled) || self.is_abended()
    }

    /// Whether the task has failed in some way.
    pub(super) fn is_abended(self) -> bool {
        matches!(self, TaskStatus::Failed | TaskStatus::TimedOut)
    }

    /// Whether the task waits for a user.
    pub(super) fn is_waiting(self) -> bool {
        matches!(self, TaskStatus::Paused | TaskStatus::Pending)
    }
}

impl From<CallStatus> for TaskStatus {
    fn from(status: CallStatus) -> TaskStatus {
        match status {
            CallStatus::Running => TaskStatus::Running,
            CallStatus::Pending => TaskStatus::Pending,
            CallStatus::Paused => TaskStatus::Paused,
            CallStatus::Succeeded => TaskStatus::Succeeded,
            CallStatus::Failed => TaskStatus::Failed,
            CallStatus::TimedOut => TaskStatus::TimedOut,
            CallStatus::Canceled => TaskStatus::Canceled,
        }
    }
}

/// The status of a task without items after the status of its call has changed.
pub(super) fn after_call(event: TaskStatus) -> TaskStatus {
    if event == TaskStatus::TimedOut { TaskStatus::Failed } else { event }
}

/// What the other items of a list are, while one changes.
#[derive(Debug, Clone, Copy, Default)]
pub struct Siblings {
    /// Some item is running, pausing or canceling.
    pub has_active: bool,
    /// Some item is paused or pending.
    pub has_waiting: bool,
    /// Some item is canceled.
    pub has_canceled: bool,
    /// Some item has failed.
    pub has_failed: bool,
    /// Some item has not ended, or not begun.
    pub has_incomplete: bool,
}

/// The status of a task with items after the status of one item has changed. Items begin only while the workflow runs.
pub fn after_item(
    workflow: WorkflowStatus,
    task: TaskStatus,
    event: TaskStatus,
    others: Siblings,
) -> TaskStatus {
    use TaskStatus::{Canceled, Canceling, Failed, Paused, Pausing, Pending, Running, Succeeded, TimedOut};
    if event == Running {
        return if matches!(task, Pausing | Canceling) { task } else { Running };
    }
    // An item of a paused task may be an inquiry that has been answered.
    let task = if task.is_active() { task } else { Running };
    if others.has_active {
        return match (task, event) {
            (Running, Pending | Paused) => Pausing,
            (Running, Canceled) => Canceling,
            (task, _) => task,
        };
    }
    if task == Canceling {
        let all_ended_well =
            event == Succeeded && !others.has_canceled && !others.has_failed && !others.has_incomplete;
        return if all_ended_well { Succeeded } else { Canceled };
    }
    match event {
        Canceled => Canceled,
        Failed | TimedOut if others.has_canceled && !others.has_waiting => Canceled,
        Failed | TimedOut => Failed,
        Pending | Paused | Succeeded if others.has_waiting => Paused,
        Pending | Paused | Succeeded if others.has_canceled => Canceled,
        Pending | Paused | Succeeded if others.has_failed => Failed,
        Succeeded if others.has_incomplete => match workflow {
            WorkflowStatus::Canceling => Canceled,
            WorkflowStatus::Pausing | WorkflowStatus::Paused => Paused,
            _ if task == Pausing => Paused,
            _ => Running,
        },
        Succeeded => Succeeded,
        _ => Paused,
    }
}

/// What the tasks of a workflow are, when one changes.
#[derive(Debug, Clone, Copy, Default)]
pub struct Tasks {
    /// Some other task is running, pausing or canceling.
    pub has_active: bool,
    /// Some task is canceling or canceled.
    pub has_canceled: bool,
    /// Some task is pausing, paused or pending.
    pub has_waiting: bool,
    /// Some task is ready to run, or will follow the one that changed.
    pub has_next: bool,
    /// The task that changed failed, and other tasks follow it.
    pub is_remediated: bool,
}

/// The status of a workflow after the status of a task has changed.
pub fn after_task(workflow: WorkflowStatus, task: TaskStatus, tasks: Tasks) -> WorkflowStatus {
    use WorkflowStatus::{Canceled, Canceling, Failed, Paused, Pausing, Running, Succeeded, TimedOut};
    let is_success = task == TaskStatus::Succeeded || tasks.is_remediated;
    let either = |active, dormant| if tasks.has_active { active } else { dormant };
    match workflow {
        Succeeded | Failed | Canceled | TimedOut => workflow,
        Running => match task {
            _ if is_success && tasks.has_canceled => either(Canceling, Canceled),
            _ if is_success && tasks.has_waiting => either(Pausing, Paused),
            _ if is_success && tasks.has_next => Running,
            _ if is_success => either(Running, Succeeded),
            TaskStatus::Failed | TaskStatus::TimedOut => Failed,
            TaskStatus::Pending => either(Pausing, Paused),
            TaskStatus::Paused => either(Running, Paused),
            TaskStatus::Canceling => Canceling,
            TaskStatus::Canceled => either(Canceling, Canceled),
            _ => Running,
        },
        Pausing | Paused => match task {
            _ if is_success && tasks.has_canceled => either(Canceling, Canceled),
            _ if is_success => either(Pausing, Paused),
            TaskStatus::Failed | TaskStatus::TimedOut => Failed,
            TaskStatus::Canceling => Canceling,
            TaskStatus::Canceled => either(Canceling, Canceled),
            TaskStatus::Running | TaskStatus::Pausing => Pausing,
            _ => either(Pausing, Paused),
        },
        Canceling => match task {
            TaskStatus::Canceling | TaskStatus::Running | TaskStatus::Pausing => Canceling,
            _ => either(Canceling, Canceled),
        },
    }
}

/// Whether no event of a call changes the status any more.
pub(super) fn is_final(status: WorkflowStatus) -> bool {
    use WorkflowStatus::{Canceled, Failed, Succeeded, TimedOut};
    matches!(status, Succeeded | Failed | Canceled | TimedOut)
}

/// The name of a workflow's status.
pub fn workflow_name(status: WorkflowStatus) -> &'static str {
    match status {
        WorkflowStatus::Running => "running",
        WorkflowStatus::Pausing => "pausing",
        WorkflowStatus::Paused => "paused",
        WorkflowStatus::Canceling => "canceling",
        WorkflowStatus::Canceled => "canceled",
        WorkflowStatus::Succeeded => "succeeded",
        WorkflowStatus::Failed => "failed",
        WorkflowStatus::TimedOut => "timeout",
    }
}

/// The status of a workflow by its name.
pub fn workflow_status(name: &str) -> Option<WorkflowStatus> {
    Some(match name {
        "running" => WorkflowStatus::Running,
        "pausing" => WorkflowStatus::Pausing,
        "paused" => WorkflowStatus::Paused,
        "canceling" => WorkflowStatus::Canceling,
        "canceled" => WorkflowStatus::Canceled,
        "succeeded" => WorkflowStatus::Succeeded,
        "failed" => WorkflowStatus::Failed,
        "timeout" => WorkflowStatus::TimedOut,
        _ => return None,
    })
}
