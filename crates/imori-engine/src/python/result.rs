//! What the process of an action says when it ends, over its socket and in a file.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use imori_automation::value::Value;
use serde::Deserialize;

use crate::limits::PYTHON_RESULT_BYTES_MAX;

/// How an action ended, as its own process says.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct PythonResult {
    /// The execution's id.
    pub execution_id: String,
    /// The exit code that it will have.
    pub exit_code: i32,
    /// The first item of a returned pair.
    pub status: Option<bool>,
    /// What `run` returned; `None` if it did not return.
    #[serde(default, deserialize_with = "present")]
    pub result: Option<Value>,
}

impl PythonResult {
    /// Reads the result file of an execution. `None` if there is none yet, or it is not of this execution.
    pub fn from_file(path: &Path, execution_id: &str) -> Option<PythonResult> {
        let mut json = Vec::new();
        let file = File::open(path).ok()?;
        file.take(PYTHON_RESULT_BYTES_MAX as u64 + 1).read_to_end(&mut json).ok()?;
        let result: PythonResult = serde_json::from_slice(&json).ok()?;
        (result.execution_id == execution_id).then_some(result)
    }
}

/// Tells `null` from what is missing.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}
