//! Where the log is written.

use std::ops::RangeInclusive;
use std::path::PathBuf;

use super::setting::{Setting, Value, quoted};

/// The name of the standard error in the configuration.
const STANDARD_ERROR: &str = "stderr";

/// Where the log is written.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogOutput {
    /// The standard error, which a service manager collects.
    StandardError,
    /// A file that lines are appended to; SIGUSR1 opens it anew.
    File(PathBuf),
}

impl Setting for LogOutput {
    fn read(value: &Value) -> Option<LogOutput> {
        match value {
            Value::Text(text) if text == STANDARD_ERROR => Some(LogOutput::StandardError),
            Value::Text(text) if !text.is_empty() => Some(LogOutput::File(PathBuf::from(text))),
            _ => None,
        }
    }

    fn expected(_: Option<&RangeInclusive<LogOutput>>) -> String {
        String::from("`stderr` or the path of a file")
    }

    fn show(&self) -> String {
        match self {
            LogOutput::StandardError => quoted(STANDARD_ERROR),
            LogOutput::File(path) => quoted(&path.to_string_lossy()),
        }
    }
}
