//! The stored state of a chain's execution.

use crate::ids::Id;
use crate::times::Timestamp;
use crate::value::{Map, Value};
use crate::workflows::{CallStatus, WorkflowStatus};

/// The state of a chain, stored as one object.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct State {
    /// The parameters of the chain's action.
    pub(super) parameters: Map,
    /// The context of the chain's execution.
    pub(super) context: Map,
    /// Variables: those of the definition, and what tasks have published.
    pub(super) vars: Map,
    /// What tasks have published.
    pub(super) published: Map,
    /// The tasks that have ended, as the result shows them.
    pub(super) tasks: Vec<Value>,
    /// The number of calls so far.
    pub(super) calls: u32,
    /// The call that has not ended.
    pub(super) current: Option<Current>,
    /// The task that follows once a user resumes the chain.
    pub(super) next: Option<String>,
    /// Whether a user has paused the chain.
    pub(super) is_held: bool,
    /// Whether a user has canceled the chain.
    pub(super) is_canceled: bool,
    /// The final status, once there is one.
    pub(super) end: Option<WorkflowStatus>,
}

/// A call that has not ended.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Current {
    pub(super) call: String,
    pub(super) task: String,
    pub(super) created_at: String,
    /// Whether it waits for an answer or for being resumed.
    pub(super) waits: bool,
}

impl State {
    /// The state of a chain that starts.
    pub(super) fn new(parameters: Map, context: Map) -> State {
        State {
            parameters,
            context,
            vars: Map::new(),
            published: Map::new(),
            tasks: Vec::new(),
            calls: 0,
            current: None,
            next: None,
            is_held: false,
            is_canceled: false,
            end: None,
        }
    }

    /// The state of a stored object; what is missing has its first value.
    pub(super) fn read(map: &Map) -> State {
        let object = |key: &str| map.get(key).and_then(Value::as_map).cloned().unwrap_or_default();
        let text = |key: &str| map.get(key).and_then(Value::as_str).map(str::to_owned);
        let flag = |key: &str| map.get(key).is_some_and(Value::is_truthy);
        let current = map.get("current").and_then(Value::as_map).map(|current| {
            let text = |key: &str| current.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
            let waits = current.get("waits").is_some_and(Value::is_truthy);
            Current { call: text("call"), task: text("task"), created_at: text("created_at"), waits }
        });
        State {
            parameters: object("parameters"),
            context: object("context"),
            vars: object("vars"),
            published: object("published"),
            tasks: map.get("tasks").and_then(Value::as_list).unwrap_or_default().to_vec(),
            calls: map
                .get("calls")
                .and_then(Value::as_int)
                .and_then(|calls| calls.try_into().ok())
                .unwrap_or(0),
            current,
            next: text("next"),
            is_held: flag("is_held"),
            is_canceled: flag("is_canceled"),
            end: text("end").map(|word| match word.as_str() {
                "succeeded" => WorkflowStatus::Succeeded,
                "canceled" => WorkflowStatus::Canceled,
                "timeout" => WorkflowStatus::TimedOut,
                _ => WorkflowStatus::Failed,
            }),
        }
    }

    /// The object to store.
    pub(super) fn to_map(&self) -> Map {
        let mut map = Map::new();
        map.insert("parameters", self.parameters.clone());
        map.insert("context", self.context.clone());
        map.insert("vars", self.vars.clone());
        map.insert("published", self.published.clone());
        map.insert("tasks", self.tasks.clone());
        map.insert("calls", i64::from(self.calls));
        if let Some(current) = &self.current {
            let mut shown = Map::new();
            shown.insert("call", current.call.as_str());
            shown.insert("task", current.task.as_str());
            shown.insert("created_at", current.created_at.as_str());
            shown.insert("waits", current.waits);
            map.insert("current", shown);
        }
        if let Some(next) = &self.next {
            map.insert("next", next.as_str());
        }
        map.insert("is_held", self.is_held);
        map.insert("is_canceled", self.is_canceled);
        match self.end {
            Some(WorkflowStatus::Succeeded) => drop(map.insert("end", "succeeded")),
            Some(WorkflowStatus::Canceled) => drop(map.insert("end", "canceled")),
            Some(WorkflowStatus::TimedOut) => drop(map.insert("end", "timeout")),
            Some(_) => drop(map.insert("end", "failed")),
            None => {}
        }
        map
    }

    /// The status of the chain's execution.
    pub(super) fn status(&self) -> WorkflowStatus {
        if let Some(end) = self.end {
            return end;
        }
        match &self.current {
            Some(_) if self.is_canceled => WorkflowStatus::Canceling,
            Some(current) if current.waits => WorkflowStatus::Paused,
            Some(_) if self.is_held => WorkflowStatus::Pausing,
            Some(_) => WorkflowStatus::Running,
            None => WorkflowStatus::Paused,
        }
    }

    /// Notes the end of a call as the chain's result shows it.
    pub(super) fn note(&mut self, current: &Current, status: CallStatus, result: &Value, now: Timestamp) {
        let parent = self.context.get("st2").and_then(|st2| st2.get("action_execution_id")?.as_str());
        let parent: Option<Id> = parent.and_then(|id| id.parse().ok());
        let id = parent.map(|parent| Id::call(parent, &current.call).to_string());
        let mut task = Map::new();
        task.insert("id", current.task.as_str());
        task.insert("name", current.task.as_str());
        task.insert("execution_id", id.clone());
        task.insert("liveaction_id", id);
        task.insert("workflow", Value::Null);
        task.insert("created_at", current.created_at.as_str());
        task.insert("updated_at", now.to_string());
        task.insert("state", word(status));
        task.insert("result", result.clone());
        self.tasks.push(Value::Map(task));
    }

    /// The last result of each task that has ended, by the task's name.
    pub(super) fn results(&self) -> Map {
        let result = |task: &Value| {
            Some((task.get("name")?.as_str()?.to_owned(), task.get("result").cloned().unwrap_or_default()))
        };
        self.tasks.iter().filter_map(result).collect()
    }
}

fn word(status: CallStatus) -> &'static str {
    match status {
        CallStatus::Running => "running",
        CallStatus::Pending => "pending",
        CallStatus::Paused => "paused",
        CallStatus::Succeeded => "succeeded",
        CallStatus::Failed => "failed",
        CallStatus::TimedOut => "timeout",
        CallStatus::Canceled => "canceled",
    }
}
