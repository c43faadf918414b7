//! The outcome of an action.

use imori_automation::value::{Map, Value};

use crate::executions::Status;

/// The outcome of an action.
#[derive(Debug, Clone)]
pub(crate) struct Outcome {
    /// The status of its execution.
    pub(crate) status: Status,
    /// The result.
    pub(crate) result: Value,
}

impl Outcome {
    /// An action that could not be run.
    pub(crate) fn failed(error: impl Into<String>) -> Outcome {
        let result: Map = [("error", error.into())].into_iter().collect();
        Outcome { status: Status::Failed, result: Value::Map(result) }
    }
}
