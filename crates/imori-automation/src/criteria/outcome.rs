//! Results of evaluations, and errors of compilation.

use std::fmt;

use crate::limits::SHOWN_CHARS_MAX;
use crate::value::Value;

/// The result of an evaluation of criteria.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// Whether all criteria hold.
    pub is_match: bool,
    /// The first evaluation that failed. A search can match in spite of one that fails for one of its items.
    pub failure: Option<Failure>,
}

/// An evaluation that failed: where StackStorm records a failed enforcement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The key of the criterion.
    pub key: String,
    /// Why it failed.
    pub reason: String,
}

/// Why criteria cannot be compiled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CriteriaError {
    /// The keys from the criteria down to what is wrong, to find its line: `trigger.x`, `pattern`.
    pub path: Vec<String>,
    /// What is wrong and what to do.
    pub message: String,
}

impl CriteriaError {
    pub(super) fn new(path: &[&str], message: impl Into<String>) -> CriteriaError {
        CriteriaError { path: path.iter().map(ToString::to_string).collect(), message: message.into() }
    }

    pub(super) fn below(mut self, path: &[&str]) -> CriteriaError {
        self.path.splice(0..0, path.iter().map(ToString::to_string));
        self
    }
}

/// ``criterion `trigger.x`: REASON``.
impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "criterion `{}`: {}", self.key, self.reason)
    }
}

impl fmt::Display for CriteriaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.path.first() {
            Some(key) => write!(f, "criterion `{key}`: {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

impl std::error::Error for CriteriaError {}

/// A value for an error: its JSON, or the beginning of that.
pub(super) fn shown(value: &Value) -> String {
    cut(&value.to_json())
}

/// A text for an error, or its beginning.
pub(super) fn cut(text: &str) -> String {
    match text.char_indices().nth(SHOWN_CHARS_MAX) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}
