//! An action that is about to run.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use imori_automation::value::{Map, Value};
use tokio::sync::watch;

use crate::outputs::ResultPlace;

/// An action that is about to run, with everything that its runner needs.
#[derive(Debug, Clone)]
pub(crate) struct Run {
    /// The execution's id.
    pub(crate) id: String,
    /// The action's definition.
    pub(crate) action: Arc<Map>,
    /// The folder of the action's pack, if it has one.
    pub(crate) pack_folder: Option<PathBuf>,
    /// A folder for the files of this run.
    pub(crate) folder: PathBuf,
    /// Parameters of the runner.
    pub(crate) runner_parameters: Map,
    /// Parameters of the action.
    pub(crate) parameters: Map,
    /// The configuration of the action's pack.
    pub(crate) config: Map,
    /// The execution's context.
    pub(crate) context: Map,
    /// Bytes that are recorded of each of the action's outputs.
    pub(crate) output_bytes_max: u64,
    /// Its place among the results in memory.
    pub(crate) place: ResultPlace,
    /// Turns true when a user cancels the execution.
    pub(crate) canceled: watch::Receiver<bool>,
}

impl Run {
    /// The text of a key of the action's definition; empty if it is missing.
    pub(crate) fn action_text(&self, key: &str) -> &str {
        self.action.get(key).and_then(Value::as_str).unwrap_or_default()
    }

    /// The runner's parameter `timeout`, in seconds.
    pub(crate) fn timeout(&self, default: Duration) -> Duration {
        let seconds = self.runner_parameters.get("timeout").and_then(Value::as_number);
        let given = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        given.unwrap_or(default)
    }

    /// The user for whom the action runs.
    pub(crate) fn user(&self) -> &str {
        self.context.get("user").and_then(Value::as_str).unwrap_or_default()
    }
}
