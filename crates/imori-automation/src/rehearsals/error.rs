//! What is wrong in a rehearsal.

use crate::yaml::{Position, YamlError};

/// An error of a rehearsal: its file or its workflow is wrong, or the workflow does not do what is expected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RehearsalError {
    /// Where it is.
    pub location: Location,
    /// What is wrong.
    pub message: String,
}

/// A place in one of the files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Location {
    /// In the rehearsal.
    Rehearsal(Position),
    /// In the workflow.
    Workflow(Position),
}

impl RehearsalError {
    /// An error of the rehearsal's own text.
    pub(super) fn in_rehearsal(position: Position, message: impl Into<String>) -> RehearsalError {
        RehearsalError { location: Location::Rehearsal(position), message: message.into() }
    }

    /// An error of the workflow's text.
    pub(super) fn in_workflow(position: Position, message: impl Into<String>) -> RehearsalError {
        RehearsalError { location: Location::Workflow(position), message: message.into() }
    }
}

/// The position of a YAML error. An error of the whole document has no line, and is reported at the first.
pub(super) fn position_of(error: &YamlError) -> Position {
    Position { line: error.line.max(1), column: error.column.max(1) }
}
