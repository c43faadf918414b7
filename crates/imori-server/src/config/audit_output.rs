//! Where the audit log is written.

use std::ops::RangeInclusive;
use std::path::PathBuf;

use super::setting::{Setting, Value, quoted};

/// The name of the log in the configuration.
const LOG: &str = "log";

/// Where the audit log is written.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum AuditOutput {
    /// With the rest of the log.
    Log,
    /// A file of its own that lines are appended to; SIGUSR1 opens it anew.
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
