//! Changes of executions that are stored together, and what follows once they are on disk.

use imori_automation::value::{Map, Value};
use imori_automation::workflows::{CallStatus, WorkflowEvent};

use crate::executions::{Execution, Status};
use crate::store::{ENDS, EXECUTIONS, Transaction};

/// Changes of executions that are stored in one transaction.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    pub(super) transaction: Transaction,
    /// New executions, to schedule once they are stored.
    pub(super) created: Vec<Execution>,
    /// Changed executions, to report once they are stored.
    pub(super) changed: Vec<Execution>,
    /// What to do with other executions once the changes are stored.
    pub(super) orders: Vec<Order>,
    /// Actions that ran within this batch.
    pub(super) instant_calls: usize,
}

/// A request of a workflow to one of its children.
#[derive(Debug)]
pub(super) enum Order {
    Cancel(String),
    Pause(String),
    Resume(String),
}

/// An event of a workflow's execution.
#[derive(Debug)]
pub(crate) struct News {
    /// The workflow's execution.
    pub(crate) workflow: String,
    /// The event.
    pub(crate) event: WorkflowEvent,
}

impl Batch {
    /// Voids the batch unless the stored execution has one of these statuses.
    pub(crate) fn require(&mut self, id: &str, statuses: &[Status]) {
        let statuses = statuses.iter().map(|status| status.as_str().into()).collect();
        self.transaction.require(&EXECUTIONS, id, "status", statuses);
    }

    /// Stores a changed execution.
    pub(crate) fn change(&mut self, execution: Execution) {
        self.transaction.put(&EXECUTIONS, execution.document().clone());
        self.changed.push(execution);
    }

    /// Notes the ends of executions until their events are stored, so that a crash between loses none.
    pub(super) fn note_ends(&mut self) {
        for execution in &self.changed {
            if Status::is_final(execution.text("status")) {
                let note: Map = [("id", execution.text("id"))].into_iter().collect();
                self.transaction.put(&ENDS, note);
            }
        }
    }
}

impl News {
    /// The event of a changed execution for the workflow that asked for it, if one did.
    pub(crate) fn of(document: &Map) -> Option<News> {
        let text = |key: &str| document.get(key).and_then(Value::as_str);
        let (workflow, call) = (text("parent")?.to_owned(), text("call")?.to_owned());
        let status = match text("status")? {
            "running" => CallStatus::Running,
            "pending" => CallStatus::Pending,
            // One that is pausing still runs, and so does the workflow above it.
            "paused" => CallStatus::Paused,
            "succeeded" => CallStatus::Succeeded,
            "failed" | "abandoned" => CallStatus::Failed,
            "timeout" => CallStatus::TimedOut,
            "canceled" => CallStatus::Canceled,
            _ => return None,
        };
        let result = document.get("result").cloned().unwrap_or_default();
        Some(News { workflow, event: WorkflowEvent::Changed { call, status, result } })
    }
}
