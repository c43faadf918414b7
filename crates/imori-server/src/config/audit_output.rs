//! The destination of the audit log.

use std::ops::RangeInclusive;
use std::path::PathBuf;

use super::setting::{Setting, Value, quoted};

/// The configured value for the broker's log.
const LOG: &str = "log";

/// The destination of the audit log.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum AuditOutput {
    /// With the rest of the log.
    Log,
    /// A separate file that lines are appended to; SIGUSR1 reopens it.
    File(PathBuf),
}

impl Setting for AuditOutput {
    fn read(value: &Value) -> Option<AuditOutput> {
        match value {
            Value::Text(text) if text == LOG => Some(AuditOutput::Log),
            Value::Text(text) if !text.is_empty() => Some(AuditOutput::File(PathBuf::from(text))),
            _ => None,
        }
    }

    fn expected(_: Option<&RangeInclusive<AuditOutput>>) -> String {
        String::from("`log` or the path of a file")
    }

    fn show(&self) -> String {
        match self {
            AuditOutput::Log => quoted(LOG),
            AuditOutput::File(path) => quoted(&path.to_string_lossy()),
        }
    }
}
