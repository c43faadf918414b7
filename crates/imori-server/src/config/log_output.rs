//! The destination of the log.

use std::ops::RangeInclusive;
use std::path::PathBuf;

use super::setting::{Setting, Value, quoted};

/// The configured value for standard error.
const STANDARD_ERROR: &str = "stderr";

/// The destination of the log.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogOutput {
    /// Standard error, which a service manager collects.
    StandardError,
    /// A file that lines are appended to; SIGUSR1 reopens it.
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
