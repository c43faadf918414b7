//! The tables of statuses.

use imori_automation::for_tests::{
    Siblings, TaskStatus, Tasks, after_item, after_task, workflow_name, workflow_status,
};
use imori_automation::workflows::WorkflowStatus;

/// All statuses that events of calls have.
const EVENTS: [TaskStatus; 7] = [
    TaskStatus::Running,
    TaskStatus::Pending,
    TaskStatus::Paused,
    TaskStatus::Canceled,
    TaskStatus::Failed,
    TaskStatus::TimedOut,
    TaskStatus::Succeeded,
];

#[test]
fn items_change_their_task() {
    let siblings = |mark: &str| Siblings {
        has_active: mark.contains('a'),
        has_waiting: mark.contains('w'),
        has_canceled: mark.contains('c'),
        has_failed: mark.contains('f'),
        has_incomplete: mark.contains(['a', 'w', 'i']),
    };
    // The task, what the other items are, and the task after each event in the order above.
    let rows = [
        ("running", "a", "running pausing pausing canceling running running running"),
        ("running", "w", "running paused paused canceled failed failed paused"),
        ("running", "c", "running canceled canceled canceled canceled canceled canceled"),
        ("running", "f", "running failed failed canceled failed failed failed"),
        ("running", "i", "running paused paused canceled failed failed running"),
        ("running", "", "running paused paused canceled failed failed succeeded"),
        ("pausing", "a", "pausing pausing pausing pausing pausing pausing pausing"),
        ("pausing", "i", "pausing paused paused canceled failed failed paused"),
        ("pausing", "", "pausing paused paused canceled failed failed succeeded"),
        ("canceling", "a", "canceling canceling canceling canceling canceling canceling canceling"),
        ("canceling", "i", "canceling canceled canceled canceled canceled canceled canceled"),
        ("canceling", "", "canceling canceled canceled canceled canceled canceled succeeded"),
        ("paused", "i", "running paused paused canceled failed failed running"),
    ];
    for (task, others, expected) in rows {
        let task = TaskStatus::of(task).unwrap();
        let after_each = |workflow| {
            EVENTS.map(|event| after_item(workflow, task, event, siblings(others)).name()).join(" ")
        };
        assert_eq!(after_each(WorkflowStatus::Running), expected, "{task:?} beside {others:?}");
    }
}

#[test]
fn a_list_with_items_to_begin_waits_or_ends_with_its_workflow() {
    let others = Siblings { has_incomplete: true, ..Siblings::default() };
    for (workflow, expected) in [
        (WorkflowStatus::Running, TaskStatus::Running),
        (WorkflowStatus::Pausing, TaskStatus::Paused),
        (WorkflowStatus::Paused, TaskStatus::Paused),
        (WorkflowStatus::Canceling, TaskStatus::Canceled),
    ] {
        let after = after_item(workflow, TaskStatus::Running, TaskStatus::Succeeded, others);
        assert_eq!(after, expected, "{workflow:?}");
    }
}

#[test]
fn tasks_change_their_workflow() {
    // The workflow, the other tasks (active, waiting, canceled, next), and the workflow after a task that is
    // succeeded, failed, pending, paused and canceled.
    let rows = [
        ("running", "", "succeeded failed paused paused canceled"),
        ("running", "n", "running failed paused paused canceled"),
        ("running", "a", "running failed pausing running canceling"),
        ("running", "w", "paused failed paused paused canceled"),
        ("running", "aw", "pausing failed pausing running canceling"),
        ("running", "c", "canceled failed paused paused canceled"),
        ("pausing", "", "paused failed paused paused canceled"),
        ("pausing", "a", "pausing failed pausing pausing canceling"),
        ("paused", "n", "paused failed paused paused canceled"),
        ("canceling", "a", "canceling canceling canceling canceling canceling"),
        ("canceling", "n", "canceled canceled canceled canceled canceled"),
        ("failed", "n", "failed failed failed failed failed"),
        ("succeeded", "", "succeeded succeeded succeeded succeeded succeeded"),
        ("canceled", "", "canceled canceled canceled canceled canceled"),
    ];
    for (workflow, others, expected) in rows {
        let tasks = Tasks {
            has_active: others.contains('a'),
            has_waiting: others.contains('w'),
            has_canceled: others.contains('c'),
            has_next: others.contains('n'),
            is_remediated: false,
        };
        let workflow = workflow_status(workflow).unwrap();
        let events = ["succeeded", "failed", "pending", "paused", "canceled"];
        let after =
            events.map(|task| workflow_name(after_task(workflow, TaskStatus::of(task).unwrap(), tasks)));
        assert_eq!(after.join(" "), expected, "{workflow:?} with {others:?}");
    }
}
