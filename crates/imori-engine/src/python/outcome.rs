//! How an action ended, by the rules of StackStorm's Python runner.

use std::fmt;

use imori_automation::value::{Map, Value};

use crate::outputs::Recorded;

/// The exit code for a first item of a returned pair that is neither `True` nor `False`.
pub const INVALID_STATUS_EXIT_CODE: i32 = 220;

/// The exit code that stands for a time-out.
const TIMEOUT_EXIT_CODE: i32 = -9;

/// How an action ended.
#[derive(Clone, Debug, PartialEq)]
pub struct PythonOutcome {
    /// The exit code of its process, negative for a signal; `None` if the process could not be waited for.
    pub exit_code: Option<i32>,
    /// What `run` returned; `None` if it did not return.
    pub result: Option<Value>,
    /// The first item of a returned pair.
    pub status: Option<bool>,
    /// What it wrote.
    pub recorded: Recorded,
    /// Whether it was ended for the time it took.
    pub is_timed_out: bool,
    /// The seconds that it had.
    pub timeout_s: f64,
}

/// The state of an execution that ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PythonStatus {
    /// `succeeded`.
    Succeeded,
    /// `failed`.
    Failed,
    /// `timeout`.
    TimedOut,
}

impl PythonStatus {
    /// The name that StackStorm gives it.
    pub fn name(self) -> &'static str {
        match self {
            PythonStatus::Succeeded => "succeeded",
            PythonStatus::Failed => "failed",
            PythonStatus::TimedOut => "timeout",
        }
    }
}

impl PythonOutcome {
    /// The state of the execution. One whose outputs were not recorded to their ends has failed. One of which only the
    /// text is cut has not: its result is what `run` returned.
    pub fn status(&self) -> PythonStatus {
        if self.is_timed_out {
            PythonStatus::TimedOut
        } else if self.exit_code == Some(0) && self.status != Some(false) && self.recorded.stop.is_none() {
            PythonStatus::Succeeded
        } else {
            PythonStatus::Failed
        }
    }

    /// The result of the execution: `stdout`, `stderr`, `exit_code`, `result` and, where something went wrong that
    /// those do not tell, `error`. A `run` that did not return has the text `None` as its result.
    pub fn output(&self) -> Map {
        let exit_code = if self.is_timed_out { Some(TIMEOUT_EXIT_CODE) } else { self.exit_code };
        let result = self.result.clone().unwrap_or_else(|| Value::String("None".to_owned()));
        let mut output = Map::new();
        output.insert("stdout", Value::String(self.recorded.stdout.text.clone()));
        output.insert("stderr", Value::String(self.recorded.stderr.text.clone()));
        self.recorded.note_cut(&mut output);
        output.insert("exit_code", exit_code.map_or(Value::Null, |code| Value::Int(code.into())));
        output.insert("result", result);
        if let Some(error) = self.error() {
            output.insert("error", Value::String(error));
        }
        output
    }

    fn error(&self) -> Option<String> {
        if self.is_timed_out {
            return Some(format!("Action failed to complete in {} seconds", self.timeout_s));
        }
        if self.recorded.stop.is_some() {
            return self.recorded.cut();
        }
        match self.exit_code {
            Some(INVALID_STATUS_EXIT_CODE) => Some(self.recorded.stderr.text.clone()),
            None => Some("nobody saw how the action ended; its Python was killed".to_owned()),
            Some(_) => None,
        }
    }
}

/// Why an action did not run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PythonError {
    /// The Python of the pack does not start; the text says which and why.
    Start(String),
    /// The action asks for more than is allowed.
    TooLarge(String),
    /// The system has no more processes, descriptors or memory.
    System(String),
}

impl fmt::Display for PythonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PythonError::Start(text) | PythonError::TooLarge(text) | PythonError::System(text) => {
                f.write_str(text)
            }
        }
    }
}

impl std::error::Error for PythonError {}
